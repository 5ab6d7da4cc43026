"""Each rule broken once, and a table that breaks none."""

from dataclasses import replace

import pytest

from subnet.pkey import PKey
from subnet.policy import Limits, check
from subnet.table import Member, Partition
from tests.subnet.fabrics import FULL, INFERENCE, LIMITED, SM1, SM2, STORAGE, TRAINING, guid, partition, table

REGISTERED = (SM1, SM2)
ROOMY = Limits(64)


def rules(value, *, limits=ROOMY, registered=REGISTERED):
    return [(v.rule, v.severity, v.where) for v in check(value, limits, sm_ports_registered=registered)]


def test_a_good_table_breaks_no_rule():
    storage = Partition(STORAGE, "storage", None, (Member(guid(9), FULL), Member(guid(1), LIMITED)))
    good = table(storage, partition(TRAINING, "training", "acme", guid(1), guid(2)))
    assert rules(good) == []


def test_a_table_without_sm_ports():
    assert rules(table(sm_ports=()), registered=()) == [("no_sm_port", "refuse", "table")]


def test_a_registered_sm_port_that_is_missing():
    assert rules(table(sm_ports=(SM1,))) == [("sm_port_missing", "refuse", SM2)]


def test_a_stranger_among_the_full_members_of_default():
    assert rules(table(sm_ports=(SM1, SM2, guid(3)))) == [("sm_port_unknown", "refuse", guid(3))]


def test_a_manager_host_in_a_partition():
    assert rules(table(partition(TRAINING, "training", None, SM1, guid(2)))) == [("sm_port_in_partition", "warn", SM1)]


def test_a_port_in_two_tenants_partitions():
    both = table(
        partition(TRAINING, "training", "acme", guid(1)),
        partition(INFERENCE, "inference", "umbrella", guid(1)),
        labels={guid(1): "srv-001"},
    )
    assert rules(both) == [("two_tenants", "refuse", guid(1))]
    (violation,) = check(both, Limits(64), sm_ports_registered=REGISTERED)
    assert "of srv-001" in violation.sentence
    assert "inference (0x0044, umbrella), training (0x2c41, acme)" in violation.sentence


def test_a_port_in_two_partitions_of_one_tenant_is_fine():
    both = table(partition(TRAINING, "training", "acme", guid(1)), partition(INFERENCE, "inference", "acme", guid(1)))
    assert rules(both) == []


def test_a_tenants_port_is_no_full_member_of_the_providers():
    value = table(
        partition(STORAGE, "storage", None, guid(1), guid(9)), partition(TRAINING, "training", "acme", guid(1))
    )
    assert rules(value) == [("tenant_full_in_provider", "refuse", guid(1))]


@pytest.mark.parametrize(
    ("partitions", "found"),
    [(6, []), (7, [("capacity_nearly_full", "warn", guid(1))]), (8, [("capacity", "refuse", guid(1))])],
)
def test_more_keys_than_a_port_holds(partitions, found):
    value = table(*(partition(PKey(0x100 + n), f"p{n}", "acme", guid(1)) for n in range(partitions)))
    assert rules(value, limits=Limits({guid(1): 8})) == found
    if partitions == 8:
        (violation,) = check(value, Limits({guid(1): 7}), sm_ports_registered=REGISTERED)
        assert "holds 7 P_Keys, Default included, and would need 9" in violation.sentence
        assert "out of 2 of its partitions" in violation.sentence


def test_a_capacity_that_was_never_read():
    value = table(partition(TRAINING, "training", "acme", guid(1), guid(2), guid(3)))
    assert rules(value, limits=Limits({guid(2): 64})) == [("capacity_unknown", "warn", "table")]
    (violation,) = check(value, Limits({guid(2): 64}), sm_ports_registered=REGISTERED)
    assert f"{guid(1)} and 1 more" in violation.sentence
    (violation,) = check(value, Limits({guid(2): 64, guid(3): 64}), sm_ports_registered=REGISTERED)
    assert f"port {guid(1)} can hold" in violation.sentence


def test_a_partition_in_which_nobody_can_talk():
    limited = table(partition(TRAINING, "training", "acme", guid(1), guid(2), membership=LIMITED))
    assert rules(limited) == [("all_limited", "warn", "0x2c41")]


def test_refusals_come_first():
    value = table(
        partition(TRAINING, "training", "acme", SM1, guid(1), membership=LIMITED),
        partition(INFERENCE, "inference", "umbrella", guid(1)),
    )
    severities = [severity for _, severity, _ in rules(value)]
    assert severities == ["refuse", "warn", "warn"]


def test_one_multicast_group_in_two_partitions_kills_opensm():
    group = ("mgid=ff15::2",)
    first = replace(partition(TRAINING, "training", "acme", guid(1), guid(2)), mgids=group)
    second = replace(partition(INFERENCE, "inference", "acme", guid(1), guid(2)), mgids=group)
    found = check(table(first, second), ROOMY, sm_ports_registered=REGISTERED)
    assert [(v.rule, v.severity) for v in found if v.severity == "refuse"] == [("opensm_refuses", "refuse")]
    assert "refuse" not in [severity for _, severity, _ in rules(table(first))]
