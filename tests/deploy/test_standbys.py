"""Any number of standbys: each is staged before anything is placed, unless a person says why one may be left out."""

import pytest

from deploy import operations, queries
from deploy.errors import NotWritable, ReasonNeeded, StandbyNeeded
from deploy.models import Rollout
from remote.errors import FileNotWritable
from subnet.pkey import Membership
from subnet.table import Member, Partition, PartitionTable
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene, make_scene
from tests.deploy.fakes import failing, unreachable

State = Rollout.State
WHY = "mgr-c is in the workshop until Friday"


@pytest.fixture
def three(db: None, clock) -> Scene:
    return make_scene(clock, managers=("mgr-a", "mgr-b", "mgr-c"))


def start(scene: Scene, *, without=("mgr-c",), reason=WHY, **moves) -> Rollout:
    revision = scene.propose(**(moves or {"s1": INFERENCE}))
    return operations.start(revision=revision, observation=scene.look(), actor=OLGA, reason=reason, without=without)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_standby_is_placed_before_the_master(db, clock, count: int):
    scene = make_scene(clock, managers=tuple(f"mgr-{number}" for number in range(count)))
    rollout = scene.run(scene.begin())
    assert rollout.state == State.PROVEN, rollout.cause
    places = [host for host, verb in scene.site.calls if verb == "place"]
    assert sorted(places[:-1]) == [f"mgr-{number}" for number in range(1, count)]
    assert places[-1] == "mgr-0"


@pytest.mark.parametrize("verb", ["identify", "stage"])
def test_one_that_cannot_be_staged_stops_all(three: Scene, verb: str):
    rollout = three.begin()
    three.site.fail = failing(lambda: unreachable("mgr-c"), verb=verb, host="mgr-c")
    three.run(rollout)
    assert rollout.state == State.REFUSED
    assert "place" not in {verb for _, verb in three.site.calls}


@pytest.mark.parametrize("verb", ["identify", "stage", "place"])
def test_with_a_reason_it_goes_without_that_one_and_heals_it_later(three: Scene, verb: str):
    rollout = start(three)
    three.site.fail = failing(lambda: unreachable("mgr-c"), verb=verb, host="mgr-c")
    three.run(rollout)
    assert rollout.state == State.DEGRADED, rollout.cause
    assert queries.current_revision(three.subnet) == three.first  # never what asks for PROVEN
    assert three.site.host("mgr-b").digest == three.site.host("mgr-a").digest == rollout.revision.digest
    assert three.site.host("mgr-c").digest == three.first.digest
    assert rollout.without == {"hosts": ["mgr-c"], "by": "Olga", "reason": WHY}
    if verb != "place":
        assert f"as Olga said ({WHY})" in rollout.steps.get(text__contains="Goes on without").text
    assert rollout.outcomes.get(host__name="mgr-c").placed_at is None
    three.site.fail = lambda *_: None
    assert three.later(rollout).state == State.PROVEN
    assert three.digests() == {rollout.revision.digest}


def test_one_that_can_be_staged_after_all_is(three: Scene):
    rollout = three.run(start(three))
    assert rollout.state == State.PROVEN
    assert three.digests() == {rollout.revision.digest}


def test_the_only_standby_may_be_left_out_too(scene: Scene):
    rollout = start(scene, without=("mgr-b",))
    scene.site.host("mgr-b").is_reachable = False
    assert scene.run(rollout).state == State.DEGRADED


def test_the_master_never_is(three: Scene):
    rollout = start(three, without=("mgr-a", "mgr-c"))
    three.site.fail = failing(lambda: FileNotWritable(73, "0 KiB free."), verb="stage", host="mgr-a")
    three.run(rollout)
    assert rollout.state == State.REFUSED
    assert "0 KiB free" in rollout.cause


def test_a_hand_edited_file_is_no_reason_to_be_left_out(three: Scene):
    rollout = start(three)
    three.site.host("mgr-c").file = b"by hand\n"
    three.run(rollout)
    assert rollout.state == State.REFUSED
    assert "Manager host mgr-c" in rollout.cause


def test_another_one_than_the_named_still_stops_it(three: Scene):
    rollout = start(three)
    three.site.fail = failing(lambda: unreachable("mgr-b"), verb="stage", host="mgr-b")
    assert three.run(rollout).state == State.REFUSED


def test_what_was_never_placed_need_not_be_put_back(three: Scene):
    rollout = start(three)
    three.site.host("mgr-c").is_reachable = False
    three.site.fail = failing(lambda: FileNotWritable(73, "0 KiB free."), verb="place", host="mgr-a", times=1)
    three.run(rollout)
    assert rollout.state == State.RESTORED, rollout.cause
    assert three.digests() == {three.first.digest}


def test_it_needs_a_reason_and_a_host_that_exists(three: Scene):
    with pytest.raises(ReasonNeeded, match="mgr-c"):
        start(three, reason="")
    with pytest.raises(NotWritable, match="no manager host mgr-z"):
        start(three, without=("mgr-z",))
    assert three.fence.rollout is None


def test_additions_and_moves_of_one_tenant_may(three: Scene):
    three.run(start(three, s4=TRAINING))
    assert three.run(start(three, s4=INFERENCE)).state == State.PROVEN


def test_taking_a_port_from_a_tenant_may_not(three: Scene):
    three.where.pop(1)
    with pytest.raises(StandbyNeeded, match=r"takes port 0x.* out of training.*a takeover by a host with the old file"):
        start(three, s4=TRAINING)


def _proposed(scene: Scene, *partitions: Partition) -> None:
    table = PartitionTable(sm_ports=scene.table().sm_ports, partitions=partitions)
    revision = operations.propose(subnet=scene.subnet, table=table, parent=scene.first, actor=OLGA)
    operations.start(revision=revision, observation=scene.look(), actor=OLGA, reason=WHY, without=("mgr-c",))


def test_passing_a_partition_on_or_weakening_a_member_may_not(three: Scene):
    first, second = three.table().partitions
    weaker = tuple(Member(member.guid, Membership.LIMITED) for member in first.members)
    guid = three.site.guids(4)[0]
    with pytest.raises(StandbyNeeded, match="changes what port"):
        _proposed(three, Partition(first.pkey, first.name, first.tenant, (*weaker, *second.members[:1])), second)
    with pytest.raises(StandbyNeeded, match="another owner"):
        _proposed(
            three,
            Partition(first.pkey, first.name, "globex", (*first.members, Member(guid, Membership.FULL))),
            Partition(second.pkey, second.name, "globex", second.members),
        )
    with pytest.raises(StandbyNeeded, match="what a partition or Default itself is"):
        _proposed(three, Partition(first.pkey, first.name, first.tenant, first.members, flags=_ipoib()), second)


def _ipoib():
    from subnet.flags import Flags

    return Flags(ipoib=True)


# --- the master changes midway --------------------------------------------------------------------------------------


def take_over(scene: Scene) -> None:
    """The standby becomes master; the old one stays, as standby."""
    old, new = scene.site.host("mgr-a"), scene.site.host("mgr-b")
    if old.role == "MASTER":
        old.role, new.role = "STANDBY", "MASTER"
        scene.site.sweep(new, is_new=True)


@pytest.mark.parametrize("verb", ["identify", "place", "reload", "barrier", "log_since"])
def test_a_master_that_changes_midway_is_followed(scene: Scene, verb: str):
    rollout = scene.begin()

    def fail(host: str, its_verb: str, when: str) -> None:
        if (its_verb, when) == (verb, "before"):
            take_over(scene)

    scene.site.fail = fail
    scene.run(rollout)
    if rollout.state == State.UNPROVEN:
        scene.later(rollout)
    assert rollout.state == State.PROVEN, rollout.cause
    assert scene.digests() == {rollout.revision.digest}
    if verb in ("reload", "barrier"):  # at once, without waiting for the next turn
        assert rollout.tries == 0
        assert rollout.steps.filter(text__contains="has become master").exists()
