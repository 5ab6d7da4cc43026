"""Every refusal of a move: its rule, a sentence with what to do, and nothing left behind."""

import pytest
from django.utils import timezone

from deploy.models import Fence, Rollout
from inventory.models import ManagerHost, Port, PortConflict, Subnet
from partitions import operations
from partitions.errors import MoveRefused
from partitions.models import Partition, StagedChange
from subnet.pkey import Membership


def refusal(rule: str, **move: object) -> str:
    """The sentence with which the move is refused by `rule`; nothing may have changed."""
    before = list(StagedChange.objects.order_by("pk").values())
    with pytest.raises(MoveRefused) as refused:
        operations.stage_move(**move)
    assert refused.value.rule == rule, str(refused.value)
    assert list(StagedChange.objects.order_by("pk").values()) == before
    return str(refused.value)


def first_port(server) -> Port:
    return Port.objects.filter(hca__server=server).order_by("guid").first()


def test_a_server_without_ports(provider, training):
    server = provider.server(1, ports=0)
    sentence = refusal("no_ports", server=server, source=None, target=training, actor=provider.olga)
    assert sentence.startswith("srv-001 has reported no InfiniBand port")


def test_a_server_with_ethernet_ports_only(provider, training):
    server = provider.server(1, link_layer="ETHERNET")
    refusal("no_ports", server=server, source=None, target=training, actor=provider.olga)


def test_an_unconfirmed_port(provider, training):
    server = provider.server(1)
    port = first_port(server)
    Port.objects.filter(pk=port.pk).update(confirmed_at=None)
    sentence = refusal("unconfirmed", server=server, source=None, target=training, actor=provider.olga)
    assert f"Port {port.guid} of srv-001 is not confirmed yet" in sentence


def test_a_port_in_conflict_until_it_is_decided(provider, training):
    server, other = provider.server(1), provider.server(2)
    conflict = PortConflict.objects.create(port=first_port(server), claimed_by=other, claim={})
    sentence = refusal("conflict", server=server, source=None, target=training, actor=provider.olga)
    assert "also claimed by srv-002" in sentence
    conflict.closed_at = timezone.now()
    conflict.save()
    provider.move(server, None, training)


def test_the_sm_port_of_a_manager_host(provider, training):
    server = provider.server(1)
    ManagerHost.objects.filter(name="m2").update(port_guid=first_port(server).guid)
    sentence = refusal("sm_port", server=server, source=None, target=training, actor=provider.olga)
    assert "SM port of manager host m2" in sentence


def test_a_retired_partition(provider, training):
    server = provider.server(1)
    Partition.objects.update(retired_at=timezone.now())
    training.refresh_from_db()
    sentence = refusal("retired", server=server, source=None, target=training, actor=provider.olga)
    assert "training was retired at" in sentence


def test_target_equal_to_source(provider, training):
    server = provider.server(1)
    provider.move(server, None, training)
    refusal("same_partition", server=server, source=training, target=training, actor=provider.olga)
    refusal("same_partition", server=server, source=None, target=None, actor=provider.olga)


def test_adding_where_it_is_already(provider, training):
    server = provider.server(1)
    provider.move(server, None, training)
    with pytest.raises(MoveRefused, match="nothing to add"):
        operations.stage_add(server=server, target=training, actor=provider.olga)


def test_a_partition_of_another_subnet(provider):
    elsewhere = Subnet.objects.create(name="other")
    target = operations.create_partition(subnet=elsewhere, tenant=provider.acme, name="x", actor=provider.olga)
    sentence = refusal("another_subnet", server=provider.server(1), source=None, target=target, actor=provider.olga)
    assert "subnet lab" in sentence


def test_anothers_change_names_who_when_and_from_what(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference, by=provider.otto)
    at = StagedChange.objects.first().at
    sentence = refusal("another_person", server=server, source=inference, target=None, actor=provider.olga)
    assert f"Otto has already staged srv-001 from training to inference at {at:%Y-%m-%d %H:%M} UTC" in sentence
    with pytest.raises(MoveRefused, match="Otto has already staged"):
        operations.stage_add(server=server, target=training, actor=provider.olga)


def test_a_source_that_the_server_has_left_names_who_moved_it(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference, by=provider.otto)
    provider.settle(provider.roll_out(provider.otto))
    sentence = refusal("source_lost", server=server, source=training, target=None, actor=provider.olga)
    assert "srv-001 is not in training any more: Otto moved it at" in sentence
    assert "Now it is in inference." in sentence


def test_a_server_that_is_no_longer_unassigned(provider, training, inference):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    sentence = refusal("source_lost", server=server, source=None, target=inference, actor=provider.olga)
    assert "srv-001 is no longer unassigned: Olga moved it at" in sentence


class TestTwoTenants:
    """A server is wanted in one tenant's partitions at a time; how it changes hands is in test_handover.py."""

    def test_a_staged_member_of_another_tenant(self, provider, training, berts):
        server = provider.server(1)
        provider.move(server, None, training)
        with pytest.raises(MoveRefused, match="with one tenant at a time: move it out of training as well") as refused:
            operations.stage_add(server=server, target=berts, actor=provider.olga)
        assert refused.value.rule == "two_tenants"

    def test_a_member_that_would_stay_in_another_of_the_former_tenants_partitions(
        self, provider, training, inference, berts
    ):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        operations.stage_add(server=server, target=inference, actor=provider.olga)
        sentence = refusal("two_tenants", server=server, source=training, target=berts, actor=provider.olga)
        assert "srv-001 would be in inference, a partition of Acme, and in berts of Bert" in sentence

    def test_a_staged_member_may_be_moved_over_before_anything_went_out(self, provider, training, berts):
        server = provider.server(1)
        provider.move(server, None, training)
        provider.move(server, training, berts)
        assert {row.partition.name for row in StagedChange.objects.all()} == {"berts"}


class TestTheProvidersPartitions:
    """Tenants share them as limited members; the provider's own servers are full ones."""

    def test_a_full_member_of_the_providers_partition_joins_no_tenant(self, provider, storage, training):
        server = provider.server(1)
        provider.settled_move(server, None, storage)
        with pytest.raises(MoveRefused) as refused:
            operations.stage_add(server=server, target=training, actor=provider.olga)
        assert refused.value.rule == "full_in_shared"
        provider.move(server, storage, training)  # leaving it is fine

    def test_a_tenants_server_is_never_full_in_it(self, provider, storage, training):
        server = provider.server(1)
        provider.move(server, None, training)
        operations.stage_add(server=server, target=storage, actor=provider.olga)
        with pytest.raises(MoveRefused, match="It stays limited") as refused:
            operations.stage_membership(
                server=server, partition=storage, membership=Membership.FULL, actor=provider.olga
            )
        assert refused.value.rule == "limited_in_shared"


def test_a_membership_where_the_server_is_not(provider, training):
    server = provider.server(1)
    with pytest.raises(MoveRefused) as refused:
        operations.stage_membership(
            server=server, partition=training, membership=Membership.LIMITED, actor=provider.olga
        )
    assert refused.value.rule == "source_lost"


def test_what_a_running_rollout_changes_waits_for_its_end(provider, training, inference):
    moving, other = provider.server(1), provider.server(2)
    provider.move(moving, None, training)
    rollout = provider.roll_out(provider.olga)
    sentence = refusal("rolling_out", server=moving, source=training, target=inference, actor=provider.olga)
    assert "A rollout that Olga started at" in sentence
    with pytest.raises(MoveRefused) as refused:
        operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    assert refused.value.rule == "rolling_out"
    provider.move(other, None, training, by=provider.otto)  # another server is free
    provider.settle(rollout)
    provider.move(moving, training, inference)


def test_a_rollout_that_only_owes_a_host_its_copy_holds_nobody_up(provider, training, inference):
    """DEGRADED: proven on the fabric and current, while one manager host still waits for the file."""
    server = provider.server(1)
    provider.move(server, None, training)
    rollout = provider.roll_out(provider.olga)
    Fence.objects.update(current=rollout.revision)  # and the rollout keeps the fence
    Rollout.objects.update(state=Rollout.State.DEGRADED)
    provider.move(server, training, inference)
    assert {row.partition.name for row in StagedChange.objects.all()} == {"training", "inference"}
