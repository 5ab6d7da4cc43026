"""A database restored from an older copy: refused by name before anything is placed, and the way back."""

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from deploy import operations, queries
from deploy.errors import ReasonNeeded, StaleRevision, SubnetBusy
from deploy.generation import raise_generation
from deploy.models import Fence, Rollout
from remote.errors import StaleGeneration
from tests.deploy.conftest import INFERENCE, OLGA, Scene
from tests.deploy.fakes import failing

State = Rollout.State
WAY_BACK = "The database is older than the manager hosts"


def grow_old(scene: Scene, *, generation: int = 9, file: bytes | None = None) -> None:
    """What a newer database had done before the older copy came back."""
    for host in scene.site.hosts:
        host.sidecar = (generation, "f" * 64)
        host.file = file or host.file


@pytest.mark.parametrize("file", [None, b"# the file of revision 12\n"])
def test_it_is_refused_by_name_before_anything_is_placed(scene: Scene, file: bytes | None):
    rollout = scene.begin()
    grow_old(scene, file=file)
    before = scene.digests()
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert "Manager host mgr-a: it has seen fencing generation 9, and this rollout is 1" in rollout.cause
    assert "restored from an older copy" in rollout.cause
    assert WAY_BACK in rollout.cause
    assert "by hand" not in rollout.cause  # nobody edited anything
    assert scene.digests() == before
    assert "place" not in {verb for _, verb in scene.site.calls}
    assert queries.running_rollout(scene.subnet) is None


def test_one_host_that_is_ahead_is_enough(scene: Scene):
    rollout = scene.begin()
    scene.site.host("mgr-b").sidecar = (1, "f" * 64)
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert "Manager host mgr-b" in rollout.cause


def test_a_host_that_is_overtaken_between_staging_and_placing_refuses_too(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: StaleGeneration(80, "Generation 1 comes too late."), verb="place", host="mgr-b")
    scene.run(rollout)
    assert rollout.state == State.REFUSED
    assert "comes too late" in rollout.cause
    assert WAY_BACK in rollout.cause
    assert scene.digests() == {scene.first.digest}


def test_overtaken_once_a_standby_was_placed_it_is_stuck_at_once_and_says_why(scene: Scene):
    rollout = scene.begin()
    scene.site.fail = failing(lambda: StaleGeneration(80, "Generation 1 comes too late."), verb="place", host="mgr-a")
    scene.run(rollout)
    assert rollout.state == State.STUCK
    assert WAY_BACK in rollout.cause
    assert scene.site.host("mgr-b").digest == scene.first.digest  # what could go back went back


def test_once_the_generation_is_raised_and_the_file_is_back_it_goes_on(scene: Scene):
    grow_old(scene)
    call_command("raise_generation", "lab", "9", "--reason", "the newer database is lost")
    assert scene.fence.generation == 9
    event = Event.objects.get(action="deploy:generation:raise")
    assert (event.before, event.after) == ({"generation": 0}, {"generation": 9})
    rollout = scene.run(scene.begin(s1=INFERENCE))
    assert (rollout.state, rollout.generation) == (State.PROVEN, 10)


def test_what_cannot_be_raised_says_why(scene: Scene):
    with pytest.raises(ReasonNeeded):
        raise_generation(subnet=scene.subnet, generation=9, actor=OLGA, reason=" ")
    with pytest.raises(StaleRevision, match="at generation 0 already"):
        raise_generation(subnet=scene.subnet, generation=0, actor=OLGA, reason="why")
    scene.begin()
    with pytest.raises(SubnetBusy):
        raise_generation(subnet=scene.subnet, generation=9, actor=OLGA, reason="why")
    with pytest.raises(CommandError, match="no subnet called elsewhere"):
        call_command("raise_generation", "elsewhere", "9", "--reason", "why")
    Fence.objects.update(rollout=None)
    with pytest.raises(CommandError, match="already"):
        call_command("raise_generation", "lab", "1", "--reason", "why")
    assert not Event.objects.filter(action="deploy:generation:raise").exists()


def test_operations_are_all_there():
    assert all(hasattr(operations, name) for name in operations.__all__)
