"""Properties that hold for every table, whatever it holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet.errors import InvalidFile
from subnet.index import predict
from subnet.partitions_conf import parse_strict, render, table_digest
from subnet.pkey import DEFAULT, FULL_BIT, PKey, entry
from subnet.plan import Added, Changed, Conflict, Removed, apply, between_tenants, diff, rebase
from subnet.table import Member, PartitionTable
from tests.subnet.fabrics import SM1, SM2, fabric, port
from tests.subnet.strategies import headers, memberships, near_guids, pkeys, tables


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
    assert (plan.changes, plan.flags, plan.ports, plan.effects, plan.unsafe) == ((), (), (), (), ())
    assert plan.by_hand(2) == 0
    plan.raise_if_unsafe()


@given(tables(), tables())
def test_the_changes_of_a_plan_turn_one_table_into_the_other(current, wanted):
    plan = diff(current, wanted, None)
    now = apply(plan.found, current)
    assert now == PartitionTable(
        wanted.sm_ports, tuple(p for p in wanted.partitions if not p.is_empty), default=wanted.default
    )
    assert table_digest(now) == table_digest(wanted)
    assert plan.is_empty == (table_digest(current) == table_digest(wanted))
    kinds = {Added: (False, True), Removed: (True, False), Changed: (True, True)}
    for change in plan.changes:
        assert kinds[type(change)] == (change.from_membership is not None, change.to_membership is not None)


@given(tables(), tables(), st.data())
def test_a_plan_affects_exactly_the_ports_whose_keys_differ(current, wanted, data):
    named = sorted(current.by_port().keys() | wanted.by_port().keys() | {SM1, SM2})
    types = {guid: data.draw(st.sampled_from(["CA", "CA", "SW", "RT"])) for guid in named}
    seen = fabric(*(port(guid, node_type=types[guid]) for guid in named), managers=False)
    plan = diff(current, wanted, seen)

    def keys(table, guid):
        return table.keys_of(guid, types.get(guid, "CA"), is_self=guid == SM1)

    every = {*named, *(change.guid for change in plan.changes)}
    assert plan.affected == {guid for guid in every if keys(current, guid) != keys(wanted, guid)}
    for changed in plan.ports:
        was, will = keys(current, changed.guid), keys(wanted, changed.guid)
        entries = {entry(pkey, membership) for pkey, membership in was.items()}
        assert entries - set(changed.losses) | set(changed.gains) == {entry(*key) for key in will.items()}


@st.composite
def edited(draw, table: PartitionTable) -> PartitionTable:
    """`table` with up to three ports put into partitions or taken out, and perhaps a flag more."""
    partitions = list(table.partitions)
    for _ in range(draw(st.integers(1, 3)) if partitions else 0):
        at = draw(st.integers(0, len(partitions) - 1))
        members = {member.guid: member for member in partitions[at].members}
        guid = draw(near_guids)
        if members.pop(guid, None) is None:
            members[guid] = Member(guid, draw(memberships))
        partitions[at] = replace(partitions[at], members=tuple(members.values()))
    if partitions and draw(st.booleans()):
        partitions[0] = replace(partitions[0], flags=replace(partitions[0].flags, sl=draw(st.integers(0, 15))))
    return replace(table, partitions=tuple(partitions))


@given(tables(), st.data())
def test_a_rebase_does_what_both_sides_did_or_says_why_not(base, data):
    newer = data.draw(edited(base) | tables())
    wanted = data.draw(edited(base) | tables())
    merged = rebase(base, newer, wanted)
    if isinstance(merged, Conflict):
        assert merged.sentence
        assert set(merged.ports) <= {c.guid for c in diff(base, newer, None).changes} | set(newer.sm_ports) | set(
            base.sm_ports
        ) | {m.guid for m in (*newer.default.members, *base.default.members)}
        return

    def places(one, other):
        return {(c.pkey, c.guid, c.to_membership) for c in diff(one, other, None).changes}

    # Each side's changes, all of them and no other, and none of them twice.
    assert places(newer, merged) == places(base, wanted)
    assert places(wanted, merged) == places(base, newer)


@given(tables(), tables())
def test_a_rebase_on_nothing_is_the_other_side(base, wanted):
    def facts(table):
        return table.sm_ports, table.default, tuple(p for p in table.partitions if not p.is_empty)

    assert facts(rebase(base, base, wanted)) == facts(wanted)
    assert facts(rebase(base, wanted, base)) == facts(wanted)


@given(tables(), tables())
def test_the_two_tables_of_a_move_add_nothing_before_all_is_removed(current, wanted):
    pair = between_tenants(current, wanted, lambda guid: None)
    tenants_now = {
        guid: {p.tenant for p, m in current.memberships() if m.guid == guid and p.tenant} for guid in current.by_port()
    }
    tenants_then = {
        guid: {p.tenant for p, m in wanted.memberships() if m.guid == guid and p.tenant} for guid in wanted.by_port()
    }
    moving = {
        guid for guid, tenants in tenants_then.items() if tenants_now.get(guid) and not tenants <= tenants_now[guid]
    }
    assert (pair is None) == (not moving)
    if pair is None:
        return
    removing, adding = pair
    assert adding == wanted
    for guid in moving:
        assert not any(p.tenant for p, m in removing.memberships() if m.guid == guid)
    for change in diff(current, removing, None).changes:
        assert change.guid not in moving or change.to_membership is None
    assert between_tenants(removing, adding, lambda guid: None) is None


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
