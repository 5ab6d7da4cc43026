"""Many writers at once: no event is lost, none has another's number, the chain holds."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import connection

from audit import follow
from audit.actions import Action
from audit.chain import verify
from audit.models import Event
from audit.once import first_in_a_minute
from audit.values import Subject
from tests.audit.events import record_one

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import sys
import django
django.setup()
from django.db import transaction
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Subject
from people.models import Tenant
writer, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    with transaction.atomic():
        Tenant.objects.create(name=f"{writer}-{number}", slug=f"{writer}-{number}")
        record(action=Action.TENANT_CREATE, actor=SYSTEM, subject=Subject(kind="tenant", key=writer, label=str(number)))
"""

READER = """
import json
import django
django.setup()
from audit.chain import verify
from audit.models import Event
from people.models import Tenant
report = verify()
events = list(Event.objects.order_by("number").values_list("subject_key", "subject_label"))
print(json.dumps({"sound": report.is_sound, "sentence": report.sentence, "events": events,
                  "tenants": Tenant.objects.count()}))
"""


def test_processes_on_one_sqlite_file_lose_and_reorder_nothing(tmp_path):
    writers, count = 4, 40
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "fabricui.settings",
        "DATABASE_URL": f"sqlite://{tmp_path / 'trail.sqlite3'}",
        "FABRICUI_DATA_DIR": str(tmp_path),
    }
    for room in ("audit", "people"):
        migrate = [sys.executable, "manage.py", "migrate", "--skip-checks", "-v0", room]
        subprocess.run(migrate, cwd=ROOT, env=environment, check=True)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, f"w{writer}", str(count)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(writers)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    read = subprocess.run(
        [sys.executable, "-c", READER], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    found = json.loads(read.stdout)
    assert found["sound"], found["sentence"]
    assert found["tenants"] == len(found["events"]) == writers * count
    for writer in range(writers):  # each writer's own events in the order in which it wrote them
        assert [int(label) for key, label in found["events"] if key == f"w{writer}"] == list(range(count))


def in_threads(number, work):
    """Run `work(index)` in threads that start together; raise what any of them raised."""
    barrier, errors = threading.Barrier(number), []

    def run(index):
        try:
            barrier.wait(timeout=30)
            work(index)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not errors, errors


@pytest.mark.pg
@pytest.mark.django_db(transaction=True)
def test_threads_on_postgresql_lose_and_reorder_nothing():
    def write(index):
        for number in range(40):
            record_one(subject=Subject(kind="tenant", key=f"w{index}", label=str(number)))

    in_threads(8, write)

    assert verify().is_sound, verify().sentence
    assert Event.objects.count() == 320
    for index in range(8):
        labels = (
            Event.objects.filter(subject_key=f"w{index}").order_by("number").values_list("subject_label", flat=True)
        )
        assert [int(label) for label in labels] == list(range(40))


@pytest.mark.pg
@pytest.mark.django_db(transaction=True)
def test_workers_on_postgresql_hand_each_event_over_once_and_in_order(monkeypatch):
    monkeypatch.setattr(follow, "_followers", {})
    seen = []
    follow.register("notebook", [Action.SUBNET_CREATE], lambda event: seen.append(event.number))
    for _ in range(60):
        record_one()

    def work(index):
        while len(seen) < 60:
            follow.tick()

    in_threads(4, work)
    assert seen == list(range(1, 61))


def test_a_flood_of_refusals_from_one_source_counts_once():
    def refused(source):
        return first_in_a_minute(action=Action.SERVER_REPORT_REFUSED, source=source)

    assert [refused("192.0.2.1") for _ in range(3)] == [True, False, False]
    assert refused("192.0.2.2")
    assert first_in_a_minute(action=Action.PERSON_LOGIN_REFUSED, source="192.0.2.1")


def test_without_a_cache_every_refusal_is_recorded(settings):
    nowhere = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/"}
    settings.CACHES = {"default": nowhere}
    assert first_in_a_minute(action=Action.PERSON_LOGIN_REFUSED, source="192.0.2.1")
