"""Another subnet manager: no file can mend that, so a person is needed, and what happens after."""

import pytest

from deploy import operations, queries
from deploy.errors import ReasonNeeded, SubnetBusy, TooLate
from deploy.models import Rollout
from remote.errors import OpenSMDiffers
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene
from tests.deploy.fakes import failing

State = Rollout.State


# --- another SM -----------------------------------------------------------------------------------------------------


def test_a_rogue_master_while_reading_needs_a_person_and_restores_nothing(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.STUCK
    at = f"leaf 0x0002c90300aa0001 port {scene.site.ports[guid].leaf_port}"
    assert guid in rollout.cause
    assert at in rollout.cause
    assert scene.digests() == {rollout.revision.digest}


def test_a_rogue_that_comes_before_the_barrier_is_found_as_well(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("reload", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    assert rollout.state == State.STUCK
    assert guid in rollout.cause
    assert "at leaf 0x0002c90300aa0001" in rollout.cause


def test_after_a_person_let_go_of_a_stuck_one_the_revision_goes_out(scene: Scene):
    rollout = scene.begin()
    guid = scene.site.guids(4)[1]
    scene.site.fail = failing(lambda: OpenSMDiffers(82, "x"), verb="nothing")

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    with pytest.raises(SubnetBusy, match="needs a person"):
        scene.start(scene.propose(s2=INFERENCE))
    with pytest.raises(ReasonNeeded):
        operations.release_stuck(rollout=rollout, actor=OLGA, reason=" ")
    scene.site.fail = lambda *_: None
    scene.site.rogue = None
    scene.site.ports[guid].is_sm = False
    scene.site.takeover()
    operations.release_stuck(rollout=rollout, actor=OLGA, reason="Stopped OpenSM on srv-004.")
    with pytest.raises(TooLate):
        operations.release_stuck(rollout=rollout, actor=OLGA, reason="twice")
    again = scene.run(scene.start(rollout.revision))
    assert again.state == State.PROVEN
    assert queries.current_revision(scene.subnet) == rollout.revision


def test_after_a_stuck_one_another_revision_may_follow_too(scene: Scene):
    rollout = scene.begin(s1=INFERENCE)
    guid = scene.site.guids(4)[1]

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("barrier", "after") and scene.site.rogue is None:
            scene.site.start_rogue(guid)

    scene.site.fail = fail
    scene.run(rollout)
    scene.site.fail = lambda *_: None
    scene.site.rogue = None
    scene.site.ports[guid].is_sm = False
    scene.site.takeover()
    operations.release_stuck(rollout=rollout, actor=OLGA, reason="Stopped OpenSM on srv-004.")
    other = scene.run(scene.start(scene.propose(s1=TRAINING, s2=INFERENCE)))
    assert (other.state, other.cause) == (State.PROVEN, "")
