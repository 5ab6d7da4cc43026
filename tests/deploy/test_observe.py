"""One look at the managers and the fabric, and everything that can be in its way."""

import pytest

from audit.models import Event
from deploy import operations, queries
from deploy.models import Observation, Rollout
from deploy.observe import observe
from inventory.models import ManagerHost, Port
from tests.deploy.conftest import INFERENCE, OLGA, Scene
from tests.deploy.fakes import failing, unreachable

State = Observation.State


def test_a_look_reads_every_table_by_its_own_discovery(scene: Scene):
    observation = scene.look()
    assert (observation.state, observation.failure) == (State.DONE, "")
    fabric = queries.observed_fabric(observation)
    assert len(fabric.end_ports) == 10
    assert fabric.topology == "discovery"
    assert [(row["host"], row["revision"], row["role"], row["error"]) for row in observation.managers] == [
        ("mgr-a", 1, "MASTER", None),
        ("mgr-b", 1, "STANDBY", None),
    ]
    assert [row["registered"] for row in observation.census] == [True, True]
    assert queries.latest_observation(scene.subnet) == observation


def test_a_look_tells_the_inventory_what_was_seen(scene: Scene):
    observation = scene.look()
    seen = Port.objects.filter(subnet=scene.subnet, seen_at=observation.read_at)
    assert set(seen.values_list("guid", flat=True)) == set(scene.site.ports)


def test_while_a_look_is_pending_another_request_is_the_same(scene: Scene, nudges, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        first = operations.request_observation(subnet=scene.subnet, why="plan", actor=OLGA)
        assert operations.request_observation(subnet=scene.subnet, why="scan") == first
    assert nudges.count("deploy.tasks.observe") == 1
    assert Event.objects.filter(action="deploy:observation:request").count() == 1
    observe(observation=first, hosts=scene.site.hosts, clock=scene.clock)
    assert operations.request_observation(subnet=scene.subnet, why="plan") != first


def test_what_is_wrong_on_a_host_that_answers_stands_in_its_row(scene: Scene):
    scene.site.host("mgr-b").problems = ("Manager host mgr-b: OpenSM (PID 7, port 0x1) shares the dump folder.",)
    observation = scene.look()
    assert [row["problems"] for row in observation.managers] == [[], list(scene.site.host("mgr-b").problems)]


def test_a_standby_that_does_not_answer_is_a_row_with_its_error(scene: Scene):
    scene.site.host("mgr-b").is_reachable = False
    observation = scene.look()
    assert observation.state == State.DONE
    assert "no connection could be made" in observation.managers[1]["error"]


def test_no_host_that_answers_is_a_failure_with_a_sentence(scene: Scene):
    for host in scene.site.hosts:
        host.is_reachable = False
    observation = scene.look()
    assert observation.state == State.FAILED
    assert "Manager host mgr-a: no connection could be made" in observation.failure
    assert Event.objects.filter(action="deploy:observation:failed").count() == 1
    assert queries.latest_observation(scene.subnet) is None


@pytest.mark.parametrize("answer", [b"", b"{}\n", b'{"kind": "reading"'])
def test_an_answer_that_is_cut_short_is_a_failure(scene: Scene, answer: bytes):
    scene.site.reading = lambda topology, mtime: answer  # type: ignore[method-assign]
    observation = scene.look()
    assert observation.state == State.FAILED
    assert observation.failure.startswith("Manager host mgr-a: ")


def test_a_reader_that_fails_is_a_failure_that_names_the_host(scene: Scene):
    scene.site.fail = failing(lambda: unreachable("mgr-a"), verb="read_tables")
    assert scene.look().failure == "Manager host mgr-a: no connection could be made."


def test_a_rogue_master_is_seen_from_a_host_that_is_only_standby(scene: Scene):
    guid = scene.site.guids(4)[0]
    scene.site.start_rogue(guid)
    observation = scene.look()
    assert observation.state == State.DONE
    assert [(row["guid"], row["registered"]) for row in observation.census if row["state"] == "MASTER"] == [
        (guid, False)
    ]


def test_a_subnet_without_manager_hosts_says_so(scene: Scene):
    ManagerHost.objects.all().delete()
    observation = operations.request_observation(subnet=scene.subnet, why="plan")
    observe(observation=observation, hosts=[], clock=scene.clock)
    assert "Enrol the machines that run OpenSM" in observation.failure


def test_a_look_leaves_the_hosts_to_a_running_rollout_and_is_taken_later(scene: Scene):
    rollout = scene.begin()
    calls = len(scene.site.calls)
    observation = scene.look()
    assert observation.state == State.REQUESTED
    assert len(scene.site.calls) == calls
    scene.run(rollout)
    scene.clock.forward(60)
    assert queries.observations_to_resume(now=scene.clock()) == [observation.pk]
    observe(observation=observation, hosts=scene.site.hosts, clock=scene.clock)
    assert observation.state == State.DONE


def test_a_look_into_which_a_rollout_fell_counts_for_nothing(scene: Scene):
    revision, before = scene.propose(s1=INFERENCE), scene.look()
    started: list[Rollout] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "after") and not started:
            started.append(scene.start(revision, before))

    scene.site.fail = fail
    observation = scene.look()
    assert started
    assert observation.state == State.FAILED
    assert "A rollout began while the tables were read" in observation.failure


def test_two_workers_take_one_look(scene: Scene):
    observation = operations.request_observation(subnet=scene.subnet, why="plan")
    done: list[int] = []

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before") and not done:
            calls = len(scene.site.calls)
            observe(observation=Observation.objects.get(pk=observation.pk), hosts=scene.site.hosts, clock=scene.clock)
            done.append(len(scene.site.calls) - calls)

    scene.site.fail = fail
    observe(observation=observation, hosts=scene.site.hosts, clock=scene.clock)
    assert done == [0]
    assert observation.state == State.DONE


def test_a_look_whose_worker_died_is_taken_up_again(scene: Scene):
    observation = operations.request_observation(subnet=scene.subnet, why="plan")
    Observation.objects.filter(pk=observation.pk).update(state=State.READING, read_at=scene.clock())
    assert queries.observations_to_resume(now=scene.clock()) == []
    scene.clock.forward(queries.READING_TAKES_AT_MOST.total_seconds())
    assert queries.observations_to_resume(now=scene.clock()) == [observation.pk]
    observe(observation=observation, hosts=scene.site.hosts, clock=scene.clock)
    assert observation.state == State.DONE
