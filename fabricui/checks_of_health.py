"""What must be well for FabricUI to do its work: each check with a word, a sentence, and whether it stops the work.

Rows and the broker say it all: the web process reaches no host. Nothing in here is secret, but names of managers and
subnets are for those who show the token (`fabricui/health.py`).
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connection
from django.utils import timezone
from redis.exceptions import RedisError

from audit import standing
from console.overview import LATE
from deploy.drift_models import Watch
from deploy.last_proven import last_proven_at
from fabricui import heartbeat
from fabricui.celery import app
from inventory.models import ManagerHost, Subnet

log = logging.getLogger(__name__)

OLD: Final = timedelta(days=1)  # the rolling scan goes round in hours on the largest fabric
LONG_S: Final = 1800  # no task takes so long: qualifying a large fabric is the longest
SHORT_S: Final = 300  # nor does one of the clock's ticks, which come every few seconds, take so long
STUCK_S: Final = 60  # a worker that works takes a message that waits within a moment
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `is_well` is false only for what stops the work or was found broken."""

    name: str
    word: str
    is_well: bool
    sentence: str

    def to_json(self) -> dict[str, object]:
        """As `/readyz` gives it."""
        return {"name": self.name, "word": self.word, "ready": self.is_well, "sentence": self.sentence}


def every_check() -> list[Check]:
    """All of them. One that cannot be made is *unknown*, and stops the work as what it needs does."""
    found: list[Check] = []
    checks: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("database", _database),
        ("broker", _broker),
        ("managers", _managers),
        ("trail", _trail),
        ("proven", _proven),
    )
    for name, check in checks:
        try:
            found += list(check())
        except DatabaseFailure as error:
            log.warning("%s could not be checked: %s", name, error)
            word = "unreachable" if name == "database" else UNKNOWN
            found.append(Check(name, word, False, "The database does not answer; the log says why."))
    return found


def _database() -> Iterator[Check]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    yield Check("database", "reachable", True, "The database answers.")


def _broker() -> Iterator[Check]:
    try:
        alive = heartbeat.heard((*heartbeat.QUEUES, heartbeat.BEAT))
        waiting = heartbeat.depths()
    except (RedisError, OSError) as error:
        log.warning("the broker does not answer: %s", error)
        yield Check("broker", "unreachable", False, "The broker does not answer; REDIS_URL names it.")
        for name in _processes():
            yield Check(name, UNKNOWN, False, "Its heartbeat goes over the broker.")
        return
    yield Check("broker", "reachable", True, "The broker answers.")
    for name, key in _processes().items():
        yield _process(name, alive.get(key), waiting.get(key, 0))


def _processes() -> dict[str, str]:
    return {**{f"worker:{queue}": queue for queue in heartbeat.QUEUES}, "beat": heartbeat.BEAT}


def _process(name: str, said: heartbeat.Beat | None, waiting: int) -> Check:
    if said is None:
        sentence = f"Nothing was heard of it for {heartbeat.LASTS_S} s. Start it, or look into its log."
        return Check(name, "gone", False, sentence)
    for task, taken_s in said.busy.items():
        if taken_s > (SHORT_S if task in _ticks() else LONG_S):
            return Check(name, "held up", False, f"It has been on {task} for {taken_s:.0f} s. Look into its log.")
    if waiting and not said.busy and said.idle_s > STUCK_S:
        sentence = f"{waiting} messages wait, and it has taken none for {said.idle_s:.0f} s. Start it anew."
        return Check(name, "held up", False, sentence)
    task, taken_s = max(said.busy.items(), key=lambda item: item[1], default=("", 0.0))
    return Check(name, "busy" if task else "alive", True, f"On {task} for {taken_s:.0f} s." if task else "It waits.")


@cache
def _ticks() -> frozenset[str]:
    """The tasks that come at least each minute."""
    return frozenset(str(entry["task"]) for entry in app.conf.beat_schedule.values() if entry["schedule"] <= 60)


def _managers() -> Iterator[Check]:
    now = timezone.now()
    watches = {watch.subnet_id: watch for watch in Watch.objects.all()}
    for host in ManagerHost.objects.select_related("subnet").order_by("subnet__name", "name"):
        yield _manager(host, watches.get(host.subnet_id), now)


def _manager(host: ManagerHost, watch: Watch | None, now: datetime) -> Check:
    name = f"manager:{host.subnet.name}/{host.name}"
    said: dict[str, Any] = next((row for row in watch.managers if row["host"] == host.name), {}) if watch else {}
    if watch is None or watch.checked_at is None or not said:
        young = now - host.enrolled_at < timedelta(seconds=settings.WATCH_INTERVAL_S * LATE)
        return Check(name, "not looked at yet", young, "No look at it has ended yet.")
    age = now - watch.checked_at
    seen = f"Last looked at {age.total_seconds():.0f} s ago"
    if age > timedelta(seconds=settings.WATCH_INTERVAL_S * LATE):
        return Check(name, "late", False, f"{seen}: the worker of the queue observe does not come round.")
    if said.get("error"):
        return Check(name, "unreachable", False, f"{seen}: {said['error']}")
    return Check(name, "seen", True, f"{seen}: {str(said.get('role') or 'no role').lower()}.")


_TRAIL_STOPS: Final = {standing.State.CLOSED, standing.State.BROKEN}


def _trail() -> Iterator[Check]:
    found = standing.standing(now=timezone.now())
    yield Check("trail", found.state.value, found.state not in _TRAIL_STOPS, found.sentence)


def _proven() -> Iterator[Check]:
    now = timezone.now()
    for subnet in Subnet.objects.order_by("name"):
        at = last_proven_at(subnet)
        if at is None:
            yield Check(f"proven:{subnet.name}", "never", True, "Nothing was read against a current revision yet.")
            continue
        word = "old" if now - at > OLD else "fresh"
        sentence = f"The fabric was last known to hold the current revision {(now - at).total_seconds():.0f} s ago."
        yield Check(f"proven:{subnet.name}", word, True, sentence)
