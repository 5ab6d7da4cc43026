"""Only a confirmed port joins anything: asked when it is staged, and again when the plan is drawn and goes out."""

import pytest

from inventory.models import Port, PortConflict
from partitions import operations
from partitions.errors import MoveRefused
from partitions.models import Membership, StagedChange
from partitions.selection import Selection
from people.models import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(provider):
    return provider.server(1)


def unconfirm(server):
    Port.objects.filter(hca__server=server).update(confirmed_at=None, confirmed_how="")


@pytest.mark.parametrize("how", ["", "enrolled", "witnessed"])
def test_a_port_joins_only_as_the_site_asks(provider, server, training, how):
    Port.objects.filter(hca__server=server).update(confirmed_how=how)
    with pytest.raises(MoveRefused, match="not confirmed yet") as refused:
        provider.move(server, None, training)
    assert refused.value.rule == "unconfirmed"


def test_a_witnessed_port_joins_where_that_is_enough(provider, server, training, settings):
    settings.REGISTRATION_TRUST = "witnessed"
    Port.objects.filter(hca__server=server).update(confirmed_how="witnessed")
    provider.move(server, None, training)
    assert StagedChange.objects.count() == 2
    assert not provider.plan(provider.olga).refusals


def test_an_unconfirmed_port_may_still_leave(provider, server, training):
    provider.settled_move(server, None, training)
    unconfirm(server)
    provider.settled_move(server, training, None)
    assert not Membership.objects.exists()


def test_a_plan_asks_again(provider, server, training):
    provider.move(server, None, training)
    assert not provider.plan(provider.olga).refusals
    unconfirm(server)
    drawn = provider.plan(provider.olga)
    assert {violation.rule for violation in drawn.refusals} == {"unconfirmed"}
    with pytest.raises(MoveRefused, match="not confirmed any more") as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "unconfirmed"
    assert not provider.subnet.rollouts.exists()


def test_a_plan_refuses_a_port_that_is_claimed_since(provider, server, training):
    provider.move(server, None, training)
    other = provider.server(2)
    conflict = PortConflict.objects.create(
        port=Port.objects.filter(hca__server=server).first(), claimed_by=other, claim={}
    )
    with pytest.raises(MoveRefused, match="claimed by another server since") as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "conflict"
    operations_reject(conflict)
    assert provider.roll_out(provider.olga).state == "QUEUED"


def operations_reject(conflict):
    from inventory.operations import reject_claim
    from tests.inventory.reports import OLGA

    reject_claim(conflict=conflict, actor=OLGA)


# --- a card that has moved -------------------------------------------------------------------------------------------


@pytest.fixture
def claim(provider, server, training):
    """`server` is in training, and server 2 claims its first card."""
    provider.settled_move(server, None, training)
    port = Port.objects.filter(hca__server=server).order_by("guid").first()
    claimant = provider.server(2)
    return PortConflict.objects.create(
        port=port, claimed_by=claimant, claim={"device": "mlx5_9", "node_guid": str(port.hca.node_guid)}
    )


def test_a_moved_card_keeps_its_partition_in_a_free_server(provider, claim, training):
    ports = operations.move_card(conflict=claim, actor=provider.olga, reason="swapped")
    assert {port.server for port in ports} == {claim.claimed_by}
    assert Membership.objects.filter(port__in=ports, partition=training).count() == 1
    assert not StagedChange.objects.exists()


def test_a_moved_card_leaves_at_once_in_another_tenants_server(provider, claim, training, berts):
    provider.settled_move(claim.claimed_by, None, berts)
    ports = operations.move_card(conflict=claim, actor=provider.olga)
    change = StagedChange.objects.get()
    assert (change.port, change.partition, change.kind_to) == (ports[0], training, None)
    rollout = provider.roll_out(provider.olga, Selection.mine(), reason="swapped card")
    provider.settle(rollout)
    assert not Membership.objects.filter(port__in=ports).exists()
    assert Port.objects.get(pk=ports[0].pk).former_tenant == provider.acme  # the new server is bound to both


def test_a_moved_card_gives_no_tenant_a_server_too_many(provider, claim, server, training):
    """The former server stays Acme's by its other card, and the claimant would come to it."""
    Tenant.objects.filter(pk=provider.acme.pk).update(most_servers=1)
    with pytest.raises(MoveRefused, match="Acme has 1 server and may have 1, so srv-002 cannot come to it") as refused:
        operations.move_card(conflict=claim, actor=provider.olga)
    assert refused.value.rule == "quota"
    assert Port.objects.get(pk=claim.port.pk).hca.server == server
    assert not StagedChange.objects.exists()
    Tenant.objects.filter(pk=provider.acme.pk).update(most_servers=2)
    operations.move_card(conflict=claim, actor=provider.olga)


def test_the_last_card_of_a_server_takes_its_place_along(provider, claim, server, training):
    Membership.objects.filter(port__hca__server=server).exclude(port__hca=claim.port.hca).delete()
    Tenant.objects.filter(pk=provider.acme.pk).update(most_servers=1)
    operations.move_card(conflict=claim, actor=provider.olga)


def test_what_was_staged_on_a_moved_card_is_discarded(provider, claim, training, inference):
    PortConflict.objects.filter(pk=claim.pk).update(port=claim.port)
    StagedChange.objects.create(
        port=claim.port, partition=inference, kind_to="full", by=provider.otto, at=claim.opened_at
    )
    operations.move_card(conflict=claim, actor=provider.olga)
    assert not StagedChange.objects.exists()


def test_no_card_moves_under_a_running_rollout(provider, claim, server, training, inference):
    PortConflict.objects.all().update(closed_at=claim.opened_at)
    provider.move(server, training, inference)
    provider.roll_out(provider.olga)
    PortConflict.objects.all().update(closed_at=None)
    with pytest.raises(MoveRefused, match="is changing port"):
        operations.move_card(conflict=claim, actor=provider.olga)
    assert claim.port.hca.server == server
