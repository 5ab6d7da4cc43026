"""What a read-back says of the leaf switches: copies of keys, and whether they still drop by them."""

from dataclasses import replace

import pytest

from tests.subnet.fabrics import fabric, leaf_copy
from tests.subnet.test_readback import GOOD, IDLE, OLD, OTHER, kinds, read_back


def test_a_leaf_copy_that_enforces_other_keys_is_contrary():
    stale = replace(GOOD, leaf=leaf_copy({0: 0x7FFF, 1: 0xAC41, 2: 0x1001}))
    found = read_back(stale, OTHER, IDLE)
    assert kinds(found) == ["leaf_copy_differs"]
    assert found.is_contrary
    assert "with 0x1001, 0x7fff, 0xac41 and not with 0x1001, 0x7fff, 0x8044" in found.discrepancies[0].sentence


@pytest.mark.parametrize(
    "leaf",
    [
        None,
        leaf_copy({}, enforcing=False),
        leaf_copy({0: 0x7FFF}, enforcing=False),
        leaf_copy(None),
        leaf_copy({0: 0x7FFF}, capacity=2),
    ],
)
def test_a_leaf_copy_that_says_nothing_is_not_compared_and_that_is_told(leaf):
    before = fabric(replace(OLD, leaf=None), OTHER, IDLE)
    found = read_back(replace(GOOD, leaf=leaf), OTHER, IDLE, before=before)
    assert found.is_proven
    assert any("copies for 1 affected ports were not compared" in sentence for sentence in found.not_checked)


@pytest.mark.parametrize("bits", [{"enforce_in": True}, {"enforce_out": True}])
def test_one_enforcing_direction_is_enough_to_compare(bits):
    leaf = leaf_copy({0: 0x7FFF}, enforcing=False, capacity=None, **bits)
    before = fabric(replace(OLD, leaf=replace(leaf, pkeys=OLD.pkeys)), OTHER, IDLE)
    assert kinds(read_back(replace(GOOD, leaf=leaf), OTHER, IDLE, before=before)) == ["leaf_copy_differs"]


@pytest.mark.parametrize("who", ["affected", "unaffected"])
def test_a_leaf_switch_that_stops_enforcing_is_contrary(who):
    enforcing = replace(OTHER, leaf=leaf_copy(OTHER.pkeys))
    off = leaf_copy({}, enforcing=False)
    before = fabric(OLD, enforcing, IDLE)
    ports = (replace(GOOD, leaf=off), enforcing) if who == "affected" else (GOOD, replace(enforcing, leaf=off))
    found = read_back(*ports, IDLE, before=before)
    assert kinds(found) == ["enforcement_lost"]
    assert found.is_contrary
    assert "no more on the way into the switch and out of it" in found.discrepancies[0].sentence


def test_a_cable_that_went_to_another_switch_port_is_no_lost_enforcement():
    before = fabric(OLD, replace(OTHER, leaf=leaf_copy(OTHER.pkeys)), IDLE)
    elsewhere = replace(leaf_copy({}, enforcing=False), port=33)
    assert read_back(GOOD, replace(OTHER, leaf=elsewhere), IDLE, before=before).is_proven


def test_a_leaf_copy_of_an_unaffected_port_that_changed_is_contrary_and_an_old_difference_is_not():
    odd = leaf_copy({0: 0x7FFF, 1: 0x8044})
    before = fabric(OLD, replace(OTHER, leaf=leaf_copy(OTHER.pkeys)), IDLE)
    found = read_back(GOOD, replace(OTHER, leaf=odd), IDLE, before=before)
    assert kinds(found) == ["leaf_copy_differs"]
    assert found.is_contrary
    before = fabric(OLD, replace(OTHER, leaf=odd), IDLE)
    assert read_back(GOOD, replace(OTHER, leaf=odd), IDLE, before=before).is_proven
