"""What the plan shows, when it is stale, and what the rollout is given."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from deploy.errors import NothingToDo, StaleObservation
from deploy.models import Observation, Revision, Rollout
from inventory.models import ManagerHost, Port, Server
from partitions import operations
from partitions.errors import MoveRefused, StalePlan
from partitions.models import Partition, StagedChange
from partitions.selection import Selection
from subnet.errors import UnsafePlan


@pytest.fixture
def moved(provider, training, inference):
    """srv-001 is in training and staged into inference; srv-002 stays in training."""
    first, second = provider.server(1), provider.server(2)
    provider.move(first, None, training)
    provider.move(second, None, training)
    provider.settle(provider.roll_out(provider.olga))
    provider.move(first, training, inference)
    return provider


def go(provider, drawn, *, selection=None, digest=None, observation=None, reason="", looked_at=None):
    return operations.roll_out(
        subnet=provider.subnet, selection=selection or Selection.mine(), actor=provider.olga,
        plan_digest=digest or drawn.digest,
        observation=observation or drawn.observation, reason=reason, looked_at=looked_at,
    )  # fmt: skip


def test_it_shows_what_changes(moved):
    moved.observe()
    drawn = moved.plan(moved.olga)
    assert drawn.sentence == (
        "srv-001 moves from training to inference: 2 ports change their P_Keys, and every other port keeps what it has."
    )
    assert drawn.managers == ("m1", "m2")
    assert drawn.by_hand == 2 + 4 + 2 + 1 + 2  # look up, edit, copy, signal, check
    assert len(drawn.plan.affected) == 2
    assert drawn.people == ("Olga",)
    assert not drawn.refusals


def test_the_preview_is_the_revision_to_the_byte(moved):
    drawn = operations.draw_up_plan(
        subnet=moved.subnet, selection=Selection.mine(), user=moved.olga, observation=moved.observe()
    )
    rollout = go(moved, drawn)
    assert bytes(rollout.revision.data) == drawn.data
    assert rollout.revision.number == drawn.number
    assert rollout.before == drawn.observation


def test_each_file_is_compared_with_what_stands_on_its_host(moved):
    observation = moved.observe()
    drawn = moved.plan(moved.olga)
    m1, m2 = drawn.files
    assert (m1.host, m1.note) == ("m1", "")
    assert "+inference=0x1b07, defmember=limited :" in m1.diff
    observation.managers[0]["digest"] = Revision.objects.order_by("number").first().digest
    observation.managers[1]["digest"] = "f" * 64
    observation.save()
    m1, m2 = moved.plan(moved.olga).files
    assert "is not the current one" in m1.note
    assert "+training=0x2c41, defmember=limited :" in m1.diff
    assert (m2.before, m2.diff) == (None, "")
    assert "none of FabricUI's revisions" in m2.note


def test_a_file_that_was_not_read_says_so(moved):
    observation = moved.observe()
    observation.managers = [{"host": "m1", "digest": None, "revision": None, "role": "", "error": "permission denied"}]
    observation.save()
    m1, m2 = moved.plan(moved.olga).files
    assert "could not be read: permission denied" in m1.note
    assert "was not read" in m2.note


def test_a_renamed_server_alone_is_nothing_to_do(moved):
    moved.settle(moved.roll_out(moved.olga))
    moved.observe()
    Server.objects.filter(hostname="srv-002").update(hostname="renamed")
    drawn = moved.plan(moved.olga)
    assert drawn.is_empty
    assert drawn.sentence == "Nothing would change on the fabric."
    with pytest.raises(NothingToDo):
        go(moved, drawn)


def test_labels_in_the_file_are_made_safe(provider, training):
    server = provider.server(1)
    Server.objects.update(hostname="evil;\n# tenant bert")
    provider.move(server, None, training)
    drawn = provider.plan(provider.olga)
    assert b"# server evil_tenant_bert, 2 ports\n" in drawn.data


class TestStale:
    """A plan goes out only as it was looked at."""

    @pytest.fixture
    def drawn(self, moved):
        return operations.draw_up_plan(
            subnet=moved.subnet, selection=Selection.everything(), user=moved.olga, observation=moved.observe()
        )

    def stale(self, moved, drawn, **changed):
        revisions = Revision.objects.count()
        with pytest.raises(StalePlan) as stale:
            go(moved, drawn, selection=Selection.everything(), **changed)
        assert Revision.objects.count() == revisions
        assert not Rollout.objects.exclude(state="PROVEN").exists()
        return str(stale.value)

    def test_as_it_was_it_goes_out(self, moved, drawn):
        assert go(moved, drawn, selection=Selection.everything()).state == "QUEUED"

    def test_another_change_has_joined(self, moved, drawn, training):
        moved.move(moved.server(3), None, training, by=moved.otto)
        sentence = self.stale(moved, drawn)
        assert "the staged changes are others: now 6 of 2 servers, the newest by Otto at" in sentence

    def test_who_did_what_since_then_is_told(self, moved, drawn, training):
        looked_at = timezone.now()
        moved.move(moved.server(3), None, training, by=moved.otto)
        sentence = self.stale(moved, drawn, looked_at=looked_at)
        assert "; Otto · staged a change of · srv-003 · " in sentence
        assert "Olga" not in sentence

    def test_another_name(self, moved, drawn, inference):
        looked_at = timezone.now()
        operations.rename_partition(partition=inference, name="serving", actor=moved.otto)
        assert "Otto · renamed partition · inference · " in self.stale(moved, drawn, looked_at=looked_at)

    def test_a_change_was_discarded(self, moved, drawn):
        operations.discard(changes=StagedChange.objects.all(), actor=moved.otto)
        assert "none of the staged changes is left" in self.stale(moved, drawn)

    def test_the_parent_has_moved(self, moved, drawn, training):
        moved.move(moved.server(3), None, training, by=moved.otto)
        moved.settle(moved.roll_out(moved.otto))
        assert "revision 3 by Otto has become current at" in self.stale(moved, drawn)

    def test_the_parent_has_moved_and_with_it_a_port_of_this_plan(self, moved, drawn, training):
        operations.discard(changes=StagedChange.objects.all(), actor=moved.olga)
        moved.move(moved.servers[0], training, None, by=moved.otto)
        moved.settle(moved.roll_out(moved.otto))
        moved.move(moved.servers[0], None, training)
        sentence = self.stale(moved, drawn)
        assert "revision 3 by Otto has become current at" in sentence
        assert "and it changes port 0x0002c90400000101 of this plan" in sentence

    def test_another_look(self, moved, drawn):
        assert "another look at the fabric" in self.stale(moved, drawn, observation=moved.observe())

    def test_another_manager_host(self, moved, drawn):
        ManagerHost.objects.filter(name="m2").update(port_guid="0x0002c903000c0001")
        assert "the partitions or the manager hosts have changed" in self.stale(moved, drawn)

    def test_an_old_look(self, moved, drawn):
        old = timezone.now() - timedelta(seconds=settings.OBSERVATION_FRESH_S + 5)
        Observation.objects.filter(pk=drawn.observation.pk).update(read_at=old)
        drawn.observation.refresh_from_db()
        assert "Open the plan again to look once more" in self.stale(moved, drawn)

    def test_a_look_that_failed(self, moved, drawn):
        failed = Observation(subnet=moved.subnet, state="FAILED", failure="m1 cannot be reached.", why="plan")
        assert "m1 cannot be reached" in self.stale(moved, drawn, observation=failed)


class TestRebase:
    """A plan stands when only ports of others have changed since; then it goes out on the newer revision."""

    @pytest.fixture
    def newer(self, moved, training):
        """Olga looks at her plan; meanwhile Otto's rollout of another server is proven. Gives her plan."""
        drawn = operations.draw_up_plan(
            subnet=moved.subnet, selection=Selection.mine(), user=moved.olga, observation=moved.observe()
        )
        moved.move(moved.server(3), None, training, by=moved.otto)
        moved.settle(moved.roll_out(moved.otto))
        return drawn

    def test_a_plan_over_a_disjoint_revision_goes_out_on_it(self, moved, newer):
        proof = moved.observe()
        rollout = go(moved, newer)
        assert (rollout.parent.number, rollout.before) == (3, proof)
        guids = set(rollout.revision.partition_table().by_port())
        assert {str(port) for port in Port.objects.filter(hca__server__hostname="srv-003")} <= guids
        assert rollout.revision.partition_table().by_port().keys() >= newer.plan.affected

    def test_not_without_a_look_at_what_it_left(self, moved, newer):
        Observation.objects.update(read_at=timezone.now() - timedelta(seconds=settings.OBSERVATION_FRESH_S - 60))
        newer.observation.refresh_from_db()
        with pytest.raises((StalePlan, StaleObservation)):
            go(moved, newer)
        assert not Rollout.objects.exclude(state="PROVEN").exists()

    def test_not_when_a_port_of_it_holds_something_else(self, moved, newer):
        moved.observe(extra={str(min(newer.plan.affected)): 0x9234})
        with pytest.raises(StalePlan, match="revision 3 by Otto has become current"):
            go(moved, newer)

    def test_not_when_the_changes_are_others(self, moved, newer, training):
        moved.observe()
        moved.move(moved.server(4), None, training)
        with pytest.raises(StalePlan, match="the staged changes are others"):
            go(moved, newer)


def test_a_big_plan_wants_a_reason(provider, training):
    for number in range(1, 3):
        provider.move(provider.server(number), None, training)
    provider.settle(provider.roll_out(provider.olga))
    for server in provider.servers:
        provider.move(server, training, None)
    with pytest.raises(UnsafePlan):
        provider.roll_out(provider.olga)
    assert provider.roll_out(provider.olga, reason="end of contract").state == "QUEUED"


def test_what_staging_refused_the_rollout_refuses_again(provider, training, berts):
    server = provider.server(1)
    provider.move(server, None, berts)
    Port.objects.filter(hca__server=server).update(former_tenant=provider.acme)  # came true behind our back
    drawn = provider.plan(provider.olga)
    assert (drawn.changes, {waiting.tenants for waiting in drawn.waiting}) == ((), {("acme",)})
    with pytest.raises(MoveRefused, match="must be marked clean before berts of Bert may take it") as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "waits_for_clean"


def test_what_slips_past_the_waiting_is_refused_by_the_table(provider, berts, monkeypatch):
    """Two independent looks: the second compares tables and knows nothing of staged changes."""
    server = provider.server(1)
    provider.move(server, None, berts)
    Port.objects.filter(hca__server=server).update(former_tenant=provider.acme)
    monkeypatch.setattr("partitions.handover.split", lambda changes, current: (tuple(changes), ()))
    assert {violation.rule for violation in provider.plan(provider.olga).refusals} == {"between_tenants"}
    with pytest.raises(MoveRefused, match="joins only once that is proven and its server is marked clean"):
        provider.roll_out(provider.olga)


def test_the_plan_costs_few_queries(moved, django_assert_max_num_queries):
    moved.observe()
    with django_assert_max_num_queries(18):
        drawn = moved.plan(moved.olga)
        assert drawn.files
        assert drawn.servers
        assert drawn.sentence


def test_the_sentence_counts_what_it_cannot_name(provider, training, inference):
    first, second = provider.server(1), provider.server(2)
    provider.move(first, None, training)
    provider.move(second, None, training)
    assert provider.plan(provider.olga).sentence.startswith("2 servers move to training: 4 ports change")
    provider.move(second, training, inference)
    assert provider.plan(provider.olga).sentence.startswith("2 servers change in 2 partitions: 4 ports change")


def test_another_manager_host_is_a_plan_without_servers(moved):
    operations.discard(changes=StagedChange.objects.all(), actor=moved.olga)
    ManagerHost.objects.filter(name="m2").update(port_guid="0x0002c903000c0001")
    drawn = moved.plan(moved.olga)
    assert not drawn.is_empty
    assert drawn.sentence == ("No server moves, but the manager hosts have changed: 2 ports change their P_Keys.")


def test_nothing_joins_a_retired_partition_whoever_has_its_key_now(provider, training):
    """By its P_Key alone the port would land in the other tenant's partition."""
    provider.move(provider.server(1), None, training)
    Partition.objects.filter(pk=training.pk).update(retired_at=timezone.now() - timedelta(days=400))
    Partition.objects.create(subnet=provider.subnet, tenant=provider.bert, name="heir", pkey=training.pkey)
    with pytest.raises(MoveRefused) as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "retired"
    assert "is staged into training, which was retired at" in str(refused.value)
