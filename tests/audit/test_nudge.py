"""The request must not feel the broker: not when it is dead, not when it swallows packets."""

import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from celery import Celery

from audit import nudge

ROOT = Path(__file__).resolve().parents[2]
task = nudge.task  # the real one; tests/conftest.py puts another in its place


@pytest.fixture
def fresh(monkeypatch):
    """A nudge thread of our own, and a place for it to tell what it did."""
    monkeypatch.setattr(nudge, "_waiting", {})
    monkeypatch.setattr(nudge, "_sent_at", {})
    monkeypatch.setattr(nudge, "_changed", threading.Condition())
    monkeypatch.setattr(nudge, "_thread", None)


def wait_until(claim, deadline_s=10):
    end = time.monotonic() + deadline_s
    while not claim():
        assert time.monotonic() < end, "it never became true"
        time.sleep(0.01)


def test_a_nudge_is_sent_in_the_background(fresh, monkeypatch):
    sent = []
    monkeypatch.setattr(nudge, "_send", sent.append)
    task("audit.tasks.follow", {})
    task("deploy.tasks.run_rollout", {"rollout_id": 7})
    wait_until(lambda: len(sent) == 2)
    assert sent == [("audit.tasks.follow", (), None), ("deploy.tasks.run_rollout", (("rollout_id", 7),), None)]


def test_nudges_for_the_same_work_melt_into_one(fresh, monkeypatch):
    gate, sent = threading.Event(), []

    def send(one):
        sent.append(one)
        gate.wait(10)

    monkeypatch.setattr(nudge, "_send", send)
    task("first", {})
    wait_until(lambda: sent)
    for _ in range(50):
        task("audit.tasks.follow", {})
    gate.set()
    wait_until(lambda: len(sent) == 2)
    assert nudge._waiting == {}


def test_waiting_nudges_do_not_pile_up_for_ever(fresh, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(nudge, "_send", lambda one: gate.wait(10))
    for number in range(nudge.MOST_WAITING + 100):
        task("x", {"number": number})
    assert len(nudge._waiting) <= nudge.MOST_WAITING
    gate.set()
    wait_until(lambda: not nudge._waiting)


@pytest.fixture
def swallowing_port():
    """A broker that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


def dead_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("kind", ["dead", "swallowing"])
def test_a_broker_that_does_not_answer_costs_nothing_and_raises_nothing(
    fresh, monkeypatch, caplog, swallowing_port, kind
):
    port = dead_port() if kind == "dead" else swallowing_port
    app = Celery(broker=f"redis://127.0.0.1:{port}/0", set_as_current=False)
    monkeypatch.setattr(nudge, "current_app", app)
    monkeypatch.setattr(nudge, "CONNECT_S", 0.2)

    begun = time.monotonic()
    task("audit.tasks.follow", {})
    assert time.monotonic() - begun < 0.1

    wait_until(lambda: "the tick will find its work" in caplog.text)


def test_a_process_that_only_serves_pages_knows_the_broker():
    program = """
import threading
import django
django.setup()
from celery import current_app
def tell(): print(current_app.main, current_app.conf.broker_url, flush=True)
thread = threading.Thread(target=tell)
thread.start()
thread.join()
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "fabricui.settings", "REDIS_URL": "redis://127.0.0.1:1/0"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert told.stdout == "fabricui redis://127.0.0.1:1/0\n"


def test_a_nudge_reaches_a_broker_that_lives(fresh, monkeypatch):
    app = Celery(broker="memory://", set_as_current=False)
    app.conf.task_routes = {"deploy.tasks.run_rollout": {"queue": "rollout"}}
    monkeypatch.setattr(nudge, "current_app", app)
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("rollout")
        task("deploy.tasks.run_rollout", {"rollout_id": 7})
        message = queue.get(timeout=10)
        message.ack()
    assert message.headers["task"] == "deploy.tasks.run_rollout"
    assert message.payload[1] == {"rollout_id": 7}


def test_the_same_nudge_again_and_again_is_sent_a_few_times_a_second(fresh, monkeypatch):
    sent = []
    monkeypatch.setattr(nudge, "_send", lambda nudge_: sent.append((time.monotonic(), nudge_)))
    end = time.monotonic() + 3 * nudge.AGAIN_S
    while time.monotonic() < end:
        task("audit.tasks.follow", {})
    task("deploy.tasks.run_rollout", {"rollout_id": 7})  # does not wait behind it
    wait_until(lambda: any(name.startswith("deploy") for _, (name, *_) in sent))
    wait_until(lambda: not nudge._waiting)  # the last one is sent too
    times = [at for at, (name, *_) in sent if name == "audit.tasks.follow"]
    assert 2 <= len(times) <= 5
    assert all(after - before >= nudge.AGAIN_S for before, after in itertools.pairwise(times))


def test_the_connection_to_the_broker_is_kept_and_made_anew_when_it_broke(fresh, monkeypatch):
    app = Celery(broker="memory://", set_as_current=False)
    lines, opened, sent = [], app.connection_for_write, []

    def open_line(**options):
        lines.append(opened(**options))
        return lines[-1]

    def send_task(name, *, connection, **_):
        if connection is lines[0] and name == "third":
            raise ConnectionError("the broker was started anew")
        sent.append((name, lines.index(connection)))

    monkeypatch.setattr(app, "connection_for_write", open_line)
    monkeypatch.setattr(app, "send_task", send_task)
    monkeypatch.setattr(nudge, "current_app", app)
    for name in ("first", "second", "third"):
        task(name, {})
    wait_until(lambda: len(sent) == 3)
    assert sent == [("first", 0), ("second", 0), ("third", 1)]
