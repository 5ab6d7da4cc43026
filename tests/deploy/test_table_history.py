"""What is known of the tables each port has held, and when nothing is claimed."""

import pytest

from deploy import queries, table_history
from deploy.models import TableChanges
from deploy.table_history import histories
from tests.deploy.conftest import INFERENCE, TRAINING


def restart(host, scene, *, between=lambda: None):
    """Look, start the host's OpenSM anew, and look again: so its process is known from its beginning."""
    scene.look()
    role = host.role
    host.stop_opensm()
    between()
    host.start_opensm()
    assert host.role == role
    return scene.look()


@pytest.fixture
def known(scene):
    """A scene whose master began between two looks."""
    restart(scene.site.hosts[0], scene)
    return scene


def port(scene, server=1):
    found = histories(scene.subnet)
    return found.ports[scene.site.guids(server)[0]]


def test_nothing_is_claimed_of_a_process_that_ran_before_the_first_look(scene):
    scene.look()
    scene.look()
    found = histories(scene.subnet)
    assert found.process == ("mgr-a", 100, 1)
    assert set(found.ports) == set(scene.site.ports)
    assert not any(history.is_whole for history in found.ports.values())


def test_a_process_that_began_between_two_looks_is_known_whole(known):
    first = port(known)
    assert first.is_whole
    assert first.tables == (known.tables()[known.site.guids(1)[0]],)
    rollout = known.run(known.begin(s1=INFERENCE))
    assert rollout.state == "PROVEN", rollout.cause
    moved, stayed = port(known, 1), port(known, 2)
    assert moved.is_whole
    assert moved.tables == (*first.tables, known.tables()[known.site.guids(1)[0]])
    assert len(stayed.tables) == 1
    assert dict(queries.port_histories(known.subnet)) == dict(histories(known.subnet).ports)


def test_only_what_changed_is_stored_and_a_base_begins_anew(known, monkeypatch):
    monkeypatch.setattr(table_history, "BASE_EVERY", 4)
    known.run(known.begin(s1=INFERENCE))
    for _ in range(4):
        known.look()
    rows = list(TableChanges.objects.order_by("id"))
    assert [row.is_base for row in rows] == [True, False, False, False, True, False, False, False]
    sizes = [len(table_history.unpacked(row.data)) for row in rows]
    assert sizes == [10, 0, 0, 2, 10, 0, 0, 0]
    assert port(known).is_whole
    assert len(port(known).tables) == 2


def test_a_file_that_others_wrote_ends_the_knowledge(known):
    for host in known.site.hosts:
        host.file = host.file.replace(b"0x2c42", b"0x2c43")
    known.site.sweep(known.site.hosts[0])
    known.look()
    assert not port(known, 2).is_whole
    for host in known.site.hosts:
        host.file = bytes(known.first.data)
    known.site.sweep(known.site.hosts[0])
    known.look()
    assert not port(known, 2).is_whole


def test_a_restored_rollout_leaves_its_own_ports_unknown(known):
    sick = known.site.ports[known.site.guids(1)[0]]
    rollout = known.begin(s1=INFERENCE)
    sick.slots[0x8000 | INFERENCE] = 9  # OpenSM remembers what nobody told us
    known.run(rollout)
    assert rollout.state == "RESTORED"
    assert "where no plan expected it" in rollout.contrary
    assert not port(known, 1).is_whole
    assert port(known, 2).is_whole
    # So the same move is judged by the wide set, and goes through.
    known.where[1] = TRAINING
    again = known.run(known.begin(s1=INFERENCE))
    assert again.state == "PROVEN", again.cause


def test_another_process_that_reads_the_file_is_judged_by_the_wide_set(known):
    rollout = known.begin(s1=INFERENCE)
    known.site.hosts[0].stop_opensm()
    known.site.hosts[0].start_opensm()
    known.site.ports[known.site.guids(1)[0]].slots[0x8000 | INFERENCE] = 9
    known.run(rollout)
    assert rollout.state == "PROVEN", rollout.cause


def test_a_standby_that_takes_over_is_known_when_its_start_was_seen(scene):
    first, second = scene.site.hosts
    restart(second, scene)
    first.stop_opensm()
    scene.site.takeover()
    scene.look()
    found = histories(scene.subnet)
    assert found.process == ("mgr-b", 101, 2)
    history = found.ports[scene.site.guids(1)[0]]
    assert history.is_whole
    assert len(history.tables) == 1
    assert history.earlier == history.tables


def test_a_standby_that_ran_before_the_first_look_may_have_been_master(scene):
    scene.look()
    scene.site.hosts[0].stop_opensm()
    scene.site.takeover()
    scene.look()
    assert not port(scene).is_whole


def test_a_standby_with_another_file_begins_with_an_unknown_table(scene):
    first, second = scene.site.hosts
    restart(second, scene)
    second.file = b"# another\n" + second.file
    scene.site.meaning[second.file] = scene.table()  # what it says is no other, what it said before may have been
    scene.look()
    first.stop_opensm()
    scene.site.takeover()
    scene.look()
    assert not port(scene).is_whole


def test_a_process_that_is_master_again_knows_what_others_did(known):
    first, second = known.site.hosts
    rollout = known.run(known.begin(s1=INFERENCE))
    assert rollout.state == "PROVEN"
    first.role, second.role = "STANDBY", "MASTER"
    known.site.sweep(second)
    known.look()
    assert known.run(known.begin(s1=TRAINING)).state == "PROVEN"
    first.role, second.role = "MASTER", "STANDBY"
    known.site.sweep(first)
    known.look()
    history = port(known, 1)
    assert histories(known.subnet).process == ("mgr-a", 101, 2)
    assert len(history.tables) == 4
    assert history.by_others == {2}
    assert history.tables[2] == history.tables[3]
    assert port(known, 2).by_others == frozenset()


def test_a_port_that_was_away_is_met_anew(known):
    away = known.site.ports[known.site.guids(3)[0]]
    known.run(known.begin(s3=TRAINING))
    away.is_absent = True
    known.look()
    assert away.guid not in histories(known.subnet).ports
    away.is_absent = False
    known.look()
    history = port(known, 3)
    assert history.is_whole
    assert len(history.tables) == 1
    assert len(history.earlier) == 3  # as it began, as it was moved, and as it was under the process before


def test_a_port_that_was_not_read_may_have_held_anything(known):
    known.site.ports[known.site.guids(3)[0]].is_unreadable = True
    known.look()
    known.site.ports[known.site.guids(3)[0]].is_unreadable = False
    known.look()
    assert not port(known, 3).is_whole
    assert port(known, 1).is_whole


def test_a_past_observation_has_its_own_past(known):
    look = known.look()
    known.run(known.begin(s1=INFERENCE))
    guid = known.site.guids(1)[0]
    assert len(histories(known.subnet, until=look).ports[guid].tables) == 1
    assert len(histories(known.subnet).ports[guid].tables) == 2


def test_of_too_many_looks_nothing_is_claimed(known, monkeypatch):
    assert port(known).is_whole
    monkeypatch.setattr(table_history, "MOST_LOOKS", 2)
    assert not port(known).is_whole
