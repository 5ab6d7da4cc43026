"""Commit-confirmed: what nobody confirms in time is taken back by a rollout of its own, and never across tenants."""

from datetime import timedelta

import pytest

from audit.models import Event
from deploy import confirmation, operations, queries, tasks
from deploy.errors import DeadlineOutOfRange, NotReversible, SubnetBusy, TooLate
from deploy.models import Rollout
from inventory.models import Subnet
from remote.errors import FileNotWritable
from subnet.pkey import Membership
from subnet.table import Member, Partition, PartitionTable
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene
from tests.deploy.fakes import failing, unreachable

State = Rollout.State
WITHIN = timedelta(minutes=10)


def begin(scene: Scene, **moves) -> Rollout:
    revision = scene.propose(**(moves or {"s1": INFERENCE}))
    return operations.start(revision=revision, observation=scene.look(), actor=OLGA, confirm_within=WITHIN)


def proven(scene: Scene) -> Rollout:
    rollout = scene.run(begin(scene))
    assert rollout.state == State.PROVEN
    return rollout


def take_back(scene: Scene) -> list[Rollout]:
    """What the tick does, until it has its fresh look."""
    begun = confirmation.roll_back_due(now=scene.clock())
    if not begun and queries.pending_observation(scene.subnet) is not None:
        scene.look()
        begun = confirmation.roll_back_due(now=scene.clock())
    return begun


def test_the_deadline_counts_from_the_proof(scene: Scene):
    rollout = begin(scene)
    assert (rollout.confirm_within_s, rollout.confirm_by) == (600, None)
    scene.clock.forward(300)
    scene.run(rollout)
    assert rollout.confirm_by == rollout.finished_at + WITHIN
    assert Event.objects.get(action="deploy:rollout:start").after["confirm_within_s"] == 600


def test_an_ordinary_rollout_has_no_deadline(scene: Scene):
    rollout = scene.run(scene.begin())
    assert (rollout.confirm_within_s, rollout.confirm_by) == (None, None)
    scene.clock.forward(10**7)
    assert confirmation.roll_back_due(now=scene.clock()) == []
    with pytest.raises(TooLate, match="asks for no confirmation"):
        operations.confirm(rollout=rollout, actor=OLGA)


def test_unconfirmed_it_is_taken_back_by_a_rollout_of_its_own(scene: Scene):
    before = scene.tables()
    rollout = proven(scene)
    scene.clock.forward(599)
    assert take_back(scene) == []
    scene.clock.forward(2)
    (undoing,) = take_back(scene)
    assert (undoing.undoes, undoing.started_by_name) == (rollout, "FabricUI")
    assert undoing.revision.parent == rollout.revision
    assert scene.run(undoing).state == State.PROVEN
    current = queries.current_revision(scene.subnet)
    assert current is not None
    assert current.table_digest == scene.first.table_digest
    held = {guid: set(keys.values()) for guid, keys in scene.tables().items()}
    assert held == {guid: set(keys.values()) for guid, keys in before.items()}
    rollout.refresh_from_db()
    assert rollout.state == State.PROVEN  # what it was stays; the way back is another row
    assert f"rollout {undoing.public_id} takes it back" in rollout.steps.order_by("pk").last().text
    event = Event.objects.get(action="deploy:rollout:roll-back")
    assert (event.subject_key, event.actor_kind) == (rollout.public_id, "SYSTEM")


def test_the_tick_is_idempotent(scene: Scene, nudges):
    proven(scene)
    scene.clock.forward(601)
    scene.look()
    tasks.tick()
    tasks.tick()
    assert Rollout.objects.filter(undoes__isnull=False).count() == 1
    undoing = Rollout.objects.get(undoes__isnull=False)
    scene.run(undoing)
    scene.clock.forward(10_000)
    scene.look()
    tasks.tick()
    assert Rollout.objects.count() == 2


def test_old_tables_are_read_anew_before_the_way_back_begins(scene: Scene):
    rollout = proven(scene)
    scene.clock.forward(601)
    assert confirmation.roll_back_due(now=scene.clock()) == []
    pending = queries.pending_observation(scene.subnet)
    assert pending is not None
    assert pending.why == "confirm"
    rollout.refresh_from_db()
    assert "s old" in rollout.not_rolled_back


@pytest.mark.parametrize("early", [True, False])
def test_confirmed_it_stays(scene: Scene, early: bool):
    rollout = begin(scene)
    if not early:
        scene.run(rollout)
    operations.confirm(rollout=rollout, actor=OLGA, reason="All jobs run.")
    operations.confirm(rollout=rollout, actor=OLGA)
    scene.run(rollout)
    scene.clock.forward(10_000)
    assert take_back(scene) == []
    assert Event.objects.filter(action="deploy:rollout:confirm").count() == 1
    assert queries.current_revision(scene.subnet) == rollout.revision


def test_what_was_never_proven_is_not_confirmed(scene: Scene):
    rollout = begin(scene)
    scene.site.fail = failing(unreachable, verb="stage")
    scene.run(rollout)
    with pytest.raises(TooLate, match="nothing to confirm"):
        operations.confirm(rollout=rollout, actor=OLGA)


def test_too_late_to_confirm_once_the_way_back_has_begun(scene: Scene):
    rollout = proven(scene)
    scene.clock.forward(601)
    (undoing,) = take_back(scene)
    with pytest.raises(TooLate, match=f"rollout {undoing.public_id} is queued and takes it back"):
        operations.confirm(rollout=rollout, actor=OLGA)


def test_nothing_else_goes_out_while_it_waits(scene: Scene):
    rollout = proven(scene)
    other = scene.propose(s2=INFERENCE)
    with pytest.raises(SubnetBusy, match="waits to be confirmed until"):
        scene.start(other)
    operations.confirm(rollout=rollout, actor=OLGA)
    assert scene.run(scene.start(other)).state == State.PROVEN


def test_a_way_back_that_was_refused_is_tried_again_later(scene: Scene):
    rollout = proven(scene)
    scene.clock.forward(601)
    (first,) = take_back(scene)
    scene.site.fail = failing(lambda: FileNotWritable(73, "0 KiB free."), verb="stage", host="mgr-b")
    assert scene.run(first).state == State.REFUSED
    scene.site.fail = lambda *_: None
    assert take_back(scene) == []
    rollout.refresh_from_db()
    assert "0 KiB free" in rollout.not_rolled_back
    scene.clock.forward(confirmation.TRY_AGAIN_AFTER.total_seconds())
    scene.look()
    (second,) = take_back(scene)
    assert scene.run(second).state == State.PROVEN


def test_a_way_back_that_did_not_hold_is_left_to_a_person(scene: Scene):
    rollout = proven(scene)
    scene.clock.forward(601)
    (undoing,) = take_back(scene)
    scene.site.fail = failing(lambda: FileNotWritable(73, "0 KiB free."), verb="place", host="mgr-a", times=1)
    assert scene.run(undoing).state == State.RESTORED
    scene.clock.forward(10_000)
    scene.look()
    assert take_back(scene) == []
    rollout.refresh_from_db()
    assert "that did not hold" in rollout.not_rolled_back
    operations.confirm(rollout=rollout, actor=OLGA)


def test_a_frozen_subnet_is_not_taken_back_until_the_freeze_is_lifted(scene: Scene):
    rollout = proven(scene)
    scene.clock.forward(601)
    Subnet.objects.update(frozen_at=scene.clock(), frozen_reason="cabling")
    scene.look()
    assert take_back(scene) == []
    rollout.refresh_from_db()
    assert "frozen (cabling)" in rollout.not_rolled_back
    Subnet.objects.update(frozen_at=None)
    assert len(take_back(scene)) == 1
    rollout.refresh_from_db()
    assert rollout.not_rolled_back == ""


def test_only_the_direct_parent_comes_back(scene: Scene):
    rollout = proven(scene)
    Rollout.objects.filter(pk=rollout.pk).update(confirmed_at=scene.clock())
    scene.run(scene.begin(s2=INFERENCE))
    Rollout.objects.filter(pk=rollout.pk).update(confirmed_at=None)  # something newer is current all the same
    scene.clock.forward(10_000)
    scene.look()
    assert take_back(scene) == []


def test_never_across_a_change_of_tenant(scene: Scene):
    """What a tenant has lost does not come back by itself; what a tenant gained may go again."""
    scene.where.pop(1)
    leaving = scene.propose()
    with pytest.raises(NotReversible, match="to acme again"):
        operations.start(revision=leaving, observation=scene.look(), actor=OLGA, confirm_within=WITHIN)
    assert scene.fence.rollout is None
    joining = scene.propose(s1=TRAINING, s4=TRAINING)
    rollout = operations.start(revision=joining, observation=scene.look(), actor=OLGA, confirm_within=WITHIN)
    assert scene.run(rollout).state == State.PROVEN
    scene.clock.forward(601)
    (undoing,) = take_back(scene)
    assert scene.run(undoing).state == State.PROVEN


def test_a_partition_that_passes_to_another_tenant_cannot_be_taken_back(scene: Scene):
    scene.where[4] = INFERENCE
    scene.where[4] = INFERENCE
    table = scene.table()
    first, *others = table.partitions
    passed = PartitionTable(
        sm_ports=table.sm_ports, partitions=(Partition(first.pkey, first.name, "globex", first.members), *others)
    )
    revision = operations.propose(subnet=scene.subnet, table=passed, parent=scene.first, actor=OLGA)
    with pytest.raises(NotReversible, match="to acme again"):
        operations.start(revision=revision, observation=scene.look(), actor=OLGA, confirm_within=WITHIN)


def test_the_providers_own_ports_are_nobodys(scene: Scene):
    table = scene.table()
    guid = scene.site.guids(4)[0]
    storage = Partition(INFERENCE.__class__(0x10), "storage", None, (Member(guid, Membership.FULL),))
    wanted = PartitionTable(sm_ports=table.sm_ports, partitions=(*table.partitions, storage))
    revision = operations.propose(subnet=scene.subnet, table=wanted, parent=scene.first, actor=OLGA)
    operations.start(revision=revision, observation=scene.look(), actor=OLGA, confirm_within=WITHIN)


@pytest.mark.parametrize("within", [timedelta(0), timedelta(seconds=59), timedelta(days=8)])
def test_an_odd_deadline_is_refused(scene: Scene, within: timedelta):
    revision = scene.propose(s1=INFERENCE)
    with pytest.raises(DeadlineOutOfRange):
        operations.start(revision=revision, observation=scene.look(), actor=OLGA, confirm_within=within)
