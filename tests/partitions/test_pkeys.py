"""Which P_Keys a partition may have: the pool, the cool-down, and what ports still hold."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from partitions import operations, pkeys
from partitions.errors import PartitionRefused
from partitions.models import Partition
from subnet.pkey import PKey


@pytest.fixture(autouse=True)
def small_pool(settings):
    settings.PKEY_POOL = ((0x0200, 0x0203), (0x0300, 0x0300))
    settings.PKEY_COOL_DOWN_DAYS = 30


def retired(provider, pkey: int, *, days: float) -> Partition:
    partition = provider.partition(f"old-{pkey:04x}", provider.acme, pkey)
    Partition.objects.filter(pk=partition.pk).update(retired_at=timezone.now() - timedelta(days=days))
    return partition


def could_be_drawn(provider, monkeypatch) -> set[int]:
    offered: list[int] = []
    with monkeypatch.context() as patched:
        choosing = SimpleNamespace(choice=lambda free: offered.extend(free) or free[0])
        patched.setattr("partitions.pkeys.secrets", choosing)
        pkeys.draw(provider.subnet)
    return set(offered)


def test_it_draws_from_the_whole_pool_and_nothing_else(provider, monkeypatch):
    assert could_be_drawn(provider, monkeypatch) == {0x0200, 0x0201, 0x0202, 0x0203, 0x0300}


def test_it_draws_at_random(provider, settings):
    settings.PKEY_POOL = ((0x0100, 0x7DFF),)
    assert len({pkeys.draw(provider.subnet) for _ in range(20)}) > 15  # by chance less than once in 10^15


def test_it_draws_no_key_in_use(provider, monkeypatch):
    provider.partition("a", provider.acme, 0x0200)
    assert 0x0200 not in could_be_drawn(provider, monkeypatch)


def test_it_draws_no_key_that_only_the_current_revision_knows(provider, monkeypatch):
    training = provider.partition("training", provider.acme, 0x0200)
    provider.settled_move(provider.server(1), None, training)
    Partition.objects.filter(pk=training.pk).update(pkey=0x7000)  # as if the row had never been
    assert 0x0200 not in could_be_drawn(provider, monkeypatch)
    with pytest.raises(PartitionRefused, match="0x0200 stands in revision 2 as training"):
        pkeys.check(provider.subnet, PKey(0x0200))


def test_a_retired_key_cools_down(provider, monkeypatch):
    retired(provider, 0x0201, days=29.9)
    provider.observe()
    assert 0x0201 not in could_be_drawn(provider, monkeypatch)
    with pytest.raises(PartitionRefused, match=r"0x0201 was used by partition old-0201, which was retired at .* until"):
        provider.partition("new", provider.bert, 0x0201)


def test_after_that_it_comes_back_once_the_fabric_was_read_without_it(provider, monkeypatch):
    retired(provider, 0x0201, days=31)
    assert 0x0201 not in could_be_drawn(provider, monkeypatch)
    with pytest.raises(PartitionRefused, match="the fabric was not read since that was retired"):
        provider.partition("new", provider.bert, 0x0201)
    provider.observe(read_at=timezone.now() - timedelta(days=32))
    assert 0x0201 not in could_be_drawn(provider, monkeypatch)
    provider.observe()
    assert 0x0201 in could_be_drawn(provider, monkeypatch)
    new = provider.partition("new", provider.bert, 0x0201)
    assert Partition.objects.filter(subnet=provider.subnet).by_pkey()[PKey(0x0201)] == new


def test_a_key_that_a_port_still_holds_stays_away(provider, monkeypatch):
    retired(provider, 0x0201, days=31)
    server = provider.server(1)
    guid = str(server.hcas.first().ports.first())
    provider.observe(extra={guid: 0x0201})  # a limited member: bit 15 is no part of the key
    assert 0x0201 not in could_be_drawn(provider, monkeypatch)
    with pytest.raises(PartitionRefused, match=f"0x0201 is held by port {guid}"):
        provider.partition("new", provider.bert, 0x0201)
    provider.observe()
    assert 0x0201 in could_be_drawn(provider, monkeypatch)


def test_a_retired_key_that_an_unreadable_port_may_hold_stays_away(provider, monkeypatch):
    retired(provider, 0x0201, days=31)
    guid = str(provider.server(1).hcas.first().ports.first())
    provider.observe(unread=[guid])
    assert 0x0201 not in could_be_drawn(provider, monkeypatch)
    assert 0x0202 in could_be_drawn(provider, monkeypatch)  # nobody here ever gave that one to a port
    with pytest.raises(PartitionRefused, match=f"port {guid} may hold it still: it could not be read"):
        provider.partition("new", provider.bert, 0x0201)
    provider.observe()
    assert 0x0201 in could_be_drawn(provider, monkeypatch)


def test_a_key_that_nobody_here_knows_but_a_port_holds_stays_away(provider, monkeypatch):
    guid = str(provider.server(1).hcas.first().ports.first())
    provider.observe(extra={guid: 0x8202})
    assert 0x0202 not in could_be_drawn(provider, monkeypatch)
    found = operations.create_partition(
        subnet=provider.subnet, tenant=None, name="found", actor=provider.olga, pkey=0x0202, is_found=True
    )
    assert found.pkey == 0x0202


def test_a_person_may_choose_outside_the_pool(provider):
    assert provider.partition("low", None, 0x0010).pkey == 0x0010


def test_an_empty_pool_says_what_to_do(provider):
    for number in range(5):
        provider.partition(f"p{number}", None)
    with pytest.raises(PartitionRefused, match="Widen FABRICUI_PKEY_POOL, or name a P_Key outside of it"):
        provider.partition("none-left", None)


def test_the_pool_counts_what_its_keys_wait_for(provider):
    provider.partition("a", provider.acme, 0x0200)
    retired(provider, 0x0201, days=1)
    guid = str(provider.server(1).hcas.first().ports.first())
    provider.observe(extra={guid: 0x8300})
    assert pkeys.pool(provider.subnet) == pkeys.Pool(size=5, free=2, in_use=1, cooling=1, held=1)


@pytest.mark.parametrize("text", ["0x0000-0x0100", "0x7fff", "0x0200-0x0100", "many", "0x100-0x200-0x300"])
def test_a_pool_that_cannot_be_ends_the_program(monkeypatch, text):
    from fabricui import environment

    monkeypatch.setenv("FABRICUI_PKEY_POOL", text)
    with pytest.raises(environment.BadEnvironment):
        environment.spans("FABRICUI_PKEY_POOL", "0x0100-0x7dff", least=1, most=0x7FFE)
