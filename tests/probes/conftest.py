"""Fixtures: a provider with probe hosts as rows; the two RDMA guests, brought up once, and a session between them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.guests.guests import Guests
from probes import on_host
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


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A sysfs with one InfiniBand HCA of one port; returns the function that writes below it."""
    root = tmp_path / "infiniband"

    def write(**files: str) -> None:
        for name, text in files.items():
            path = root / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    write(
        mlx5_0__node_guid="0002:c903:000a:0001", mlx5_0__hca_type="MT4129", mlx5_0__ports__1__state="4: ACTIVE",
        mlx5_0__ports__1__phys_state="5: LinkUp", mlx5_0__ports__1__link_layer="InfiniBand",
        mlx5_0__ports__1__rate="400 Gb/sec (4X NDR)", mlx5_0__ports__1__lid="0x1a",
        mlx5_0__ports__1__gids__0="fe80:0000:0000:0000:0002:c903:000a:0002",
        mlx5_0__ports__1__pkeys__0="0x7fff", mlx5_0__ports__1__pkeys__1="0x0010", mlx5_0__ports__1__pkeys__2="0x0000",
        mlx5_0__ports__1__pkeys__10="0x8010",
    )  # fmt: skip
    monkeypatch.setattr(on_host, "SYSFS", str(root))
    return write


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
