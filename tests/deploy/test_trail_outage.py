"""No audit, no change: what a rollout does while the trail takes no event, and the one thing that goes on."""

import json
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from audit import chain, keyring, spool, watch
from audit.models import Event
from audit.standing import standing
from deploy import operations, queries
from deploy.models import Rollout
from tests.audit.conftest import own_files
from tests.deploy.conftest import OLGA, Scene, one_host_at_a_time
from tests.deploy.test_restored import spoil

__all__ = ["own_files"]

State = Rollout.State


def lose_keys():
    """Take the keys away, as a wrong mount would; the way to bring them back."""
    file = keyring.path()
    file.rename(file.with_name("away"))
    return lambda: file.with_name("away").rename(file)


def refuse_events():
    """Let the database take no event, as a wrong grant would; the way back."""
    cursor = connection.cursor()
    if connection.vendor == "sqlite":
        cursor.execute(
            "CREATE TRIGGER no_events BEFORE INSERT ON audit_event "
            "BEGIN SELECT RAISE(ABORT, 'permission denied for table audit_event'); END"
        )
        return lambda: connection.cursor().execute("DROP TRIGGER no_events")
    cursor.execute(
        "CREATE FUNCTION no_events() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'permission denied for table audit_event'; END $$"
    )
    cursor.execute("CREATE TRIGGER no_events BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION no_events()")
    return lambda: connection.cursor().execute("DROP TRIGGER no_events ON audit_event")


WAYS = pytest.mark.parametrize("way", [lose_keys, refuse_events])


@contextmanager
def outage(way):
    mend = way()
    try:
        yield
    finally:
        mend()


def placed(scene: Scene) -> list[str]:
    """The hosts on which anything was placed: its generation stands beside the file."""
    return [host.name for host in scene.site.hosts if host.sidecar != (0, "")]


@WAYS
def test_nothing_is_placed_and_the_rollout_says_so(scene: Scene, way):
    rollout = scene.begin()
    with outage(way):
        scene.run(rollout)
        assert rollout.state == State.QUEUED
        assert rollout.cause.startswith("Waiting for the audit trail: what cannot be recorded is not done.")
        assert scene.later(rollout).state == State.QUEUED
        assert scene.digests() == {scene.first.digest}
        assert placed(scene) == []
    assert scene.later(rollout).state == State.PROVEN
    assert chain.verify().is_sound


@WAYS
def test_nothing_is_placed_when_the_trail_goes_between_the_decision_and_the_placing(scene: Scene, way, monkeypatch):
    rollout = scene.begin()
    mend = []
    from deploy import rollout as module

    require = module._require_trail

    def lose_it_first():
        if not mend:
            mend.append(way())
        require()

    monkeypatch.setattr(module, "_require_trail", lose_it_first)
    scene.run(rollout)
    assert (rollout.state, placed(scene)) == (State.PLACING, [])
    assert "Waiting for the audit trail" in rollout.cause
    mend[0]()
    assert scene.later(rollout).state == State.PROVEN


@WAYS
def test_a_restore_goes_on_is_spooled_and_chained_when_the_trail_is_back(scene: Scene, way, monkeypatch):
    one_host_at_a_time(monkeypatch)  # in this thread, whose connection sees the trigger
    rollout = scene.begin()
    mend = []
    spoil(scene, scene.site.guids(1)[0])
    spoiled = scene.site.fail

    def fail(host: str, verb: str, when: str) -> None:
        if (verb, when) == ("read_tables", "before") and not mend:
            mend.append(way())
        spoiled(host, verb, when)

    scene.site.fail = fail
    scene.run(rollout)
    assert mend
    assert (
        rollout.state == State.STUCK
    )  # the port that was spoiled stays so: a person is needed, and the files are back
    assert scene.digests() == {scene.first.digest}
    assert queries.current_revision(scene.subnet) == scene.first
    assert not Event.objects.filter(action__in=["deploy:rollout:restoring", "deploy:rollout:stuck"]).exists()
    assert [json.loads(line)["action"] for line in spool.path().read_text().splitlines()] == [
        "deploy:rollout:restoring",
        "deploy:rollout:stuck",
    ]
    assert any("2 events of restores wait beside the audit trail" in one for one in standing(now=timezone.now()).alarms)
    watch.every_minute()
    assert spool.waiting() == 2  # still out of order

    mend[0]()
    watch.every_minute()
    assert spool.waiting() == 0
    chained = Event.objects.filter(request_id__startswith="spool-").order_by("number")
    assert [event.action for event in chained] == ["deploy:rollout:restoring", "deploy:rollout:stuck"]
    for event in chained:
        assert (event.rollout_key, event.revision_key) == (rollout.public_id, rollout.revision.public_id)
        assert event.after["spooled_at"] < f"{event.at:%Y-%m-%dT%H:%M:%S.%f}Z" or event.after["spooled_at"]
        assert event.after["spooled_because"]
    assert chain.verify().is_sound
    assert not [one for one in standing(now=timezone.now()).alarms if "wait beside" in one]


def test_an_entry_is_chained_once_though_the_spool_was_not_emptied(scene: Scene):
    rollout = scene.begin()
    mend = lose_keys()
    spool.record_or_spool(action=_restoring(), actor=OLGA, subject=operations.subject_of(rollout), after={"n": 1})
    mend()
    kept = spool.path().read_bytes()
    assert spool.recover() == 1
    spool.path().write_bytes(kept + b'{"id": "cut sho')
    call_command("audit", "recover", stdout=StringIO())
    assert Event.objects.filter(request_id__startswith="spool-").count() == 1
    assert spool.path().with_name("spool.jsonl.unreadable").read_bytes() == b'{"id": "cut sho\n'


def _restoring():
    from audit.actions import Action

    return Action.ROLLOUT_RESTORING


@WAYS
def test_a_person_changes_nothing_either_and_is_told_why(way, olga, client_of):
    client = client_of(olga)
    with outage_after_first_event(way, client):
        answer = client.post(reverse("set_theme"), {"theme": "DARK"}, headers={"Accept": "text/html"})
        assert answer.status_code == 503
        assert "Nothing was changed" in answer.content.decode()
        assert "audit trail" in answer.content.decode()
        olga.refresh_from_db()
        assert olga.theme == "AUTO"
        assert "No change can be recorded, so none is made." in client.get(reverse("console:audit")).content.decode()
        said = client.post(reverse("set_theme"), {"theme": "DARK"}, headers={"Accept": "application/json"})
        assert (said.status_code, said.json()["error"]) == (503, "audit_unavailable")
    watch.every_minute()
    assert "AUDIT TRAIL" not in client.get(reverse("console:audit")).content.decode()
    assert client.post(reverse("set_theme"), {"theme": "DARK"}).status_code == 302


@contextmanager
def outage_after_first_event(way, client):
    client.post(reverse("set_theme"), {"theme": "LIGHT"})
    client.post(reverse("set_theme"), {"theme": "AUTO"})
    with outage(way):
        yield


def test_a_spool_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, settings, caplog):
    settings.AUDIT_SPOOL_FILE = str(tmp_path / "spool.jsonl")
    assert spool.waiting() == 0
    (tmp_path / "spool.jsonl").mkdir()  # as unreadable as another account's file, also for root
    assert spool.waiting() == 1
    assert "cannot be read" in caplog.text


def test_those_who_share_its_group_share_the_spool(tmp_path, settings):
    settings.AUDIT_SPOOL_FILE = str(tmp_path / "spool.jsonl")
    spool._append(b"{}\n")
    assert (tmp_path / "spool.jsonl").stat().st_mode & 0o777 == 0o660
