"""Two witnesses on one port: each case says what both tell, and what stands between them. The table is the rule."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet.guid import GUID
from subnet.witness import ABSENT, Claim, Point, Sighting, Surroundings, Verdict, compare

NOON, MINUTE = 43_200.0, 60.0
PORT, NODE, LEAF = GUID("0x0002c90300010001"), GUID("0x0002c90300010000"), GUID("0x0002c90200000010")
OTHER = GUID("0x0002c903000f0001")
PREFIX, ELSEWHERE = GUID("0xfe80000000000000"), GUID("0xfec0000000000002")
CLAIM = Claim(PORT, NODE, "ACTIVE", 7, 1, PREFIX, PREFIX, "srv-001", NOON)
SEEN = Sighting(NODE, "ACTIVE", 7, 1, (LEAF, 4), "", NOON + MINUTE)
AROUND = Surroundings(looked_at=NOON + MINUTE)
LATER = NOON + 300 * MINUTE

AGREE, DISAGREE, UNPROVABLE = Verdict.AGREES, Verdict.DISAGREES, Verdict.UNPROVABLE
# what both say, the verdict, the point that decides it (None: none), words of its sentence
CASES = {
    "everything agrees": (CLAIM, SEEN, AROUND, AGREE, None, ""),
    "it is named as this server": (CLAIM, replace(SEEN, names="srv-001"), AROUND, AGREE, None, ""),
    "it is named as another server": (
        CLAIM, replace(SEEN, names="srv-002"), AROUND, DISAGREE, "node description", "calls itself a port of srv-002",
    ),
    "another LID": (CLAIM, replace(SEEN, lid=9), AROUND, DISAGREE, "GUID at its LID", "LID 7; the fabric has"),
    "another LID, long after": (
        CLAIM, replace(SEEN, lid=9, at=LATER), replace(AROUND, looked_at=LATER), UNPROVABLE, "GUID at its LID", "",
    ),
    "another LID, not looked since": (
        CLAIM, replace(SEEN, lid=9), replace(AROUND, looked_at=NOON - MINUTE), UNPROVABLE,
        "GUID at its LID", "was not read since",
    ),
    "no LID said": (replace(CLAIM, lid=None), SEEN, AROUND, UNPROVABLE, "GUID at its LID", "server names no LID"),
    "another HCA": (CLAIM, replace(SEEN, node_guid=OTHER), AROUND, DISAGREE, "node GUID", "shows it on HCA"),
    "no node GUID said": (replace(CLAIM, node_guid=None), SEEN, AROUND, UNPROVABLE, "node GUID", ""),
    "no switch at its cable": (CLAIM, replace(SEEN, leaf=None), AROUND, UNPROVABLE, "leaf and port", "no switch"),
    "where it was confirmed": (CLAIM, SEEN, replace(AROUND, home=(LEAF, 4)), AGREE, None, ""),
    "re-cabled since": (
        CLAIM, SEEN, replace(AROUND, home=(LEAF, 9)), DISAGREE, "leaf and port", "is at 0x0002c90200000010 port 4 now",
    ),
    "two at one switch port": (
        CLAIM, SEEN, replace(AROUND, shares_place_with=OTHER), UNPROVABLE, "leaf and port", "same switch port",
    ),
    "another SM": (CLAIM, replace(SEEN, sm_lid=2), AROUND, DISAGREE, "SM LID", "SM is at LID 1"),
    "it knows no SM": (replace(CLAIM, sm_lid=0), SEEN, AROUND, UNPROVABLE, "SM LID", "server knows no subnet manager"),
    "link up and initialising": (CLAIM, replace(SEEN, state="INIT"), AROUND, DISAGREE, "link state", "says ACTIVE"),
    "both say it is not up": (
        replace(CLAIM, state="INIT"), replace(SEEN, state="4: INIT"), AROUND, UNPROVABLE, "link state", "not up yet",
    ),
    "cable pulled": (CLAIM, replace(SEEN, state=ABSENT), AROUND, DISAGREE, "link state", "Check its cable"),
    "cable pulled and said so": (
        replace(CLAIM, state="DOWN", lid=None), replace(SEEN, state=ABSENT), AROUND, UNPROVABLE, "link state", "",
    ),
    "wrong subnet": (replace(CLAIM, prefix=ELSEWHERE), SEEN, AROUND, DISAGREE, "subnet", f"in subnet {ELSEWHERE}"),
    "no prefix said": (replace(CLAIM, prefix=None), SEEN, AROUND, UNPROVABLE, "subnet", "no subnet prefix"),
    "up and never seen": (CLAIM, None, AROUND, DISAGREE, "GUID at its LID", "does not show such a port"),
    "down and never seen": (
        replace(CLAIM, state="DOWN"), None, AROUND, Verdict.UNSEEN, "GUID at its LID", "not provable here",
    ),
    "never looked": (CLAIM, None, Surroundings(), Verdict.UNSEEN, "GUID at its LID", "was not read since"),
    "node GUID pasted": (
        replace(CLAIM, guid=NODE), None, replace(AROUND, port_of_node=PORT), DISAGREE, "GUID at its LID",
        f"HCA with port GUID {PORT}",
    ),
    "never registered": (None, SEEN, AROUND, Verdict.UNREGISTERED, None, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_table(case):
    claim, seen, around, verdict, point, words = case
    said = compare(claim, seen, around)
    assert said.verdict is verdict
    assert said.is_proof == (verdict is AGREE)
    deciding = [one for one in said.points if one.verdict is not AGREE]
    if point is None:
        assert not deciding
    else:
        found = {one.name: one for one in deciding}
        assert point in found
        assert words in found[point].sentence
        assert (verdict is DISAGREE) == bool(said.contradictions)


def test_nobody_speaks():
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(None, None, AROUND)


def test_a_point_survives_its_column():
    for point in compare(CLAIM, replace(SEEN, lid=9), AROUND).points:
        assert Point.from_json(point.to_json()) == point


_lids = st.one_of(st.none(), st.integers(0, 3))
_states = st.sampled_from(["", "ACTIVE", "INIT", "DOWN", "4: ACTIVE", ABSENT])
_guids = st.sampled_from([None, NODE, OTHER])


@given(
    lid=_lids, seen_lid=_lids, sm=_lids, seen_sm=_lids, state=_states, seen_state=_states, node=_guids,
    seen_node=_guids, prefix=st.sampled_from([None, PREFIX, ELSEWHERE]), leaf=st.sampled_from([None, (LEAF, 4)]),
    names=st.sampled_from(["", "srv-001", "srv-002"]), minutes=st.integers(-300, 300),
)  # fmt: skip
def test_proof_needs_every_point(
    lid, seen_lid, sm, seen_sm, state, seen_state, node, seen_node, prefix, leaf, names, minutes
):
    """Whatever both say: proven means that the fabric itself shows each of the points, and the same."""
    claim = replace(CLAIM, lid=lid, sm_lid=sm, state=state, node_guid=node, prefix=prefix)
    seen = Sighting(seen_node, seen_state, seen_lid, seen_sm, leaf, names, NOON + minutes * MINUTE)
    if compare(claim, seen, AROUND).is_proof:
        assert lid == seen_lid != 0
        assert None not in (lid, sm, node, leaf)
        assert (sm, node, prefix) == (seen_sm, seen_node, PREFIX)
        assert {state.rpartition(" ")[2], seen_state.rpartition(" ")[2]} == {"ACTIVE"}
        assert names in ("", "srv-001")
