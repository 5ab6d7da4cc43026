"""Moves, additions, undoing and discarding, as rows."""

import pytest

from audit.models import Event
from inventory.models import Port
from partitions import operations
from partitions.board import board
from partitions.errors import MoveRefused
from partitions.models import Membership as MembershipRow
from partitions.models import Partition, StagedChange
from people.models import User
from subnet.pkey import Membership


def staged(server=None) -> set[tuple[str, str, str | None, str | None]]:
    rows = StagedChange.objects.whole()
    if server is not None:
        rows = rows.of_server(server)
    return {(str(row.port), row.partition.name, row.kind_from, row.kind_to) for row in rows}


def ports(server) -> list[str]:
    return sorted(str(port) for hca in server.hcas.all() for port in hca.ports.all())


def test_a_move_from_unassigned_takes_every_port(provider, training):
    server = provider.server(1)
    rows = operations.stage_move(server=server, source=None, target=training, actor=provider.olga, reason="new job")
    assert staged() == {(guid, "training", None, "full") for guid in ports(server)}
    assert {(row.by, row.reason) for row in rows} == {(provider.olga, "new job")}


def test_a_move_leaves_the_source_and_joins_the_target(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    assert staged() == {(guid, "training", "full", None) for guid in ports(server)} | {
        (guid, "inference", None, "full") for guid in ports(server)
    }


def test_an_addition_keeps_the_source(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    operations.stage_add(server=server, target=inference, actor=provider.olga)
    assert staged() == {(guid, "inference", None, "full") for guid in ports(server)}


def test_adding_again_changes_the_membership(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    operations.stage_add(server=server, target=training, actor=provider.olga, membership=Membership.LIMITED)
    assert staged() == {(guid, "training", "full", "limited") for guid in ports(server)}
    operations.stage_add(server=server, target=training, actor=provider.olga)
    assert staged() == set()


def test_ethernet_ports_and_ports_of_another_fabric_stay_behind(provider, training):
    server = provider.server(1, ports=4)
    first, second, third, fourth = ports(server)
    from inventory.models import Port

    Port.objects.filter(guid=second).update(link_layer="ETHERNET")
    Port.objects.filter(guid=third).update(subnet_prefix="0xfe80000000000001")
    Port.objects.filter(guid=fourth).update(subnet_prefix=provider.subnet.prefix)
    provider.move(server, None, training)
    assert {guid for guid, *_ in staged()} == {first, fourth}


def test_moving_back_is_undoing(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    provider.move(server, inference, training)
    assert staged() == set()
    provider.move(server, training, None)
    assert staged() == {(guid, "training", "full", None) for guid in ports(server)}
    provider.move(server, None, training)
    assert staged() == set()


def test_moving_on_keeps_where_it_came_from(provider, training, inference):
    third = provider.partition("batch", provider.acme)
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    provider.move(server, inference, third)
    assert {(name, came, goes) for _, name, came, goes in staged()} == {
        ("training", "full", None), ("batch", None, "full"),
    }  # fmt: skip


def test_undoing_keeps_a_limited_membership_limited(provider, training, inference):
    server = provider.server(1)
    operations.stage_move(
        server=server, source=None, target=training, actor=provider.olga, membership=Membership.LIMITED
    )
    provider.settle(provider.roll_out(provider.olga))
    provider.move(server, training, inference)
    provider.move(server, inference, training)
    assert staged() == set()


def test_tenants_ports_join_the_providers_partitions_as_limited(provider, training, storage):
    server = provider.server(1)
    provider.move(server, None, training)
    operations.stage_add(server=server, target=storage, actor=provider.olga, membership=Membership.FULL)
    assert {(name, goes) for _, name, _, goes in staged()} == {("training", "full"), ("storage", "limited")}


def test_a_former_tenants_ports_do_too(provider, training, storage):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    provider.move(server, None, storage)
    assert {goes for *_, goes in staged()} == {"limited"}


def test_the_providers_own_servers_join_as_full(provider, storage):
    provider.move(provider.server(1), None, storage)
    assert {goes for *_, goes in staged()} == {"full"}


def test_every_move_is_an_event_about_the_server(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    event = Event.objects.filter(action="partitions:member:stage").order_by("number").last()
    assert (event.subject_kind, event.subject_key, event.subject_label) == ("server", server.public_id, "srv-001")
    assert event.before == {"partitions": ["training (0x2c41)"]}
    assert event.after["partitions"] == ["inference (0x1b07)"]
    assert event.tenant_key == provider.acme.public_id


def test_an_actor_will_do_for_a_person(provider, training):
    from people.actor import actor_of

    operations.stage_move(server=provider.server(1), source=None, target=training, actor=actor_of(provider.otto))
    assert StagedChange.objects.first().by == provider.otto


def test_discarding_ones_own_is_recorded(provider, training):
    server = provider.server(1)
    provider.move(server, None, training)
    assert operations.discard(changes=StagedChange.objects.filter(by=provider.olga), actor=provider.olga) == 2
    assert staged() == set()
    event = Event.objects.get(action="partitions:member:discard")
    assert (event.subject_label, event.before) == ("srv-001", {"staged": "to training", "by": ["Olga"]})


def test_an_operator_may_discard_anothers(provider, training):
    provider.move(provider.server(1), None, training)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.otto)
    event = Event.objects.get(action="partitions:member:discard")
    assert (event.actor_name, event.before["by"]) == ("Otto", ["Olga"])


def test_nobody_else_may(provider, training):
    provider.move(provider.server(1), None, training)
    ada = User.objects.create(username="ada", role=User.Role.AUDITOR)
    with pytest.raises(MoveRefused, match="Ask Olga or an operator") as refused:
        operations.discard(changes=StagedChange.objects.all(), actor=ada)
    assert refused.value.rule == "not_yours"
    assert len(staged()) == 2


def test_nothing_staged_is_current(provider, training):
    provider.move(provider.server(1), None, training)
    assert not MembershipRow.objects.exists()


def test_a_member_that_calls_itself_ethernet_leaves_with_its_server(provider, training):
    """The link layer is the server's own word: a tenant who is root must not keep a port back by it."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    Port.objects.filter(guid=ports(server)[0]).update(link_layer=Port.LinkLayer.ETHERNET)
    provider.move(server, training, None)
    assert staged() == {(guid, "training", "full", None) for guid in ports(server)}


def test_a_server_whose_members_all_call_themselves_ethernet_can_be_taken_away(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    Port.objects.update(link_layer=Port.LinkLayer.ETHERNET)
    (column,) = [column for column in board(subnet=provider.subnet, user=provider.olga).columns if column.pkey]
    (card,) = column.cards
    assert (card.ports, card.ports_here, card.can_move) == (2, 2, True)
    provider.move(server, training, None)
    assert len(staged()) == 2


@pytest.mark.parametrize("claim", [{"link_layer": "ETHERNET"}, {"subnet_prefix": "0xfec0000000000000"}])
def test_a_staged_port_that_calls_itself_something_else_moves_on_with_its_server(provider, training, claim):
    server = provider.server(1)
    provider.move(server, None, training)
    Port.objects.filter(guid=ports(server)[0]).update(**claim)
    provider.move(server, training, None)
    assert staged() == set()


@pytest.mark.parametrize("how", ["move", "add", "membership"])
def test_a_partition_that_was_retired_while_the_page_was_open_takes_nobody(provider, training, how):
    """The row was read before somebody retired it: what counts is what it says under the lock."""
    server, read_before = provider.server(1), Partition.objects.get(pk=training.pk)
    operations.retire_partition(partition=training, actor=provider.otto)
    calls = {
        "move": lambda: provider.move(server, None, read_before),
        "add": lambda: operations.stage_add(server=server, target=read_before, actor=provider.olga),
        "membership": lambda: operations.stage_membership(
            server=server, partition=read_before, membership=Membership.LIMITED, actor=provider.olga
        ),
    }
    with pytest.raises(MoveRefused) as refused:
        calls[how]()
    assert refused.value.rule == "retired"
    assert not StagedChange.objects.exists()
