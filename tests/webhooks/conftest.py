"""Endpoints, and a receiver that they lead to."""

import ipaddress

import pytest

from audit import follow
from audit.values import SYSTEM
from tests.webhooks.receiver import receiving
from webhooks.operations import create_endpoint

KINDS = ("rollout", "stuck", "drift", "rogue_sm", "leak", "incident")


@pytest.fixture(scope="module")
def server():
    with receiving() as found:
        yield found


@pytest.fixture
def receiver(server, settings):
    """A program on loopback, whose network is allowed."""
    settings.WEBHOOK_NETWORKS = [ipaddress.ip_network("127.0.0.0/8")]
    server.taken.clear()
    server.status, server.headers, server.behave = 204, {}, None
    return server


@pytest.fixture
def add(db, receiver):
    """Make an endpoint that leads to the receiver; gives it with its secret."""

    def add(
        name="on-call", kinds=("rollout", "stuck", "drift", "rogue_sm", "leak", "incident"), tenant=None, path="/x"
    ):
        here = f"http://127.0.0.1:{receiver.port}{path}"
        url = here if tenant is None else f"https://hooks.example.com{path}"  # no tenant's leads inside
        return create_endpoint(name=name, url=url, kinds=kinds, tenant=tenant, actor=SYSTEM)

    return add


@pytest.fixture
def handed(monkeypatch, db):
    """Only our followers; a call hands over what was recorded since the fixture was asked for."""
    ours = {name: one for name, one in follow._followers.items() if name.startswith("webhooks.")}
    monkeypatch.setattr(follow, "_followers", ours)
    follow.tick()
    return follow.tick
