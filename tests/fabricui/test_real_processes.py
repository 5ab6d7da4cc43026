"""Health as it is asked: real uvicorn, a real broker, real workers and beat, some of which die."""

import pytest

from fabricui import heartbeat
from tests.fabricui.running import Running, until

TOKEN = "t" * 32


@pytest.fixture(scope="module")
def running():
    found = Running(FABRICUI_METRICS_TOKEN=TOKEN)
    try:
        found.python("from django.core.management import call_command\ncall_command('migrate', verbosity=0)")
        for name in ("broker", "web", "beat", "housekeeping"):
            found.start(name)
        # One process stands in for the four that reach others: what it consumes is what it tells of.
        found.start("observe", "-Q", "observe,rollout,probe,webhooks")
        yield found
    finally:
        found.stop()


def test_all_is_ready_and_a_dead_worker_turns_it_red(running):
    until(lambda: running.get("/healthz")[0] == 200)
    until(lambda: running.get("/readyz")[0] == 200)
    assert running.get("/readyz")[1] == '{"status": "ready"}'  # a stranger learns one word
    words = running.words(TOKEN)
    assert {"database": "reachable", "broker": "reachable", "beat": "alive"}.items() <= words.items()
    assert {f"worker:{queue}" for queue in heartbeat.QUEUES} <= words.keys()
    figures = running.get("/metrics", TOKEN)[1]
    assert 'fabricui_process_up{process="housekeeping"} 1.0' in figures
    assert 'fabricui_queue_depth{queue="rollout"} 0.0' in figures

    running.kill("housekeeping")
    until(lambda: running.get("/readyz") == (503, '{"status": "not ready"}'))
    words = running.words(TOKEN)
    assert words["worker:housekeeping"] == "gone"
    assert words["worker:rollout"] in ("alive", "busy")
    assert running.get("/healthz")[0] == 200  # the web process itself is well
    assert 'fabricui_process_up{process="housekeeping"} 0.0' in running.get("/metrics", TOKEN)[1]
    # Ticks go on, and nobody takes them.
    depth = 'fabricui_queue_depth{queue="housekeeping"} 0.0'
    until(lambda: depth not in running.get("/metrics", TOKEN)[1])

    running.start("housekeeping")
    until(lambda: running.get("/readyz")[0] == 200)


def test_a_dead_beat_is_told_by_name(running):
    until(lambda: running.words(TOKEN).get("beat") == "alive")
    running.kill("beat")
    until(lambda: running.words(TOKEN).get("beat") == "gone")
    running.start("beat")
    until(lambda: running.words(TOKEN).get("beat") == "alive")


def test_a_dead_broker_is_told_and_what_hangs_on_it_is_unknown(running):
    until(lambda: running.words(TOKEN).get("broker") == "reachable")
    running.kill("broker")
    words = until(lambda: (found := running.words(TOKEN)).get("broker") == "unreachable" and found)
    assert words["worker:rollout"] == words["beat"] == "unknown"
    assert words["database"] == "reachable"
    assert 'fabricui_check_ok{check="broker"} 0.0' in running.get("/metrics", TOKEN)[1]
    (running.folder / "broker.sock").unlink(missing_ok=True)
    running.start("broker")
    until(lambda: running.get("/readyz")[0] == 200, seconds=90)


def test_a_proxy_may_ask_by_any_name(running):
    until(lambda: running.get("/healthz", host="10.0.0.7")[0] == 200)
    assert running.get("/", host="10.0.0.7")[0] == 400
