"""A partition's name and P_Key."""

import pytest
from django.utils import timezone

from audit.models import Event
from partitions.errors import PartitionRefused
from partitions.models import Partition
from subnet.errors import InvalidName, InvalidPKey
from subnet.pkey import LAST_USABLE


def test_it_draws_a_key_and_records_it(provider):
    partition = provider.partition("training", provider.acme)
    assert 1 <= partition.pkey <= 0x7FFE
    event = Event.objects.get(action="partitions:partition:create")
    assert (event.subject_key, event.actor_name, event.tenant_key) == (
        partition.public_id, "Olga", provider.acme.public_id,
    )  # fmt: skip
    assert event.after["pkey"] == f"0x{partition.pkey:04x}"


def test_it_never_draws_a_key_that_was_ever_used(provider):
    """All keys but one are taken, half of them by retired partitions: the last one must come."""
    free = 0x1234
    Partition.objects.bulk_create(
        Partition(
            subnet=provider.subnet, tenant=None, name=f"p{pkey}", pkey=pkey,
            retired_at=timezone.now() if pkey % 2 else None,
        )
        for pkey in range(1, LAST_USABLE + 1)
        if pkey != free
    )  # fmt: skip
    assert provider.partition("last", None).pkey == free
    with pytest.raises(PartitionRefused, match="used all"):
        provider.partition("none-left", None)


def test_it_does_not_draw_a_key_that_only_the_current_revision_knows(provider, training, monkeypatch):
    provider.settled_move(provider.server(1), None, training)
    Partition.objects.filter(pk=training.pk).update(pkey=0x7000)  # as if the row had never been
    offered = []
    monkeypatch.setattr("partitions.creation.secrets.choice", lambda free: offered.extend(free) or free[0])
    provider.partition("other", provider.acme)
    assert 0x2C41 not in offered
    assert 0x2C42 in offered


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
    Partition.objects.update(retired_at=timezone.now())
    with pytest.raises(PartitionRefused, match=r"0x2c41 was used by partition training"):
        provider.partition("other", provider.acme, 0x2C41)


def test_a_name_is_taken_whatever_its_case(provider, training):
    with pytest.raises(PartitionRefused, match="already has a partition training"):
        provider.partition("Training", provider.bert)
