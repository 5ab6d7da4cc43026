"""A server goes from one tenant to another: first away, then proven and clean, then to the other."""

import pytest

from deploy.models import Rollout
from inventory.models import Port
from partitions import operations
from partitions.board import board
from partitions.errors import MoveRefused, StalePlan
from partitions.models import Membership, StagedChange
from partitions.selection import Selection


def staged() -> set[tuple[str, str | None, str | None]]:
    return {
        (row.partition.name, row.kind_from, row.kind_to) for row in StagedChange.objects.select_related("partition")
    }


def members() -> set[str]:
    return set(Membership.objects.values_list("partition__name", flat=True))


@pytest.fixture
def leased(provider, training):
    """srv-001 is Acme's, in training."""
    provider.settled_move(provider.server(1), None, training)
    return provider.servers[0]


def test_it_is_staged_as_one_move(provider, leased, training, berts):
    provider.move(leased, training, berts)
    assert staged() == {("training", "full", None), ("berts", None, "full")}
    assert StagedChange.objects.count() == 4


def test_staging_back_undoes_both_halves(provider, leased, training, berts):
    provider.move(leased, training, berts)
    provider.move(leased, berts, training)
    assert staged() == set()


def test_the_plan_takes_the_first_half_and_names_the_second(provider, leased, training, berts):
    provider.move(leased, training, berts)
    provider.observe()
    drawn = provider.plan(provider.olga)
    assert {change.partition.name for change in drawn.changes} == {"training"}
    assert {(str(waits.server), waits.change.partition.name, waits.tenants) for waits in drawn.waiting} == {
        ("srv-001", "berts", ("acme",))
    }
    assert all(waits.is_member for waits in drawn.waiting)
    assert [partition.name for partition in drawn.table.partitions] == []
    assert not drawn.refusals


def test_the_whole_way(provider, leased, training, berts):
    provider.move(leased, training, berts)
    first = provider.roll_out(provider.olga)
    assert not first.revision.partition_table().partitions
    provider.settle(first)
    assert (members(), staged()) == (set(), {("berts", None, "full")})

    drawn = provider.plan(provider.olga)
    assert drawn.is_idle
    assert drawn.sentence == (
        "Nothing would change on the fabric. srv-001 waits to be marked clean before joining anything new."
    )
    assert not any(waits.is_member for waits in drawn.waiting)
    with pytest.raises(MoveRefused, match="srv-001 must be marked clean before berts of Bert may take it") as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "waits_for_clean"

    provider.observe()
    operations.mark_clean(server=leased, actor=provider.otto, reason="erased and rebooted")
    second = provider.roll_out(provider.olga)
    assert [partition.name for partition in second.revision.partition_table().partitions] == ["berts"]
    provider.settle(second)
    assert (members(), staged()) == ({"berts"}, set())
    assert set(Port.objects.values_list("former_tenant__slug", flat=True)) == {"bert"}


def test_the_second_half_waits_while_the_first_is_not_proven(provider, leased, training, berts):
    provider.move(leased, training, berts)
    rollout = provider.roll_out(provider.olga)
    provider.prove(rollout)  # and the rows do not show it yet
    assert {waits.change.partition.name for waits in provider.plan(provider.olga).waiting} == {"berts"}
    with pytest.raises((MoveRefused, StalePlan)):
        provider.roll_out(provider.olga)


@pytest.mark.parametrize("state", [Rollout.State.RESTORED, Rollout.State.STUCK, Rollout.State.REFUSED])
def test_a_first_half_that_was_not_proven_goes_again(provider, leased, training, berts, state):
    provider.move(leased, training, berts)
    provider.end(provider.roll_out(provider.olga), state)
    assert staged() == {("training", "full", None), ("berts", None, "full")}
    with pytest.raises(MoveRefused, match="is still in training, a partition of Acme"):
        operations.mark_clean(server=leased, actor=provider.otto, reason="erased")
    drawn = provider.plan(provider.olga)
    assert {change.partition.name for change in drawn.changes} == {"training"}


def test_what_waits_stops_nothing_else(provider, leased, training, berts):
    provider.move(leased, training, berts)
    provider.settle(provider.roll_out(provider.olga))
    provider.move(provider.server(2), None, training)
    rollout = provider.roll_out(provider.olga)
    assert [partition.name for partition in rollout.revision.partition_table().partitions] == ["training"]


@pytest.mark.parametrize("whose", ["acme", "bert"])
def test_each_tenants_selection_holds_its_half(provider, leased, training, berts, whose):
    provider.move(leased, training, berts)
    drawn = provider.plan(provider.olga, Selection.of_tenant(getattr(provider, whose)))
    assert not drawn.refusals  # the half that waits is left by rights
    assert len(drawn.changes) == (2 if whose == "acme" else 0)
    assert len(drawn.waiting) == (0 if whose == "acme" else 2)


def test_one_port_that_was_anothers_keeps_the_whole_server_waiting(provider, berts):
    server = provider.server(1)
    Port.objects.filter(pk=Port.objects.order_by("guid").first().pk).update(former_tenant=provider.acme)
    provider.move(server, None, berts)
    assert len(provider.plan(provider.olga).waiting) == 2


def test_a_current_member_whose_port_lost_its_memory_waits_too(provider, leased, training, berts):
    Port.objects.update(former_tenant=None)
    provider.move(leased, training, berts)
    assert len(provider.plan(provider.olga).waiting) == 2


def test_back_to_the_former_tenant_nothing_waits(provider, leased, training, inference):
    provider.settled_move(leased, training, None)
    provider.move(leased, None, inference)
    assert provider.plan(provider.olga).waiting == ()


def test_a_server_that_had_anothers_key_without_a_proof_waits(provider, training, berts):
    """A rollout that ended STUCK has placed the tenant's key; let go of, it still stands on the fabric."""
    server = provider.server(1)
    provider.move(server, None, training)
    provider.end(provider.roll_out(provider.olga), Rollout.State.STUCK)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    provider.move(server, None, berts)
    assert len(provider.plan(provider.olga).waiting) == 2


def test_a_move_of_which_nothing_was_placed_binds_nobody(provider, training, berts):
    server = provider.server(1)
    provider.move(server, None, training)
    provider.end(provider.roll_out(provider.olga), Rollout.State.REFUSED)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    provider.move(server, None, berts)
    assert provider.plan(provider.olga).waiting == ()


def test_a_server_that_leaves_its_tenant_takes_none_of_the_providers_keys_either(provider, leased, training, storage):
    """The port takes no new key until the server is clean, whoever's it is."""
    operations.stage_add(server=leased, target=storage, actor=provider.olga)
    assert provider.plan(provider.olga).waiting == ()  # it stays Acme's, and tenants share what is the provider's
    provider.move(leased, training, None)
    assert {waits.change.partition.name for waits in provider.plan(provider.olga).waiting} == {"storage"}

    provider.settle(provider.roll_out(provider.olga))
    assert members() == set()
    drawn = provider.plan(provider.olga)
    assert drawn.is_idle
    assert len(drawn.waiting) == 2
    with pytest.raises(MoveRefused, match="marked clean before storage of the provider may take it"):
        provider.roll_out(provider.olga)

    provider.observe()
    operations.mark_clean(server=leased, actor=provider.otto, reason="erased")
    provider.settle(provider.roll_out(provider.olga))
    assert members() == {"storage"}


def test_a_server_that_stays_in_one_of_its_tenants_partitions_may_join_the_providers(
    provider, leased, training, inference, storage
):
    operations.stage_add(server=leased, target=inference, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga))
    provider.move(leased, training, None)
    operations.stage_add(server=leased, target=storage, actor=provider.olga)
    assert provider.plan(provider.olga).waiting == ()


def test_back_with_its_former_tenant_it_may_join_the_providers_at_once(provider, leased, training, inference, storage):
    provider.settled_move(leased, training, None)
    provider.move(leased, None, inference)
    operations.stage_add(server=leased, target=storage, actor=provider.olga)
    assert provider.plan(provider.olga).waiting == ()


def test_a_providers_key_that_slipped_into_a_plan_is_refused_from_the_plan_itself(
    provider, leased, training, storage, monkeypatch
):
    """Whatever staged it: the plan is judged by what it does to ports."""
    provider.move(leased, training, None)
    provider.move(leased, None, storage)
    monkeypatch.setattr("partitions.handover.split", lambda rows, current: (tuple(rows), ()))
    refused = [violation for violation in provider.plan(provider.olga).refusals if violation.rule == "not_clean"]
    assert len(refused) == 2
    assert "leaves acme" in refused[0].sentence


def test_the_board_shows_that_the_providers_waits(provider, leased, training, storage):
    provider.move(leased, training, None)
    provider.move(leased, None, storage)
    columns = board(subnet=provider.subnet, user=provider.olga).columns
    [card] = next(column.cards for column in columns if column.name == "storage")
    assert card.mark is not None
    assert card.mark.waits
