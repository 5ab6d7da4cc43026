"""A settled site, and a broker that says what a test wants of the processes."""

import pytest

from fabricui import health, heartbeat
from tests.console.conftest import settled_site
from tests.console.drifted import watch as looked_at

TOKEN = "t" * 32


@pytest.fixture(autouse=True)
def _anew(settings):
    settings.METRICS_TOKEN = TOKEN
    health.forget()
    yield
    health.forget()


@pytest.fixture
def alive(monkeypatch):
    """What the broker says of the processes; a test changes it."""
    said = {name: heartbeat.Beat() for name in (*heartbeat.QUEUES, heartbeat.BEAT)}
    monkeypatch.setattr(heartbeat, "heard", lambda names: {name: said[name] for name in names if name in said})
    monkeypatch.setattr(heartbeat, "depths", lambda: dict.fromkeys(heartbeat.QUEUES, 0))
    return said


@pytest.fixture
def site(db):
    found = settled_site()
    watch = looked_at(found)
    watch.managers = [
        {"host": name, "role": role, "error": None} for name, role in (("m1", "MASTER"), ("m2", "STANDBY"))
    ]
    watch.save()
    return found
