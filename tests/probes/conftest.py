"""Fixtures: a provider with probe hosts as rows; the two RDMA guests, brought up once, and a session between them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from lab.guests.guests import Guests
from probes.session import Session
from probes.terms import Order, Profile, RunResult
from remote.probe_host import ProbeHost
from tests.probes.site import Probed, probed

# A guest's processor is emulated and may stand still for a second: 8 tries of 1.1 s (kvprobe, 4.2).
PATIENT = {"ack_timeout": 18, "transfer_timeout_s": 60.0}


@pytest.fixture
def site(db: None) -> Probed:
    """Four servers of one partition as rows; no host is reached."""
    return probed()


@pytest.fixture(scope="session")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    """Both guests, up; they end with the tests, also when these are killed."""
    with Guests.up(tmp_path_factory.mktemp("guests") / "g", owned=True) as running:
        yield running


@pytest.fixture(scope="session")
def hosts(guests: Guests) -> Iterator[list[ProbeHost]]:
    """Both guests as a session takes them; they keep their connections, as the worker's do."""
    made = [guest.probe_host() for guest in guests.guests]
    yield made
    for host in made:
        host.close()


@pytest.fixture
def probe(hosts: list[ProbeHost]) -> Callable[..., RunResult]:
    """Run a profile between the guests; keywords go into the order, `before` is called before each step."""

    def probe(profile: Profile, *, before: Any = None, seed: int = 20261201, **changes: Any) -> RunResult:
        order = Order(profile, seed, **{**PATIENT, **changes})
        session = Session(sender=hosts[0], target=hosts[1], order=order, deadline_s=200.0)
        if before is not None:
            session._before = partial(before, session)
        return session.run()

    return probe
