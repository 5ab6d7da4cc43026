"""A partition's name and P_Key."""

import pytest

from audit.models import Event
from deploy.models import Fence
from partitions import operations
from partitions.errors import PartitionRefused
from partitions.models import Partition
from subnet.errors import InvalidName, InvalidPKey
from subnet.flags import Flags


def test_it_draws_a_key_and_records_it(provider):
    partition = provider.partition("training", provider.acme)
    assert 0x0100 <= partition.pkey <= 0x7DFF
    event = Event.objects.get(action="partitions:partition:create")
    assert (event.subject_key, event.actor_name, event.tenant_key) == (
        partition.public_id, "Olga", provider.acme.public_id,
    )  # fmt: skip
    assert event.after["pkey"] == f"0x{partition.pkey:04x}"


@pytest.mark.parametrize("name", ["", "0x10", "9lives", "a b", "a=b", "Default", "x" * 32, "tränen", "a;"])
def test_a_name_that_opensm_would_misread_is_refused(provider, name):
    with pytest.raises(InvalidName):
        provider.partition(name, provider.acme)
    assert not Partition.objects.exists()


@pytest.mark.parametrize("pkey", [0, 0x7FFF, 0x8001, -1])
def test_a_reserved_key_is_refused(provider, pkey):
    with pytest.raises(InvalidPKey):
        provider.partition("training", provider.acme, pkey)


def test_a_used_key_is_refused_by_name(provider, training):
    with pytest.raises(PartitionRefused, match=r"0x2c41 is used by partition training"):
        provider.partition("other", provider.acme, 0x2C41)


def test_it_keeps_flags_for_the_first_member(provider):
    operations.create_partition(
        subnet=provider.subnet, tenant=provider.acme, name="ip", actor=provider.olga, pkey=0x0101,
        flags=Flags(ipoib=True, mtu=5),
    )  # fmt: skip
    provider.settled_move(provider.server(1), None, Partition.objects.get(name="ip"))
    table = Fence.objects.get().current.partition_table()
    assert [partition.flags for partition in table.partitions] == [Flags(ipoib=True, mtu=5)]


def test_a_name_is_taken_whatever_its_case(provider, training):
    with pytest.raises(PartitionRefused, match="already has a partition training"):
        provider.partition("Training", provider.bert)
