"""The small parts: hosts from rows, tasks, checks, log lines, the restore's expectation, stored tables."""

from pathlib import Path

import pytest

from deploy import hosts, queries, tables, tasks
from deploy.checks import manager_hosts, manager_key
from deploy.log_lines import counted
from deploy.look import Look, told
from deploy.models import Observation, Rollout, StoredTables
from deploy.proof import expect, expect_back
from deploy.readiness import MOST_SENTENCES, unready
from inventory.models import ManagerHost, Subnet
from remote.errors import AccessRefused
from remote.manager_host import ManagerHost as Remote
from remote.ssh import SSHShell
from subnet.guid import GUID
from tests.deploy.conftest import INFERENCE, TRAINING, Scene
from tests.qualified import qualify

State = Rollout.State


# --- hosts, tasks, checks -------------------------------------------------------------------------------------------


def test_hosts_are_made_from_rows_in_order_of_name(scene: Scene, settings, tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("a key")
    settings.MANAGER_KEY_FILE = str(key)
    key.chmod(0o600)
    made = hosts.connect(scene.subnet)
    assert [host.name for host in made] == ["mgr-a", "mgr-b"]
    assert all(isinstance(host, Remote) for host in made)
    assert isinstance(made[0]._shell, SSHShell)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["", "/nowhere/key"])
def test_without_a_key_every_call_says_so(scene: Scene, settings, name: str):
    settings.MANAGER_KEY_FILE = name
    with hosts.connected(scene.subnet) as made, pytest.raises(AccessRefused, match=f"MANAGER_KEY_FILE={name}"):
        made[0].identify()


def test_a_rollout_without_a_key_is_refused_with_that_sentence(scene: Scene, settings):
    rollout = scene.begin()
    settings.MANAGER_KEY_FILE = "/nowhere/key"
    tasks.run_rollout(rollout_id=rollout.pk)
    rollout.refresh_from_db()
    assert rollout.state == State.REFUSED
    assert "FABRICUI_MANAGER_KEY_FILE=/nowhere/key" in rollout.cause
    assert rollout.cause.startswith("Manager host mgr-a: the key for the manager hosts is not there")


def test_the_tasks_run_what_they_are_named_after(scene: Scene, monkeypatch, nudges: list[str]):
    monkeypatch.setattr(hosts, "connect", lambda subnet: scene.site.hosts)
    rollout = scene.begin()
    scene.clock.forward(60)
    nudges.clear()
    tasks.tick()
    assert nudges == ["deploy.tasks.run_rollout"]
    tasks.run_rollout(rollout_id=rollout.pk)
    rollout.refresh_from_db()
    assert rollout.state == State.PROVEN
    observation = Observation.objects.create(subnet=scene.subnet, why="scan", requested_at=scene.clock())
    tasks.observe(observation_id=observation.pk)
    observation.refresh_from_db()
    assert observation.state == Observation.State.DONE


def test_task_names_are_those_of_the_queue_table(db: None):
    from fabricui.celery import app

    assert tasks.run_rollout.name in app.conf.task_routes
    assert tasks.observe.name in app.conf.task_routes
    assert tasks.tick.name in {entry["task"] for entry in app.conf.beat_schedule.values()}


def test_the_key_of_the_manager_hosts_is_checked(settings, tmp_path: Path):
    settings.MANAGER_KEY_FILE = ""
    assert manager_key(None) == []
    key = tmp_path / "key"
    settings.MANAGER_KEY_FILE = str(key)
    assert [message.id for message in manager_key(None)] == ["deploy.E001"]
    key.write_text("a key")
    key.chmod(0o644)
    assert [message.id for message in manager_key(None)] == ["deploy.E002"]
    key.chmod(0o600)
    assert manager_key(None) == []


def test_a_subnet_in_write_mode_needs_two_manager_hosts(scene: Scene):
    assert manager_hosts(None, databases=["default"]) == []
    ManagerHost.objects.filter(name="mgr-b").delete()
    assert [message.id for message in manager_hosts(None, databases=["default"])] == ["deploy.W001", "deploy.W002"]
    qualify(scene.subnet)
    assert [message.id for message in manager_hosts(None, databases=["default"])] == ["deploy.W001"]
    assert manager_hosts(None) == []
    Subnet.objects.update(mode=Subnet.Mode.PROPOSE)
    assert manager_hosts(None, databases=["default"]) == []


# --- log lines ------------------------------------------------------------------------------------------------------

PORT = GUID("0x0002c90300010101")


@pytest.mark.parametrize(
    ("line", "partition", "ports"),
    [
        ("Dec 01 [1] 0x01 -> osm_prtn: PARSE ERROR: line 3: bad PortGUID", 1, 0),
        ("Dec 01 [1] 0x01 -> osm_prtn: Partition configuration in error; retrying with default config", 1, 0),
        ("Dec 01 [1] 0x01 -> pkey_mgr: ERR 0512: Pkey table is full for node 0x0002c90300010101", 0, 1),
        ("Dec 01 [1] 0x01 -> pkey_mgr: ERR 0512: table full for node 0002C90300010101 port 1", 0, 1),
        ("Dec 01 [1] 0x01 -> pkey_mgr: ERR 0512: table full for node 0x0002c90300010102", 0, 0),
        ("Dec 01 [1] 0x01 -> sm_mad: ERR 3113: MAD completed in error (IB_TIMEOUT)", 0, 0),
        ("Dec 01 [1] 0x02 -> SUBNET UP", 0, 0),
        ("Dec 01 [1] 0x04 -> port 0x0002c90300010101 is up", 0, 0),
        ("", 0, 0),
    ],
)
def test_only_partition_errors_and_errors_about_moved_ports_count(line: str, partition: int, ports: int):
    lines = counted(line.encode() + b"\n", [PORT])
    assert (len(lines.partition), len(lines.ports)) == (partition, ports)


def test_a_flood_of_lines_is_cut_and_bytes_that_are_no_text_do_no_harm():
    lines = counted(b"\xff\xfe PARSE ERROR: line 1: x\n" * 5000, [])
    assert len(lines.partition) == 10


# --- expectations ---------------------------------------------------------------------------------------------------


def test_after_a_restore_a_key_that_was_taken_away_may_stand_elsewhere(scene: Scene):
    before = queries.observed_fabric(scene.look())
    revision = scene.propose(s1=INFERENCE)
    guid = scene.site.guids(1)[0]
    forth = expect(start=[scene.first.partition_table()], wanted=revision.partition_table(), before=before)
    back = expect_back(passing=[revision.partition_table()], wanted=scene.first.partition_table(), before=before)
    assert forth.affected == back.affected == frozenset(scene.site.guids(1))
    assert {1, 2, 63} <= back.predictions[guid].new[0x8000 | TRAINING]
    assert 0x8000 | TRAINING not in back.predictions[guid].survivors.values()
    assert guid in forth.named_in_log
    assert GUID("0x0002c90310010101") in forth.named_in_log  # its node


# --- tables, sentences ----------------------------------------------------------------------------------------------


def test_the_same_tables_are_stored_once(db: None):
    first, second = tables.store(b"abc\n", ports=1), tables.store(b"abc\n", ports=1)
    assert first == second
    assert StoredTables.objects.count() == 1
    assert tables.content(first) == b"abc\n"


def test_an_observation_without_tables_has_no_fabric(scene: Scene):
    observation = Observation.objects.create(subnet=scene.subnet, why="scan", requested_at=scene.clock())
    with pytest.raises(ValueError, match="holds no tables"):
        queries.observed_fabric(observation)


def test_a_host_is_named_once():
    assert told("mgr-a", "it is away.") == "Manager host mgr-a: it is away."
    assert told("mgr-a", "Manager host mgr-a: it is away.") == "Manager host mgr-a: it is away."


def test_a_long_list_of_troubles_is_cut(scene: Scene):
    scene.look()
    views = Look(views=()).views
    assert views == ()
    sentence = unready(
        Look(views=tuple(_broken(scene, number) for number in range(6))),
        accepted={}, known={}, parent=1, sm_ports=[], place=lambda guid: "", generation=1,
    )  # fmt: skip
    assert sentence.endswith(")")
    assert sentence.count("was enrolled later") <= MOST_SENTENCES


def _broken(scene: Scene, number: int):
    from deploy.look import HostView

    return HostView(host=scene.site.hosts[0], registered=GUID(f"0x{number + 1:016x}"))  # type: ignore[arg-type]
