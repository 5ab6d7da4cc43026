"""Who may mark a server clean, and when: never before the fabric is proven to give it no tenant's key."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from deploy.models import Observation, Rollout
from inventory.models import Port
from partitions import mirror, operations
from partitions.errors import MoveRefused
from partitions.models import Cleaning, StagedChange
from people.models import User


@pytest.fixture
def left(provider, training):
    """srv-001 was Acme's, and that it left is proven."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    provider.observe()
    return server


def refusal(provider, rule: str, server, *, reason="erased", actor=None) -> str:
    with pytest.raises(MoveRefused) as refused:
        operations.mark_clean(server=server, actor=actor or provider.otto, reason=reason)
    assert refused.value.rule == rule, str(refused.value)
    assert not Cleaning.objects.exists()
    return str(refused.value)


def attempt(provider, server, training, state) -> None:
    """A rollout that gave the server Acme's key and ended in `state`; nothing is staged any more."""
    provider.move(server, None, training)
    provider.end(provider.roll_out(provider.olga), state)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)


def test_it_frees_every_port_and_is_recorded(provider, left):
    rows = operations.mark_clean(server=left, actor=provider.otto, reason="erased and rebooted")
    assert {(row.tenant, row.by, row.reason, row.revision.number) for row in rows} == {
        (provider.acme, provider.otto, "erased and rebooted", 3)
    }
    assert set(Port.objects.values_list("former_tenant", flat=True)) == {None}
    event = Event.objects.get(action="partitions:server:clean")
    assert (event.subject_label, event.actor_name, event.reason) == ("srv-001", "Otto", "erased and rebooted")
    assert (event.before, event.after) == ({"former_tenants": ["Acme"]}, {"ports": 2, "revision": 3})
    assert event.tenant_key == provider.acme.public_id


def test_it_wants_a_reason(provider, left):
    assert "Say how srv-001 was made clean" in refusal(provider, "reason_needed", left, reason="  ")


def test_it_wants_an_operator(provider, left):
    ada = User.objects.create(username="ada", role=User.Role.AUDITOR)
    refusal(provider, "not_yours", left, actor=ada)


def test_a_server_that_nobody_had(provider):
    refusal(provider, "not_bound", provider.server(1))


def test_a_server_that_is_still_a_member(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, None)
    assert "still in training, a partition of Acme" in refusal(provider, "still_member", server)


def test_a_server_whose_removal_is_under_way(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, None)
    provider.roll_out(provider.olga)
    refusal(provider, "still_member", server)


def test_a_server_that_is_just_given_a_key(provider, left, training):
    provider.move(left, None, training)
    provider.roll_out(provider.olga)
    refusal(provider, "rolling_out", left)


def test_a_port_that_still_holds_the_key(provider, left, training):
    port = Port.objects.order_by("guid").first()
    provider.observe(extra={str(port.guid): 0x8000 | training.pkey})
    assert "still holds P_Key 0x2c41" in refusal(provider, "still_held", left)


def test_a_look_from_before_the_removal_says_nothing(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    early = provider.observe()  # it holds the key, as it should
    provider.move(server, training, None)
    provider.settle(provider.roll_out(provider.olga, reason="test"))
    Observation.objects.exclude(pk=early.pk).update(read_at=early.read_at - timedelta(seconds=1))
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")


def test_a_manager_host_with_another_file(provider, left):
    observation = provider.observe()
    observation.managers[1]["digest"] = "f" * 64
    observation.save()
    assert "The file of manager host m2 is not the file of revision 3" in refusal(provider, "not_proven", left)


def test_a_manager_host_with_another_file_than_the_first_revision(provider, training):
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.RESTORED)
    observation = provider.observe()
    observation.managers[1]["digest"] = "f" * 64
    observation.save()
    assert "The file of manager host m2 is not the file of revision 1" in refusal(provider, "not_proven", server)


def test_a_key_that_a_stuck_rollout_gave(provider, training):
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.STUCK)
    provider.observe()
    assert "ended stuck" in refusal(provider, "not_proven", server)
    provider.settled_move(provider.server(2), None, training)  # the next proof
    provider.observe()
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")


def test_a_key_that_a_restored_rollout_gave_until_the_port_was_read(provider, training):
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.RESTORED)
    Observation.objects.update(read_at=timezone.now() - timedelta(seconds=60))
    assert "the port was not read since" in refusal(provider, "not_proven", server)
    provider.observe()
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")


def test_an_attempt_from_before_the_cleaning_is_forgotten_and_a_new_one_is_not(provider, training):
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.RESTORED)
    provider.observe()
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")
    mirror.catch_up(provider.subnet)
    assert set(Port.objects.values_list("former_tenant", flat=True)) == {None}
    attempt(provider, server, training, Rollout.State.RESTORED)
    mirror.catch_up(provider.subnet)
    assert set(Port.objects.values_list("former_tenant__slug", flat=True)) == {"acme"}


def test_another_proof_that_did_not_read_the_port_does_not_free_it(provider, training):
    """A proof says nothing of ports that it does not concern and could not read: they are only listed as owed."""
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.RESTORED)
    provider.settled_move(provider.server(2), None, training)
    provider.observe(unread=[port.guid for port in Port.objects.filter(hca__server=server)])
    assert "was not read since" in refusal(provider, "not_proven", server)
    provider.observe()
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")


def test_a_removal_that_was_proven_after_an_attempt_needs_no_other_look(provider, training):
    """The server may be switched off to be erased once the proof has seen its ports without the key."""
    server = provider.server(1)
    attempt(provider, server, training, Rollout.State.RESTORED)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    provider.observe(unread=[port.guid for port in Port.objects.filter(hca__server=server)])
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")
