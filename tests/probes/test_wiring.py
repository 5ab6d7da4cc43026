"""The worker of queue probe exists, alone sees the probe key, and every scheduled task is one."""

from importlib import import_module

from fabricui import processes
from fabricui.broker import Broker
from fabricui.celery import app

ADDRESSES = processes.Addresses("127.0.0.1", 8000, 8001)


def test_every_scheduled_and_routed_task_is_registered():
    for room in ("audit", "deploy", "portal", "probes", "webhooks"):
        import_module(f"{room}.tasks")
    named = {entry["task"] for entry in app.conf.beat_schedule.values()} | set(app.conf.task_routes)
    assert named <= set(app.tasks)
    assert app.conf.task_routes["probes.tasks.run"] == {"queue": "probe"}


def test_a_worker_with_threads_serves_the_queue_probe():
    table = processes.commands(addresses=ADDRESSES, broker=Broker("redis://x", None, "private"), probes_at_once=5)
    argv, _ = table["probe"]
    assert argv[argv.index("-Q") + 1] == "probe"
    assert argv[argv.index("--pool") + 1] == "threads"
    assert argv[argv.index("--concurrency") + 1] == "5"
    assert "solo" in table["rollout"][0]


def test_each_key_is_given_to_its_own_workers_only(monkeypatch):
    given = {}

    class Manager:
        returncode = 0

        def add_process(self, name, command, *, env, cwd):
            given[name] = env

        def loop(self):
            pass

    monkeypatch.setattr(processes, "Manager", Manager)
    monkeypatch.setattr(processes, "end_with_parent", lambda: None)
    keys = {"FABRICUI_MANAGER_KEY_FILE": "m", "FABRICUI_PROBE_KEY_FILE": "p"}
    table = processes.commands(addresses=ADDRESSES, broker=Broker("redis://x", None, "private"))
    processes.run(table, environment=keys)
    assert {name for name, env in given.items() if "FABRICUI_PROBE_KEY_FILE" in env} == {"probe"}
    assert {name for name, env in given.items() if "FABRICUI_MANAGER_KEY_FILE" in env} == {"rollout", "observe"}
