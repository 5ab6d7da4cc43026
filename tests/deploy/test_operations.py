"""What people do: propose, start, cancel, ask again. Each refusal says why, and nothing is half done."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from audit.models import Event
from deploy import operations, queries
from deploy.errors import (
    Immutable,
    NothingToDo,
    NotWritable,
    PolicyRefused,
    StaleObservation,
    StaleRevision,
    SubnetBusy,
    SubnetFrozen,
    TooLate,
)
from deploy.models import Observation, Revision, Rollout
from inventory.models import Subnet
from subnet.guid import GUID
from subnet.partitions_conf import parse_strict
from subnet.pkey import Membership
from subnet.table import Member, Partition, PartitionTable
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene, one_host_at_a_time
from tests.deploy.fakes import failing, unreachable

State = Rollout.State


def actions() -> list[str]:
    return list(Event.objects.order_by("number").values_list("action", flat=True))


# --- revisions ------------------------------------------------------------------------------------------------------


def test_the_first_revision_is_current_at_once(scene: Scene):
    assert queries.current_revision(scene.subnet) == scene.first
    assert (scene.first.number, scene.first.parent) == (1, None)
    parsed = parse_strict(bytes(scene.first.data))
    assert parsed.header.parent == "0" * 64
    assert parsed.table == scene.first.partition_table() == scene.table()
    assert actions() == ["deploy:revision:propose"]


def test_there_is_one_first_revision(scene: Scene):
    with pytest.raises(StaleRevision):
        operations.record_first_revision(subnet=scene.subnet, table=scene.table(), actor=OLGA)


def test_a_proposed_revision_knows_its_parent_and_renders_once(scene: Scene):
    revision = scene.propose(s1=INFERENCE)
    assert (revision.number, revision.parent, revision.author_name) == (2, scene.first, "Olga")
    assert parse_strict(bytes(revision.data)).header.parent == scene.first.digest
    assert queries.current_revision(scene.subnet) == scene.first  # proposed, not proven
    event = Event.objects.order_by("-number").first()
    assert event is not None
    assert (event.subject_kind, event.subject_key, event.reason) == ("revision", revision.public_id, "for a test")


def test_bytes_that_opensm_would_refuse_never_become_a_revision(scene: Scene, monkeypatch):
    monkeypatch.setattr(operations, "render", lambda table, header: b"Default=0x7fff:ALL=limited,\n;\n")
    with pytest.raises(PolicyRefused) as refusal:
        scene.propose(s1=INFERENCE)
    assert {violation.rule for violation in refusal.value.violations} == {"opensm_refuses"}
    assert Revision.objects.count() == 1


def test_the_same_proposal_twice_is_one_revision(scene: Scene):
    assert scene.propose(s1=INFERENCE) == scene.propose(s1=INFERENCE)
    assert Revision.objects.count() == 2
    assert scene.propose(s2=INFERENCE).number == 3


def test_a_proposal_that_changes_nothing_is_refused(scene: Scene):
    with pytest.raises(NothingToDo):
        scene.propose()


def test_a_renamed_server_alone_is_nothing_to_do(scene: Scene):
    table = scene.table()
    renamed = PartitionTable(
        sm_ports=table.sm_ports, partitions=table.partitions, labels=dict.fromkeys(table.labels, "renamed")
    )
    with pytest.raises(NothingToDo):
        operations.propose(subnet=scene.subnet, table=renamed, parent=scene.first, actor=OLGA)


def test_a_renamed_partition_is_something_to_do(scene: Scene):
    table = scene.table()
    first, *others = table.partitions
    renamed = Partition(first.pkey, "renamed", first.tenant, first.members)
    table = PartitionTable(sm_ports=table.sm_ports, partitions=(renamed, *others), labels=table.labels)
    assert operations.propose(subnet=scene.subnet, table=table, parent=scene.first, actor=OLGA).number == 2


def test_a_proposal_on_an_old_parent_is_stale(scene: Scene):
    scene.run(scene.begin(s1=INFERENCE))
    scene.where[2] = INFERENCE
    with pytest.raises(StaleRevision, match="revision 2 is current"):
        operations.propose(subnet=scene.subnet, table=scene.table(), parent=scene.first, actor=OLGA)


def test_a_table_that_breaks_a_rule_is_refused_with_the_violations(scene: Scene):
    guid = scene.site.guids(1)[0]
    table = scene.table()
    stranger = Partition(TRAINING, "training", "acme", (Member(guid, Membership.FULL),))
    other = Partition(INFERENCE, "inference", "globex", (Member(guid, Membership.FULL),))
    bad = PartitionTable(sm_ports=table.sm_ports, partitions=(stranger, other))
    with pytest.raises(PolicyRefused, match=guid) as refusal:
        operations.propose(subnet=scene.subnet, table=bad, parent=scene.first, actor=OLGA)
    assert [violation.rule for violation in refusal.value.violations] == ["two_tenants"]
    assert Revision.objects.count() == 1


def test_more_keys_than_a_port_was_seen_to_hold_are_refused(scene: Scene):
    scene.look()
    guid = scene.site.guids(1)[0]
    partitions = tuple(
        Partition(INFERENCE.__class__(number), f"p{number}", "acme", (Member(guid, Membership.FULL),))
        for number in range(1, 65)
    )
    table = PartitionTable(sm_ports=scene.table().sm_ports, partitions=partitions)
    with pytest.raises(PolicyRefused, match="64 P_Keys"):
        operations.propose(subnet=scene.subnet, table=table, parent=scene.first, actor=OLGA)


def test_a_table_without_a_registered_sm_port_is_refused(scene: Scene):
    table = PartitionTable(sm_ports=(GUID("0x0002c90300030001"),), partitions=scene.table().partitions)
    with pytest.raises(PolicyRefused, match="0x0002c90300030002"):
        operations.propose(subnet=scene.subnet, table=table, parent=scene.first, actor=OLGA)


def test_observe_mode_takes_no_proposal(scene: Scene):
    Subnet.objects.update(mode=Subnet.Mode.OBSERVE)
    with pytest.raises(NotWritable):
        scene.propose(s1=INFERENCE)


def test_a_revision_cannot_be_changed_or_removed(scene: Scene):
    revision = scene.first
    with pytest.raises(Immutable):
        revision.save()
    with pytest.raises(Immutable):
        revision.delete()
    with pytest.raises(Immutable):
        Revision.objects.filter(pk=revision.pk).update(reason="no")
    with pytest.raises(Immutable):
        Revision.objects.all().delete()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE deploy_revision SET reason = 'no' WHERE id = %s",
        "DELETE FROM deploy_revision WHERE id = %s",
    ],
)
def test_the_database_refuses_it_too(scene: Scene, sql: str):
    with pytest.raises(DatabaseError, match="written once"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, [scene.first.pk])
    assert Revision.objects.get().reason == ""


# --- start ----------------------------------------------------------------------------------------------------------


def test_a_double_click_is_one_rollout(scene: Scene, nudges: list[str], django_capture_on_commit_callbacks):
    revision, before = scene.propose(s1=INFERENCE), scene.look()
    with django_capture_on_commit_callbacks(execute=True):
        first, second = scene.start(revision, before), scene.start(revision, before)
    assert first == second
    assert Rollout.objects.count() == 1
    assert nudges.count("deploy.tasks.run_rollout") == 1
    assert actions().count("deploy:rollout:start") == 1


def test_another_revision_waits_until_the_first_has_ended(scene: Scene):
    scene.begin(s1=INFERENCE)
    other = scene.propose(s2=INFERENCE)
    with pytest.raises(SubnetBusy, match="revision 2 is queued"):
        scene.start(other, queries.latest_observation(scene.subnet))
    assert Rollout.objects.count() == 1


def test_a_revision_whose_parent_is_current_no_more_is_stale(scene: Scene):
    other = scene.propose(s2=INFERENCE)
    scene.where[2] = TRAINING
    scene.run(scene.begin(s1=INFERENCE))
    with pytest.raises(StaleRevision, match="Revision 2 stands on revision 1, but revision 3 is current"):
        scene.start(other)


def test_start_takes_the_next_generation(scene: Scene):
    first = scene.run(scene.begin(s1=INFERENCE))
    second = scene.run(scene.begin(s2=INFERENCE))
    assert (first.generation, second.generation) == (1, 2)
    assert scene.fence.generation == 2


@pytest.mark.parametrize("mode", [Subnet.Mode.OBSERVE, Subnet.Mode.PROPOSE])
def test_only_write_mode_starts(scene: Scene, mode: str):
    revision = scene.propose(s1=INFERENCE)
    Subnet.objects.update(mode=mode)
    with pytest.raises(NotWritable):
        scene.start(revision)


def test_a_frozen_subnet_starts_nothing(scene: Scene):
    revision = scene.propose(s1=INFERENCE)
    Subnet.objects.update(frozen_at=scene.clock(), frozen_reason="cabling")
    with pytest.raises(SubnetFrozen, match="cabling"):
        scene.start(revision)
    assert scene.fence.rollout is None


def test_tables_that_are_too_old_are_refused(scene: Scene):
    revision, before = scene.propose(s1=INFERENCE), scene.look()
    scene.clock.forward(settings.OBSERVATION_FRESH_S + 1)
    with pytest.raises(StaleObservation, match="s old"):
        scene.start(revision, before)


def test_tables_from_before_the_last_rollout_are_refused(scene: Scene):
    old = scene.look()
    scene.run(scene.begin(s1=INFERENCE))
    with pytest.raises(StaleObservation, match="before the last rollout ended"):
        scene.start(scene.propose(s2=INFERENCE), old)


def test_a_look_that_failed_is_refused(scene: Scene):
    scene.site.fail = failing(unreachable, verb="read_tables")
    before = scene.look()
    assert before.state == Observation.State.FAILED
    with pytest.raises(StaleObservation, match="read no tables"):
        scene.start(scene.propose(s1=INFERENCE), before)


# --- cancel, ask again ----------------------------------------------------------------------------------------------


def test_a_queued_rollout_can_be_cancelled(scene: Scene):
    rollout = scene.begin()
    operations.cancel(rollout=rollout, actor=OLGA, reason="Wrong server.")
    assert (rollout.state, rollout.cause) == (State.CANCELLED, "Cancelled by Olga. Wrong server.")
    assert queries.running_rollout(scene.subnet) is None
    calls = len(scene.site.calls)
    assert scene.run(rollout).state == State.CANCELLED
    assert len(scene.site.calls) == calls
    assert scene.run(scene.start(rollout.revision)).state == State.PROVEN


@pytest.mark.parametrize(
    ("verb", "match"),
    [("place", "placing by now, and its file may already stand"), ("reload", "reloading by now")],
)
def test_once_it_places_a_rollout_cannot_be_cancelled(scene: Scene, monkeypatch, verb: str, match: str):
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()
    refused = []

    def fail(host: str, its_verb: str, when: str) -> None:
        if (its_verb, when) == (verb, "before") and not refused:
            with pytest.raises(TooLate, match=match) as error:
                operations.cancel(rollout=Rollout.objects.get(pk=rollout.pk), actor=OLGA)
            refused.append(error)

    scene.site.fail = fail
    assert scene.run(rollout).state == State.PROVEN
    assert refused


def test_while_it_stages_a_rollout_can_be_cancelled_and_places_nothing(scene: Scene, monkeypatch):
    one_host_at_a_time(monkeypatch)
    rollout = scene.begin()

    def fail(host: str, verb: str, when: str) -> None:
        if (host, verb, when) == ("mgr-b", "stage", "before"):
            operations.cancel(rollout=Rollout.objects.get(pk=rollout.pk), actor=OLGA, reason="Wrong server.")

    scene.site.fail = fail
    assert scene.run(rollout).state == State.CANCELLED
    assert "place" not in {verb for _, verb in scene.site.calls}
    assert scene.digests() == {scene.first.digest}
    assert queries.running_rollout(scene.subnet) is None
    scene.site.fail = lambda *_: None
    assert scene.run(scene.start(rollout.revision)).state == State.PROVEN


def test_what_waits_or_is_over_cannot_be_cancelled_and_says_what_to_do_instead(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(unreachable, verb="barrier")
    scene.run(rollout)
    with pytest.raises(TooLate, match="unproven: its file stands on the manager hosts"):
        operations.cancel(rollout=rollout, actor=OLGA)
    scene.site.fail = lambda *_: None
    scene.later(rollout)
    with pytest.raises(TooLate, match="proven already"):
        operations.cancel(rollout=rollout, actor=OLGA)


def test_cancelling_and_taking_up_at_the_same_moment_ends_in_one_of_them(scene: Scene, monkeypatch):
    from deploy.story import Story

    rollout = scene.begin()
    advance = Story.advance

    def late(story: Story, to: str, *arguments: object, **columns: object) -> None:
        if to == State.STAGING:
            operations.cancel(rollout=Rollout.objects.get(pk=rollout.pk), actor=OLGA)
        advance(story, to, *arguments, **columns)

    monkeypatch.setattr(Story, "advance", late)
    calls = len(scene.site.calls)
    assert scene.run(rollout).state == State.CANCELLED
    assert len(scene.site.calls) == calls


def test_only_a_waiting_rollout_is_asked_about_again(scene: Scene):
    with pytest.raises(TooLate, match="proven"):
        operations.check_again(rollout=scene.run(scene.begin()), actor=OLGA)


def test_queries_say_what_is_current_and_what_runs(scene: Scene):
    rollout = scene.begin()
    assert queries.running_rollout(scene.subnet) == rollout
    assert list(queries.history(scene.subnet)) == [rollout]
    assert State(rollout.state).is_running
    scene.run(rollout)
    assert State(rollout.state).is_over
    other = Subnet.objects.create(name="other")
    assert (queries.current_revision(other), queries.running_rollout(other), queries.latest_observation(other)) == (
        None,
        None,
        None,
    )


def test_a_lost_message_is_found_by_the_tick(scene: Scene):
    rollout = scene.begin()
    assert queries.rollouts_to_resume(now=scene.clock()) == []
    scene.clock.forward(queries.LOST_IN_THE_QUEUE.total_seconds())
    assert queries.rollouts_to_resume(now=scene.clock()) == [rollout.pk]
    scene.run(rollout)
    assert queries.rollouts_to_resume(now=scene.clock() + timedelta(days=1)) == []
