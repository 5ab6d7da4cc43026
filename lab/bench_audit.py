"""`./run bench audit`: append, verify and read the trail at 1 and at 1,000,000 events, with eight writers at once.

Needs no lab: a database of its own in a temporary folder, filled with events chained exactly as `record()` chains them,
but many a statement. Writers are processes of their own; on PostgreSQL too, when Debian's is installed.
"""

import argparse
import functools
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

from lab.bench import Bench

EVENTS: Final = 1_000_000
WRITERS: Final = 8
EACH: Final = 100
APPENDS: Final = 200
TIMES: Final = 5  # a page is measured
PERSONS, SERVERS, TENANTS, ROLLOUTS = 40, 5_000, 60, 20_000
ROOT: Final = Path(__file__).resolve().parent.parent

_WRITER: Final = """
import sys
import django
django.setup()
from django.db import transaction
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Subject
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    with transaction.atomic():
        record(action=Action.TENANT_CREATE, actor=SYSTEM,
               subject=Subject(kind="bench", key=sys.argv[1], label=str(number)))
"""


def measure(arguments: argparse.Namespace) -> Mapping[str, float]:
    """Fill a trail of a million events (`--events`), and measure all of it."""
    with tempfile.TemporaryDirectory(prefix="fabricui-bench-") as folder:
        os.environ.update(_environment(Path(folder), f"sqlite://{folder}/trail.sqlite3"))
        import django
        from django.core.management import call_command

        Path(folder, "staticfiles").mkdir()
        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        figures = {"events": float(arguments.events), "append_ms_at_1": _append_ms()}
        _fill(arguments.events)
        _tell("filled")
        figures["append_ms"] = _append_ms()
        figures["append_cpu_ms"] = _cpu_ms(_append_ms, APPENDS)
        figures["verify_per_s"], figures["verify_per_cpu_s"] = _verify_per_s()
        figures["verify_processes"] = 1.0
        _tell("verified")
        pages = {name: _page_ms(filters) for name, filters in _filters().items()}
        figures["page_ms"] = max(pages.values())
        figures |= {f"page_ms_{name}": value for name, value in pages.items()}
        slowest = _filters()[max(pages, key=lambda name: pages[name])]
        figures["page_cpu_ms"] = _cpu_ms(lambda: _page_ms(slowest), TIMES + 1)
        _tell("read")
        figures["sqlite_lost_or_moved"] = _writers()
    figures["postgresql_lost_or_moved"] = _on_postgresql()
    # What else this machine did meanwhile: figures of a busy one say little.
    figures["load_per_cpu"] = round(os.getloadavg()[1] / (os.cpu_count() or 1), 2)
    return figures


def _tell(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


def _environment(folder: Path, database: str) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "fabricui.settings",
        "FABRICUI_SECRET_KEY": os.environ.get("FABRICUI_SECRET_KEY") or secrets.token_urlsafe(40),
        "FABRICUI_DATA_DIR": str(folder),
        "DATABASE_URL": database,
        "REDIS_URL": "",
        "FABRICUI_LOG_LEVEL": "ERROR",
    }


def _append_ms() -> float:
    """Median milliseconds of one change with its event: begin, record, commit."""
    from django.db import transaction

    from audit.actions import Action
    from audit.record import record
    from audit.values import SYSTEM, Subject

    taken = []
    subject = Subject(kind="subnet", key="bench", label="bench")
    for number in range(APPENDS):
        began = time.perf_counter()
        with transaction.atomic():
            record(
                action=Action.SUBNET_MODE, actor=SYSTEM, subject=subject, before={"n": number}, after={"n": number + 1}
            )
        taken.append((time.perf_counter() - began) * 1e3)
    return round(median(taken), 3)


def _fill(count: int) -> None:
    """Append events as a year of work leaves them, until there are `count`: hashed one by one, inserted in bulk."""
    from django.db import connection, transaction

    from audit import keyring
    from audit.canonical import utc_text
    from audit.models import ChainHead, Event
    from audit.verifier import HASHED_2, code, content_hash

    head = ChainHead.objects.get()
    version, key = keyring.newest(used=head.key_version)
    chance = random.Random(20261201)  # noqa: S311  the same trail in each run
    number, previous, at = head.number, head.hash, head.at
    assert at is not None  # noqa: S101  something was appended before
    columns = (*HASHED_2, "hash", "mac")
    insert = f"INSERT INTO audit_event ({', '.join(columns)}) VALUES ({', '.join(['?'] * len(columns))})"  # noqa: S608
    nothing = {"reason": "", "revision_key": "", "rollout_key": "", "format": 2, "key_version": version}
    with connection.schema_editor() as editor:  # made again at the end: a quarter of the time
        for index in Event._meta.indexes:
            editor.remove_index(Event, index)
    while number < count:
        rows = []
        for _ in range(min(5000, count - number)):
            number, at = number + 1, at + timedelta(microseconds=1)
            event = {**nothing, **_said(chance), "number": number, "at": utc_text(at), "previous_hash": previous}
            event["hash"] = previous = content_hash(event)
            event["mac"] = code(key, previous)
            for name in ("before", "after"):
                event[name] = None if event[name] is None else json.dumps(event[name])
            event["at"] = str(event["at"])[:-1].replace("T", " ")  # as Django writes it into SQLite
            rows.append([event[name] for name in columns])
        with transaction.atomic():
            connection.connection.executemany(insert, rows)
    with connection.schema_editor() as editor:
        for index in Event._meta.indexes:
            editor.add_index(Event, index)
    with connection.cursor() as cursor:  # one step at a time is what the trigger allows
        cursor.execute("DROP TRIGGER IF EXISTS audit_chainhead_one_step")
        cursor.execute("ANALYZE")
    ChainHead.objects.update(number=number, hash=previous, at=at)


def _said(chance: random.Random) -> dict[str, Any]:
    person, server, tenant = chance.randrange(PERSONS), chance.randrange(SERVERS), chance.randrange(TENANTS)
    is_system = chance.random() < 0.6
    action = chance.choice(_actions())
    is_rollout = action.startswith("deploy:")
    rollout = f"r{chance.randrange(ROLLOUTS):06}"
    return {
        "action": action,
        "actor_kind": "SYSTEM" if is_system else "PERSON",
        "actor_key": "fabricui" if is_system else f"p{person:04}",
        "actor_name": "FabricUI" if is_system else f"Person {person}",
        "subject_kind": "rollout" if is_rollout else "server",
        "subject_key": rollout if is_rollout else f"s{server:05}",
        "subject_label": f"revision {number_of(rollout)} of lab" if is_rollout else f"srv-{server:05}",
        "tenant_key": f"t{tenant:03}",
        "rollout_key": rollout if is_rollout else "",
        "request_id": f"{chance.getrandbits(64):016x}",
        "address": f"192.0.2.{person}",
        "before": {"state": "QUEUED"} if is_rollout else None,
        "after": {"state": "STAGING", "ports": 8}
        if is_rollout
        else {"ports": [f"0x{chance.getrandbits(64):016x}" for _ in range(chance.choice((1, 1, 2, 8)))]},
    }


@functools.cache
def _actions() -> list[str]:
    from audit.actions import Action

    return [one.value for one in Action if one.room != "audit"]


def number_of(rollout: str) -> int:
    """The revision of a rollout of the filled trail."""
    return int(rollout[1:])


def _verify_per_s() -> tuple[float, float]:
    """Events verified in a second by this one process, and in a second of its CPU."""
    from audit.chain import verify

    began, began_cpu = time.perf_counter(), time.process_time()
    report = verify()
    if not report.is_sound:
        raise RuntimeError(f"the filled trail is not sound: {report.sentence}")
    taken, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return round(report.events / taken), round(report.events / cpu)


def _filters() -> dict[str, dict[str, str]]:
    """Each filter alone, as the address has it: a common value, where one matters, and a rare one."""
    from audit.models import Event

    newest = Event.objects.order_by("-number")[0].number
    middle = Event.objects.get(number=newest // 2)
    return {
        "all": {},
        "deep": {"before": str(newest // 2)},
        "actor": {"actor": "fabricui"},
        "person": {"actor": "p0007"},
        "name": {"actor": "erson 7"},
        "action": {"action": "deploy:rollout:proven"},
        "room": {"action": "deploy:"},
        "subject": {"subject": "server:s00042"},
        "label": {"subject": "srv-00042"},
        "kind": {"subject": "server:"},
        "tenant": {"tenant": "t007"},
        "since": {"since": middle.at.isoformat()},
        "until": {"until": middle.at.isoformat()},
        "rollout": {"rollout": "r000042"},
        "request": {"request": middle.request_id},
        "text": {"text": "srv-00042"},
        "nowhere": {"text": "said by nobody"},
        "nobody": {"actor": "nobody at all"},
    }


def _page_ms(filters: Mapping[str, str]) -> float:
    """Milliseconds of the whole page of an auditor, from the address to the last byte; the median of several."""
    from django.test import Client
    from django.urls import reverse

    from audit.values import SYSTEM
    from people.models import User
    from people.operations import create_auditor

    auditor = User.objects.filter(username="ada").first()
    if auditor is None:
        auditor = create_auditor(username="ada", password=secrets.token_urlsafe(20), actor=SYSTEM)
    browser = Client(headers={"host": "localhost"})
    browser.force_login(auditor)
    address = reverse("console:audit")

    def page() -> None:
        answer = browser.get(address, filters)
        if answer.status_code != 200 or b"Audit trail</h1>" not in answer.content:
            raise RuntimeError(f"{address} with {filters} answers {answer.status_code}")

    page()  # the first of a process reads templates
    return _median_ms(page)


def _cpu_ms(run: Callable[[], object], count: int) -> float:
    """Milliseconds of this thread's CPU for each of the `count` things that `run` does: what a busy machine leaves."""
    began = time.thread_time()
    run()
    return round((time.thread_time() - began) * 1e3 / count, 2)


def _median_ms(run: Callable[[], object], times: int = TIMES) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        taken.append((time.perf_counter() - began) * 1e3)
    return round(median(taken), 2)


def _writers() -> float:
    """Let eight processes append at once; how many events are lost or out of their writer's order."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, f"w{index}", str(EACH)], cwd=ROOT, stdin=subprocess.PIPE, text=True
        )
        for index in range(WRITERS)
    ]
    for process in processes:
        assert process.stdin is not None  # noqa: S101  it was asked for
        process.stdin.write("go\n")
        process.stdin.close()
    if any(process.wait(timeout=600) for process in processes):
        raise RuntimeError("a writer failed; its words stand above")

    from audit.models import Event

    wrong = 0
    for index in range(WRITERS):
        written = Event.objects.filter(subject_kind="bench", subject_key=f"w{index}").order_by("number")
        labels = [int(label) for label in written.values_list("subject_label", flat=True)]
        wrong += sum(1 for at, label in enumerate(labels) if at != label) + abs(EACH - len(labels))
    return float(wrong)


def _on_postgresql() -> float:
    """The same eight writers on a private PostgreSQL, in a process that knows no other database."""
    from lab.postgresql import cluster

    with tempfile.TemporaryDirectory(prefix="fabricui-bench-") as folder, cluster() as url:
        name = url.replace("/fabricui?", "/postgres?")
        done = subprocess.run(
            [sys.executable, "-c", "from lab import bench_audit as bench; print(bench.on_this_database())"], cwd=ROOT,
            env={**os.environ, **_environment(Path(folder), name)}, check=True, capture_output=True, text=True,
        )  # fmt: skip
    return float(done.stdout.split()[-1])


def on_this_database() -> float:
    """Migrate the database of the settings, and let eight writers at it; the chain must hold."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    wrong = _writers()
    _verify_per_s()
    return wrong


BENCH = Bench(
    measure=measure,
    targets={
        "append_ms_at_1": "<= 5.0",
        "append_ms": "<= 5.0",
        "verify_per_s": ">= 25000",
        "page_ms": "<= 200.0",
        "sqlite_lost_or_moved": "<= 0",
        "postgresql_lost_or_moved": "<= 0",
    },
    what="Appending to, verifying and paging through the audit trail",
    scale="{events} events",
)
