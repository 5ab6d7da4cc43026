"""Properties that hold for every table, whatever it holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet.errors import InvalidFile
from subnet.guid import GUID
from subnet.index import predict
from subnet.partitions_conf import parse_strict, render, table_digest
from subnet.pkey import DEFAULT, FULL_BIT, PKey, entry
from subnet.plan import Added, Changed, Removed, diff
from subnet.table import PartitionTable
from tests.subnet.strategies import headers, memberships, pkeys, tables


def held(table: PartitionTable) -> dict[tuple[PKey, GUID], str]:
    """Every membership of a table, full membership in Default included."""
    found = {(partition.pkey, member.guid): member.membership.value for partition, member in table.memberships()}
    return found | {(DEFAULT, guid): "full" for guid in table.sm_ports}


@given(tables(), headers)
def test_parsing_a_rendered_table_brings_it_back(table, header):
    parsed = parse_strict(render(table, header))
    assert parsed.header == header
    assert parsed.table.sm_ports == table.sm_ports
    assert parsed.table.partitions == tuple(p for p in table.partitions if not p.is_empty)
    assert parsed.table.default == table.default
    members = {member.guid for _, member in table.memberships()} | {m.guid for m in table.default.members}
    assert parsed.table.labels == {guid: label for guid, label in table.labels.items() if guid in members}
    assert table_digest(parsed.table) == table_digest(table)


@given(tables(), headers, st.randoms(use_true_random=False))
def test_rendering_forgets_the_order_of_insertion(table, header, random):
    def shuffled(items):
        return random.sample(list(items), len(items))

    partitions = [
        replace(
            partition,
            members=tuple(shuffled(partition.members)),
            keywords=tuple(shuffled(partition.keywords)),
            flags=replace(partition.flags, scope=tuple(shuffled(partition.flags.scope * 2))),
        )
        for partition in shuffled(table.partitions)
    ]
    default = replace(
        table.default,
        members=tuple(shuffled(table.default.members)),
        keywords=tuple(shuffled(table.default.keywords)),
    )
    again = PartitionTable(
        sm_ports=tuple(shuffled(table.sm_ports)),
        partitions=tuple(partitions),
        labels=dict(shuffled(table.labels.items())),
        default=default,
    )
    assert render(again, header) == render(table, header)


@given(tables(), headers)
def test_lines_are_short_ascii_and_never_a_lone_semicolon(table, header):
    data = render(table, header)
    assert data.isascii()
    assert b"\r" not in data
    assert data.endswith(b"# end\n")
    for line in data.split(b"\n"):
        assert len(line) < 400
        assert line.strip() != b";"
        assert b";;" not in line
        # A comment between members must not hold what OpenSM parses, should it ever stop to be a comment.
        assert not (line.startswith(b"#") and any(sign in line[1:] for sign in b"#;:"))


@given(tables(), headers, st.data())
def test_every_truncation_is_refused(table, header, data):
    whole = render(table, header)
    size = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(InvalidFile):
        parse_strict(whole[:size])


@given(tables(), headers, st.data())
def test_a_spoilt_byte_is_refused_or_says_something_else_in_the_one_way(table, header, data):
    whole = render(table, header)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.binary(max_size=2))
    spoilt = whole[:at] + byte + whole[at + 1 :]
    try:
        parsed = parse_strict(spoilt)
    except InvalidFile:
        return
    assert render(parsed.table, parsed.header) == spoilt


@given(tables())
def test_nothing_changes_between_a_table_and_itself(table):
    plan = diff(table, table, None)
    assert plan.is_empty
    assert (plan.changes, plan.flags, plan.ports, plan.unsafe, plan.affected) == ((), (), (), (), frozenset())
    assert plan.by_hand(2) == 0
    plan.raise_if_unsafe()


@given(tables(), tables())
def test_the_changes_of_a_plan_turn_one_table_into_the_other(current, wanted):
    plan = diff(current, wanted, None)
    now = held(current)
    for change in plan.changes:
        place = (change.pkey, change.guid)
        before = change.from_membership and change.from_membership.value
        if change.pkey == DEFAULT:
            before = "full" if before == "full" else None
        assert now.pop(place, None) == before
        if change.to_membership and (change.pkey != DEFAULT or change.to_membership == "full"):
            now[place] = change.to_membership.value
        kinds = {Added: (False, True), Removed: (True, False), Changed: (True, True)}
        assert kinds[type(change)] == (change.from_membership is not None, change.to_membership is not None)
    assert now == held(wanted)
    flags = {p.pkey for p in current.partitions if p.members and p.ipoib}
    for flag in plan.flags:
        flags ^= {flag.pkey}
        assert (flag.pkey in flags) == flag.on
    assert flags == {p.pkey for p in wanted.partitions if p.members and p.ipoib}
    assert plan.is_empty == (table_digest(current) == table_digest(wanted))
    assert plan.affected == {change.guid for change in plan.changes}


entries = st.builds(entry, pkeys, memberships)


@given(
    st.dictionaries(st.integers(1, 15), entries, max_size=10),
    memberships,
    st.dictionaries(pkeys, memberships, max_size=10),
    st.integers(16, 40),
    st.data(),
)
def test_a_prediction_covers_every_key_once_and_moves_no_survivor(others, default, fresh, capacity, data):
    observed = {0: entry(DEFAULT, default)}
    for index, number in others.items():
        if number & ~FULL_BIT not in {held & ~FULL_BIT for held in observed.values()}:
            observed[index] = number
    staying = [PKey(n & ~FULL_BIT) for i, n in observed.items() if i and data.draw(st.booleans())]
    wanted = fresh | {pkey: data.draw(memberships) for pkey in staying}
    prediction = predict(observed, capacity, wanted, default)
    keys = [number & ~FULL_BIT for number in (*prediction.survivors.values(), *prediction.new)]
    assert sorted(keys) == sorted({int(DEFAULT), *map(int, wanted)})
    for index, number in prediction.survivors.items():
        assert observed[index] & ~FULL_BIT == number & ~FULL_BIT
    for indexes in prediction.new.values():
        assert indexes.isdisjoint(prediction.survivors)
        assert 0 not in indexes
        assert all(0 < index < capacity for index in indexes)
