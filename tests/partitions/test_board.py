"""The board: which card stands where, what is marked, what the tray counts, and at what cost."""

import pytest
from django.utils import timezone

from audit import follow
from inventory.models import Port, PortConflict
from partitions import operations
from partitions.board import board, tray
from partitions.models import Membership, Partition, StagedChange


def shown(provider, user=None):
    """{column: {hostname: direction}}, and the same for what is leaving."""
    columns = board(subnet=provider.subnet, user=user or provider.olga).columns
    here = {c.name: {card.hostname: card.mark and card.mark.direction.value for card in c.cards} for c in columns}
    gone = {c.name: [card.hostname for card in c.leaving] for c in columns if c.leaving}
    return here, gone


def card(provider, column, hostname, user=None):
    columns = {c.name: c for c in board(subnet=provider.subnet, user=user or provider.olga).columns}
    return next(card for card in columns[column].cards if card.hostname == hostname)


def test_columns_come_in_the_order_of_tenants(provider, training, inference, storage, berts):
    columns = board(subnet=provider.subnet, user=provider.olga).columns
    assert [(c.tenant, c.name, c.pkey) for c in columns] == [
        ("", "Unassigned", ""),
        ("Acme", "inference", "0x1b07"),
        ("Acme", "training", "0x2c41"),
        ("Bert", "berts", "0x3d02"),
        ("", "storage", "0x0100"),
    ]
    assert [c.is_provider for c in columns] == [False, False, False, False, True]
    assert columns[0].key == "unassigned"
    assert columns[2].key == training.public_id


def test_a_server_stands_in_each_of_its_partitions(provider, training, storage):
    server = provider.server(1)
    provider.server(2)
    provider.move(server, None, training)
    operations.stage_add(server=server, target=storage, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga))
    here, gone = shown(provider)
    assert here == {"Unassigned": {"srv-002": None}, "training": {"srv-001": None}, "storage": {"srv-001": None}}
    assert gone == {}
    assert card(provider, "training", "srv-001").kind == "full"
    assert card(provider, "storage", "srv-001").kind == "limited"
    assert card(provider, "storage", "srv-001").ports_here == 2


def test_a_staged_move_shows_at_both_ends(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    assert shown(provider) == (
        {"Unassigned": {}, "inference": {"srv-001": "in"}, "training": {}}, {"training": ["srv-001"]},
    )  # fmt: skip
    provider.move(server, inference, None)
    assert shown(provider) == (
        {"Unassigned": {"srv-001": "in"}, "inference": {}, "training": {}}, {"training": ["srv-001"]},
    )  # fmt: skip


def test_a_staged_first_move_leaves_unassigned(provider, training):
    provider.move(provider.server(1), None, training)
    assert shown(provider) == ({"Unassigned": {}, "training": {"srv-001": "in"}}, {"Unassigned": ["srv-001"]})


def test_a_staged_membership_is_marked_as_a_change(provider, training):
    from subnet.pkey import Membership as Kind

    server = provider.server(1)
    provider.settled_move(server, None, training)
    operations.stage_add(server=server, target=training, actor=provider.olga, membership=Kind.LIMITED)
    here, _ = shown(provider)
    assert here["training"] == {"srv-001": "change"}
    assert card(provider, "training", "srv-001").kind == "limited"


def test_a_server_of_which_one_port_is_in_counts_it(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    Membership.objects.filter(pk=Membership.objects.first().pk).delete()
    assert card(provider, "training", "srv-001").ports_here == 1
    Membership.objects.update(kind="limited")
    assert card(provider, "training", "srv-001").kind == "limited"


def test_marks_say_who(provider, training):
    provider.move(provider.server(1), None, training, by=provider.otto)
    mark = card(provider, "training", "srv-001").mark
    assert (mark.by, mark.is_mine) == ("Otto", False)
    assert card(provider, "training", "srv-001", provider.otto).mark.is_mine


def test_flags(provider):
    fine, disputed, unconfirmed, _ = (provider.server(number, ports=2 * (number < 4)) for number in range(1, 5))
    port = Port.objects.filter(hca__server=disputed).first()
    conflict = PortConflict.objects.create(port=port, claimed_by=fine, claim={})
    Port.objects.filter(pk=Port.objects.filter(hca__server=unconfirmed).first().pk).update(confirmed_at=None)
    cards = {c.hostname: c for c in board(subnet=provider.subnet, user=provider.olga).columns[0].cards}
    assert {name: (c.ports, c.is_in_conflict, c.is_unconfirmed, c.can_move) for name, c in cards.items()} == {
        "srv-001": (2, False, False, True),
        "srv-002": (2, True, False, False),
        "srv-003": (2, False, True, False),
        "srv-004": (0, False, False, False),
    }
    PortConflict.objects.filter(pk=conflict.pk).update(closed_at=timezone.now())
    assert card(provider, "Unassigned", "srv-002").can_move


def test_a_retired_partition_goes_when_it_is_empty(provider, training):
    provider.settled_move(provider.server(1), None, training)
    Partition.objects.update(retired_at=timezone.now())
    assert [c.is_retired for c in board(subnet=provider.subnet, user=provider.olga).columns] == [False, True]
    Membership.objects.all().delete()
    assert [c.name for c in board(subnet=provider.subnet, user=provider.olga).columns] == ["Unassigned"]


def test_the_tray_counts_mine_and_others(provider, training, inference):
    first = provider.server(1)
    provider.settled_move(first, None, training)
    provider.move(first, training, inference)
    provider.move(provider.server(2), None, training)
    provider.move(provider.server(3), None, training, by=provider.otto)
    seen = tray(subnet=provider.subnet, user=provider.olga)
    assert (seen.servers, seen.ports, seen.changes) == (3, 6, 8)
    assert (seen.mine.servers, seen.mine.ports, seen.mine.changes) == (2, 4, 6)
    assert [(pile.by, pile.servers, pile.ports) for pile in seen.others] == [("Otto", 1, 2)]
    assert tray(subnet=provider.subnet, user=provider.otto).mine.servers == 1
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    assert tray(subnet=provider.subnet, user=provider.olga).is_empty


def test_it_says_when_it_is_settling(provider, training):
    follow.tick()
    assert not board(subnet=provider.subnet, user=provider.olga).is_settling
    provider.move(provider.server(1), None, training)
    provider.prove(provider.roll_out(provider.olga))
    assert board(subnet=provider.subnet, user=provider.olga).is_settling


@pytest.mark.parametrize("servers", [1, 12])
def test_five_queries_whatever_the_size(provider, training, inference, berts, servers, django_assert_num_queries):
    for number in range(servers):
        provider.move(provider.server(number), None, training if number % 2 else berts)
    with django_assert_num_queries(5):
        board(subnet=provider.subnet, user=provider.olga)
    with django_assert_num_queries(4):
        board(subnet=provider.subnet, user=provider.olga, is_settling=False)
    with django_assert_num_queries(1):
        tray(subnet=provider.subnet, user=provider.olga)


def test_another_subnet_shows_nothing_of_this_one(provider, training):
    from inventory.models import Subnet

    provider.move(provider.server(1), None, training)
    empty = board(subnet=Subnet.objects.create(name="other"), user=provider.olga)
    assert ([c.name for c in empty.columns], empty.servers, empty.tray.is_empty) == (["Unassigned"], 0, True)
