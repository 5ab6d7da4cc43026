"""Where keys stand after the next sweep."""

from subnet.index import PortHistory, predict
from subnet.pkey import Membership, PKey
from tests.subnet.fabrics import FULL, INFERENCE, LIMITED, TRAINING


def kinds(prediction):
    return [hazard.kind for hazard in prediction.hazards]


def test_a_key_that_stays_keeps_its_index_and_a_new_one_takes_a_free_slot():
    prediction = predict({0: 0x7FFF, 1: 0x8001, 3: 0xAC41}, 8, {TRAINING: FULL, INFERENCE: FULL}, LIMITED)
    assert prediction.survivors == {0: 0x7FFF, 3: 0xAC41}
    # Two ports with equal tables were seen to take different slots; slot 1 is free once 0x0001 is gone.
    assert prediction.new == {0x8044: frozenset({1, 2, 4, 5, 6, 7})}
    assert prediction.hazards == ()


def test_membership_changes_in_place():
    prediction = predict({0: 0x7FFF, 2: 0xAC41}, 8, {TRAINING: LIMITED}, FULL)
    assert prediction.survivors == {0: 0xFFFF, 2: 0x2C41}
    assert prediction.new == {}


def test_an_empty_table_gets_default_first():
    prediction = predict({}, 8, {TRAINING: FULL}, LIMITED)
    assert prediction.survivors == {}
    assert prediction.new == {0xAC41: frozenset(range(1, 8)), 0x7FFF: frozenset({0})}


def test_a_full_table_and_one_nearly_full():
    wanted = {PKey(0x100 + n): Membership.FULL for n in range(7)}
    assert "table_nearly_full" in kinds(predict({0: 0x7FFF}, 8, wanted, LIMITED))
    full = predict({0: 0x7FFF}, 8, wanted | {TRAINING: FULL}, LIMITED)
    assert kinds(full)[0] == "table_full"
    assert "8 keys and is to hold 9" in full.hazards[0].sentence


def test_default_off_index_0_moves_what_stands_there():
    prediction = predict({0: 0xAC41, 1: 0x7FFF}, 8, {TRAINING: FULL}, LIMITED)
    assert prediction.survivors == {0: 0x7FFF}
    assert prediction.new == {0xAC41: frozenset(range(1, 8))}
    assert kinds(prediction) == ["default_off_index_0"]


def test_a_key_at_two_indexes_stays_at_one():
    prediction = predict({0: 0x7FFF, 1: 0xAC41, 2: 0x2C41}, 8, {TRAINING: FULL}, LIMITED)
    assert prediction.survivors == {0: 0x7FFF, 1: 0xAC41}
    assert prediction.new == {}
    assert kinds(prediction) == ["key_twice"]


def test_a_wrapping_table_reuses_freed_indexes():
    wrapping = {0: 0x7FFF, 1: 0x8001, 2: 0x8002, 3: 0x8003}
    stays = {PKey(2): FULL, PKey(3): FULL}
    prediction = predict(wrapping, 4, stays | {TRAINING: FULL}, LIMITED)
    assert prediction.new == {0xAC41: frozenset({1})}
    assert "freed_index_reused" in kinds(prediction)
    assert "0xac41 may take index 1, which 0x8001 has left" in prediction.hazards[-1].sentence
    assert "freed_index_reused" not in kinds(predict(wrapping, 64, stays | {TRAINING: FULL}, LIMITED))
    assert "freed_index_reused" not in kinds(predict(wrapping, 4, stays, LIMITED))


def test_toggling_a_membership_on_a_wrapped_table():
    wrapped = {0: 0x7FFF, 1: 0x8001, 3: 0x8003}
    assert kinds(predict(wrapped, 4, {PKey(1): LIMITED, PKey(3): FULL}, LIMITED)) == ["wrap_defect"]
    assert kinds(predict(wrapped, 64, {PKey(1): LIMITED, PKey(3): FULL}, LIMITED)) == []
    assert kinds(predict(wrapped, 4, {PKey(1): FULL, PKey(3): FULL}, LIMITED)) == []
    # Default changes in place at index 0 and is never part of the wrap.
    assert kinds(predict(wrapped, 4, {PKey(1): FULL, PKey(3): FULL}, FULL)) == []


def test_a_table_that_was_full_earlier_has_wrapped_though_its_end_is_free_now():
    """The process lives on: what was missed between two looks does not unwrap it."""
    full = {0: 0xFFFF, 1: 0x8301, 2: 0x8010, 3: 0x8011}
    now = {0: 0xFFFF, 1: 0x2C41, 2: 0x7FFE}
    wanted = {PKey(0x7FFE): Membership.FULL, PKey(0x10): Membership.FULL}
    for tables in ((full, now), (full, {0: 0xFFFF}, now)):
        found = predict(now, 4, wanted, Membership.FULL, history=PortHistory(tables))
        assert [hazard.keys for hazard in found.hazards if hazard.kind == "wrap_defect"] == [(0xFFFE,)]
    other = predict(now, 4, wanted, Membership.FULL, history=PortHistory((now,)))
    assert not [hazard for hazard in other.hazards if hazard.kind == "wrap_defect"]
