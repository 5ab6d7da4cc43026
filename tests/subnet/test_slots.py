"""The model of OpenSM's placement by itself: what every sweep keeps, and what prediction makes of it."""

from hypothesis import given
from hypothesis import strategies as st

from subnet.index import PortHistory, predict
from subnet.pkey import DEFAULT, FULL_BIT, Membership, PKey
from subnet.slots import PortSlots, keys_of

CAPACITY = 8
ALONE = {0: 0x7FFF}


def wanted(*entries):
    return {0x7FFF: 0x7FFF} | {number & ~FULL_BIT: number for number in entries}


def run(*files, table=None, capacity=CAPACITY):
    slots = PortSlots.settled(table or ALONE, capacity)
    swept = None
    for entries in files:
        swept = slots.sweep(wanted(*entries))
    return slots, swept


def test_holes_are_skipped_until_the_end_of_the_table():
    slots, _ = run([0x8001, 0x8002], [0x8002], [0x8002, 0x8003])
    assert slots.table == {0: 0x7FFF, 2: 0x8002, 3: 0x8003}


def test_a_key_that_comes_back_with_the_same_membership_takes_its_old_slot():
    slots, _ = run([0x8001, 0x8002], [0x8002], [0x8002, 0x8001])
    assert slots.table == {0: 0x7FFF, 1: 0x8001, 2: 0x8002}
    slots, _ = run([0x8001, 0x8002], [0x8002], [0x8002, 0x0001])
    assert slots.table == {0: 0x7FFF, 2: 0x8002, 3: 0x0001}


def test_new_keys_of_one_sweep_go_by_their_low_byte():
    slots, _ = run([0x8201, 0x8102, 0x8103])
    assert slots.table == {0: 0x7FFF, 1: 0x8201, 2: 0x8102, 3: 0x8103}


def test_after_the_end_the_lowest_free_slot_is_next_also_one_freed_by_the_same_sweep():
    filled = [0x8001, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006, 0x8007]
    slots, _ = run(filled, [*filled[2:], 0x8010])
    assert slots.table[1] == 0x8010
    assert 2 not in slots.table


def test_keys_without_room_are_dropped_and_nothing_that_stands_is():
    slots, swept = run([0x8001, 0x8002], range(0x8001, 0x800B))
    assert swept.dropped == (0x8008, 0x8009, 0x800A)
    assert len(slots.table) == CAPACITY


def test_default_goes_back_to_index_0_and_what_stood_there_to_a_new_slot():
    slots = PortSlots({0: 0x8001, 1: 0x7FFF, 2: 0x8002}, CAPACITY)
    slots.sweep(wanted(0x8001, 0x8002))
    assert slots.table == {0: 0x7FFF, 2: 0x8002, 3: 0x8001}


def test_of_a_key_at_two_indexes_the_full_one_counts():
    slots = PortSlots({0: 0x7FFF, 1: 0x0001, 4: 0x8001}, CAPACITY)
    slots.sweep(wanted(0x0001))
    assert slots.table == {0: 0x7FFF, 4: 0x0001}


def test_the_wrap_defect_lets_two_keys_take_turns():
    filled = [0x0001, 0x8002, 0x8003, 0x8004, 0x8005, 0x8006, 0x8007]
    slots, _ = run([0x8001], [0x0001], filled, [*filled[1:], 0x8010])
    after = [*filled[2:], 0x8010, 0x8001]
    swept = slots.sweep(wanted(*after))
    assert swept.overwritten == {0x8010: 0x8001}
    assert slots.table[1] == 0x8001
    slots.sweep(wanted(*after))
    assert slots.table[1] == 0x8010


def test_a_process_that_is_master_again_remembers_where_keys_stood():
    slots, _ = run([0x8001, 0x8002], [0x8001])
    slots.reread({0: 0x7FFF, 1: 0x8001, 2: 0x8003})
    swept = slots.sweep(wanted(0x8001, 0x8002, 0x8003))
    assert swept.overwritten == {0x8003: 0x8002}


keys = st.integers(1, 20).map(lambda key: key * 0x101)
held = st.dictionaries(keys, st.sampled_from(Membership), max_size=10)
files = st.lists(held, min_size=1, max_size=12)


def entries_of(keys_held):
    return [key | FULL_BIT if how == Membership.FULL else key for key, how in keys_held.items()]


@given(files)
def test_every_sweep_keeps_what_stays_and_places_every_key_once_or_drops_it(ways):
    slots = PortSlots.settled(ALONE, CAPACITY)
    for way in ways:
        before = dict(slots.table)
        target = wanted(*entries_of(way))
        swept = slots.sweep(target)
        assert slots.table[0] == 0x7FFF
        assert all(0 <= index < CAPACITY for index in slots.table)
        assert sorted([*slots.table.values(), *swept.dropped, *swept.overwritten]) == sorted(target.values())
        for index, number in before.items():
            key = number & ~FULL_BIT
            if key in target and target[key] not in swept.overwritten:
                assert slots.table[index] == target[key]
        assert not swept.dropped or len(slots.table) == CAPACITY or swept.overwritten


@given(files, held)
def test_a_whole_history_gives_the_very_index_and_an_unknown_one_a_set_around_it(ways, last):
    slots = PortSlots.settled(ALONE, CAPACITY)
    tables = [dict(ALONE)]
    for way in ways:
        if slots.sweep(wanted(*entries_of(way))).overwritten:
            return
        tables.append(dict(slots.table))
    target = {PKey(key): how for key, how in last.items()}
    history = PortHistory(tables=tuple(tables), is_whole=True)
    sharp = predict(tables[-1], CAPACITY, target, Membership.LIMITED, history=history)
    wide = predict(tables[-1], CAPACITY, target, Membership.LIMITED)
    swept = slots.sweep(wanted(*entries_of(last)))
    at = {number: index for index, number in slots.table.items()}
    for index, number in sharp.survivors.items():
        assert slots.table[index] == number
    for number, indexes in sharp.new.items():
        if number in swept.overwritten:
            assert indexes == {at[swept.overwritten[number]]}
        else:
            assert indexes == ({at[number]} if number in at else frozenset())
        if not swept.overwritten:
            assert indexes <= wide.new[number]
    assert {hazard.keys for hazard in sharp.hazards if hazard.kind == "table_full"} <= {swept.dropped}
    certain = {hazard.keys for hazard in sharp.hazards if hazard.kind == "wrap_defect" and len(hazard.keys) == 2}
    assert certain >= set(swept.overwritten.items())


@given(files, held, st.data())
def test_who_meets_the_port_at_any_moment_of_its_history_is_foreseen(ways, last, data):
    slots = PortSlots.settled(ALONE, CAPACITY)
    tables = [dict(ALONE)]
    for way in ways:
        slots.sweep(wanted(*entries_of(way)))
        if slots.table != tables[-1]:
            tables.append(dict(slots.table))
    began = data.draw(st.integers(0, len(tables) - 1))
    met = PortSlots.settled(tables[began], CAPACITY)
    for table in tables[began + 1 :]:
        met.sweep(keys_of(table))
        if met.table != table:
            return  # it would have placed a key elsewhere, so it was not there
    target = {PKey(key): how for key, how in last.items()}
    prediction = predict(
        tables[-1], CAPACITY, target, Membership.LIMITED, history=PortHistory(tables=tuple(tables), is_whole=True)
    )
    newcomer = PortSlots(tables[-1], CAPACITY)
    for process in (met, newcomer):
        if process.sweep(wanted(*entries_of(last))).overwritten:
            continue
        for index, number in process.table.items():
            if number in prediction.after_takeover:
                assert index in prediction.after_takeover[number]


def test_a_history_that_does_not_fit_together_counts_as_unknown():
    target = {PKey(9): Membership.FULL}
    for history in (
        PortHistory(tables=(ALONE, {0: 0x7FFF, 5: 0x8001}), is_whole=True),
        PortHistory(tables=(ALONE,), is_whole=True),
        PortHistory(tables=({0: 0x7FFF, 5: 0x8001},), is_whole=False),
        None,
    ):
        prediction = predict({0: 0x7FFF, 5: 0x8001}, CAPACITY, target, Membership.LIMITED, history=history)
        assert prediction.new == {0x8009: frozenset(range(1, CAPACITY))}
        assert prediction.after_takeover == {0x8009: {1, 6}}


def test_hazards_name_the_slot_and_both_keys():
    """The key that leaves last gives its slot to the new one only under a process that did not see it."""
    history = PortHistory(tables=(ALONE, {0: 0x7FFF, 1: 0x8001}), is_whole=True)
    prediction = predict(history.tables[-1], CAPACITY, {PKey(2): Membership.FULL}, Membership.LIMITED, history=history)
    assert prediction.new == {0x8002: {2}}
    assert prediction.after_takeover == {0x8002: {1, 2}}
    assert prediction.acceptable == {0x8002: {1, 2}}
    (hazard,) = prediction.hazards
    assert (hazard.kind, hazard.keys, hazard.index) == ("freed_index_reused_after_takeover", (0x8001, 0x8002), 1)
    assert "0x8002 may take index 1, which 0x8001 has left" in hazard.sentence


def test_a_slot_freed_under_a_former_process_is_told_of():
    history = PortHistory(tables=(ALONE,), is_whole=True, earlier=({0: 0x7FFF, 1: 0x8001},))
    prediction = predict(ALONE, CAPACITY, {PKey(2): Membership.FULL}, Membership.LIMITED, history=history)
    (hazard,) = prediction.hazards
    assert (hazard.kind, hazard.keys, hazard.index) == ("freed_index_reused", (0x8001, 0x8002), 1)
    same = predict(ALONE, CAPACITY, {PKey(1): Membership.FULL}, Membership.LIMITED, history=history)
    assert same.hazards == ()


def test_default_is_in_no_set_but_index_0():
    assert int(DEFAULT) not in predict({}, CAPACITY, {}, Membership.LIMITED).survivors.values()
    assert predict({}, CAPACITY, {}, Membership.LIMITED).new == {0x7FFF: {0}}
