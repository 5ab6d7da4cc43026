"""What /healthz and /readyz say, and to whom."""

import json
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.urls import reverse
from django.utils import timezone
from redis.exceptions import ConnectionError as NoConnection

from audit import standing
from deploy.drift_models import Drift, Watch
from deploy.last_proven import last_proven_at
from deploy.models import Rollout
from fabricui import checks_of_health, health, heartbeat
from fabricui.beat import TellingScheduler

TOKEN = "t" * 32
ALL = (*heartbeat.QUEUES, heartbeat.BEAT)


def asked(client, token=TOKEN):
    health.forget()
    response = client.get(reverse("readyz"), headers={"Authorization": f"Bearer {token}"} if token else {})
    said = json.loads(response.content)
    return response.status_code, {check["name"]: check["word"] for check in said.get("checks", [])}, said


def test_all_well(site, alive, client):
    status, words, _ = asked(client)
    assert status == 200
    managers = {f"manager:lab/{row['host']}" for row in Watch.objects.get().managers}
    assert words == {
        "database": "reachable", "broker": "reachable", "worker:rollout": "alive", "worker:observe": "alive",
        "worker:probe": "alive", "worker:webhooks": "alive", "worker:housekeeping": "alive", "beat": "alive",
        "trail": "new", "proven:lab": "fresh", **dict.fromkeys(managers, "seen"),
    }  # fmt: skip
    assert len(managers) == 2


@pytest.mark.parametrize("name", ALL)
def test_each_process_counts(site, alive, client, name):
    del alive[name]
    status, words, _ = asked(client)
    assert status == 503
    assert words["beat" if name == "beat" else f"worker:{name}"] == "gone"


def test_a_busy_worker_is_well_and_one_that_hangs_is_not(site, alive, client):
    alive["rollout"] = heartbeat.Beat({"deploy.tasks.run_rollout": 60.0})
    assert asked(client)[:2][0] == 200
    assert asked(client)[1]["worker:rollout"] == "busy"
    alive["rollout"] = heartbeat.Beat({"deploy.tasks.run_rollout": 7200.0})
    status, words, _ = asked(client)
    assert (status, words["worker:rollout"]) == (503, "held up")


def test_a_look_that_is_late_and_a_host_that_does_not_answer(site, alive, client):
    watch = Watch.objects.get()
    first, second = watch.managers[0]["host"], watch.managers[1]["host"]
    watch.managers[0]["error"] = f"Manager host {first} does not answer."
    watch.save()
    status, words, said = asked(client)
    assert status == 503
    assert (words[f"manager:lab/{first}"], words[f"manager:lab/{second}"]) == ("unreachable", "seen")
    assert "does not answer" in json.dumps(said)
    Watch.objects.update(checked_at=timezone.now() - timedelta(hours=1))
    assert asked(client)[1][f"manager:lab/{second}"] == "late"


def test_a_broken_trail_stops_and_an_old_proof_is_only_told(site, alive, client, monkeypatch):
    Rollout.objects.update(finished_at=timezone.now() - timedelta(days=2))
    Watch.objects.update(covered_at=None)
    status, words, _ = asked(client)
    assert (status, words["proven:lab"]) == (200, "old")
    broken = standing.Standing(standing.State.BROKEN, "It is broken.", 0, None, ("It is broken.",))
    monkeypatch.setattr(checks_of_health.standing, "standing", lambda now: broken)
    status, words, _ = asked(client)
    assert (status, words["trail"]) == (503, "broken")


def test_without_a_database_the_rest_is_still_told(site, alive, client, monkeypatch):
    class Away:
        def cursor(self):
            raise OperationalError("no route to host db.internal")

    def no_rows(*_):
        raise OperationalError("no route to host db.internal")

    monkeypatch.setattr(checks_of_health, "connection", Away())
    monkeypatch.setattr(checks_of_health, "last_proven_at", no_rows)
    monkeypatch.setattr(checks_of_health.standing, "standing", lambda now: no_rows())
    status, words, said = asked(client)
    assert status == 503
    assert (words["database"], words["trail"], words["proven"]) == ("unreachable", "unknown", "unknown")
    assert words["beat"] == "alive"
    assert "db.internal" not in json.dumps(said)


def test_without_a_broker_its_processes_are_unknown(site, client, monkeypatch):
    def away(names):
        raise NoConnection("Error 111 connecting to redis://:secret@broker")

    monkeypatch.setattr(heartbeat, "heard", away)
    status, words, said = asked(client)
    assert (status, words["broker"], words["worker:probe"]) == (503, "unreachable", "unknown")
    assert "secret" not in json.dumps(said)


@pytest.mark.parametrize("token", ["", "wrong", "t" * 31])
def test_a_stranger_learns_one_word(site, alive, client, token):
    assert asked(client, token)[2] == {"status": "ready"}
    alive.clear()
    assert asked(client, token)[2] == {"status": "not ready"}


def test_without_a_token_set_nobody_shows_it(site, alive, client, settings):
    settings.METRICS_TOKEN = ""
    assert asked(client, "")[2] == {"status": "ready"}
    health.forget()
    assert "checks" not in json.loads(client.get("/readyz", headers={"Authorization": "Bearer "}).content)


def test_it_answers_whatever_the_host_and_without_a_session(alive, client, db, settings):
    settings.ALLOWED_HOSTS = ["fabric.example.org"]
    assert client.get("/healthz", headers={"Host": "10.0.0.7"}).status_code == 200
    assert client.get("/readyz", headers={"Host": "10.0.0.7"}).status_code == 200
    assert client.get("/", headers={"Host": "10.0.0.7"}).status_code == 400
    assert client.post("/healthz").status_code == client.post("/readyz").status_code == 405


def test_the_registration_door_says_only_that_it_lives(alive, client, db, settings):
    settings.ROOT_URLCONF, settings.LISTENER = "fabricui.register_urls", "register"
    assert client.get("/healthz", headers={"Host": "10.0.0.7"}).status_code == 200
    assert client.get("/readyz").status_code == 404
    assert client.get("/metrics").status_code == 404


def test_what_is_not_ready_fills_no_log(alive, client, db, caplog):
    alive.clear()
    assert asked(client)[0] == 503
    assert "Service Unavailable" not in caplog.text


def test_many_who_ask_are_answered_from_one_look(site, alive, client, monkeypatch):
    looks = []
    monkeypatch.setattr(health, "every_check", lambda: looks.append(1) or [])
    for _ in range(5):
        client.get("/readyz")
    assert looks == [1]


def test_a_site_without_a_subnet_is_ready(db, alive, client):
    assert asked(client)[0] == 200


def test_proven_is_the_proof_or_a_round_since(site):
    provider = site.provider
    proof = Rollout.objects.get()
    Watch.objects.update(covered_at=None)
    assert last_proven_at(provider.subnet) == proof.finished_at
    later = proof.finished_at + timedelta(hours=1)
    Watch.objects.update(covered_at=later)
    assert last_proven_at(provider.subnet) == later
    Watch.objects.update(covered_at=proof.finished_at - timedelta(hours=1))  # read before it was placed
    assert last_proven_at(provider.subnet) == proof.finished_at
    Watch.objects.update(covered_at=later)
    drift = Drift.objects.create(
        subnet=provider.subnet, kind=Drift.Kind.TABLE, key="0x1", first_seen_at=later, last_seen_at=later
    )
    assert last_proven_at(provider.subnet) == proof.finished_at  # the round found something else
    Drift.objects.filter(pk=drift.pk).update(closed_at=later)
    assert last_proven_at(provider.subnet) == later
    Rollout.objects.update(state=Rollout.State.STUCK)
    Watch.objects.update(covered_at=None)
    assert last_proven_at(provider.subnet) is None


def test_beat_tells_with_its_loop(monkeypatch):
    told = []
    monkeypatch.setattr(heartbeat, "tell", lambda names, busy: told.append(list(names)))
    monkeypatch.setattr("celery.beat.Scheduler.tick", lambda self, *_: 300.0)
    scheduler = TellingScheduler.__new__(TellingScheduler)
    assert scheduler.tick() == heartbeat.EVERY_S
    scheduler.tick()
    assert told == [["beat"]]


def test_no_broker_configured_is_told(settings):
    settings.REDIS_URL = ""
    with pytest.raises(Exception, match="names no broker"):
        heartbeat.heard(ALL)
    heartbeat.tell(ALL, {})  # raises nothing
