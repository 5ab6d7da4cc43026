"""The data plane of a running house: two RDMA guests that boot beside it, register themselves and are probed.

They are real kernels with real verbs over Soft-RoCE. Their ports are Ethernet, so they are in no partition: the pair
comes from a probe set.
"""

import asyncio
import contextlib
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lab import tls
from lab.errors import LabError
from lab.guests import guests, packages
from lab.guests.guests import HERE_FROM_GUESTS, Guest, Guests
from lab.house import House
from lab.rows import lab_actor

if TYPE_CHECKING:
    from probes.models import ProbeScope
    from probes.settings_of_scope import ScopeSettings

PROBE_SET = "RDMA guests"
LABEL = "Soft-RoCE, software: shows the path, not the speed"
INTERVAL_S = 30
PROFILES = ("link", "kv-scatter-16k", "lat")  # they fill every part of a pair's page
_MIB = 1 << 20


@contextmanager
def beside(house: House, *, wanted: bool | None) -> Iterator[None]:
    """Keep the RDMA guests beside a furnished house while the block lasts; they come up while it runs already.

    `wanted` None takes them when their packages are there, and says in one line when not. What fails here is said and
    ends nothing else: the board does not need them.
    """
    absent = packages.missing() if wanted is not False else []
    if absent:
        print(f"No RDMA guests, so no probes: {' '.join(absent)} missing (“./run demo --rdma” installs).", flush=True)
    if wanted is False or absent:
        yield
        return
    place = house.site.layout.guests
    is_over = threading.Event()
    thread = threading.Thread(target=_bring_up, args=(house, place, is_over), name="rdma-guests", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        # Whatever the thread waits for ends with the guests; it may be about to start them.
        while thread.is_alive():
            with contextlib.suppress(LabError, OSError):
                guests.down(place)
            thread.join(timeout=0.1)
        guests.down(place)


def _bring_up(house: House, place: Path, is_over: threading.Event) -> None:
    from django.db import connection

    print("Two RDMA guests start beside it (emulated; “--no-rdma” does without) …", flush=True)
    try:
        pair = Guests.up(place, owned=True, mark=house.site.lab)
        scope = furnish(house, pair)
        print(f"RDMA guests: registered, first probes under way. {LABEL}.\n  {scope_url(house, scope)}", flush=True)
    except Exception as problem:  # whatever it is, the demo goes on without
        if not is_over.is_set():
            print(f"The RDMA guests are not there, the rest goes on: {problem}", file=sys.stderr, flush=True)
    finally:
        connection.close()


def scope_settings() -> "ScopeSettings":
    """How the guests are probed: few bytes and much patience, because each processor is emulated."""
    from probes.settings_of_scope import ScopeSettings

    return ScopeSettings(
        is_enabled=True, is_patient=True, bytes_per_run=8 * _MIB, interval_s=INTERVAL_S, budget=2, profiles=PROFILES
    )


def furnish(house: House, pair: Guests, *, settings: "ScopeSettings | None" = None) -> "ProbeScope":
    """Let both guests register themselves, and make a probe set of them that is probed from now on.

    Without `settings` it is probed as `scope_settings` says. Raises LabError when an agent failed.
    """
    from django.db import transaction

    from inventory.models import Server
    from probes import operations as probes

    _register(house, pair)
    lab, note = lab_actor(), f"Two emulated servers. {LABEL}."
    with transaction.atomic():  # a tick must not find the set with one server, and come back an interval later
        scope = probes.create_probe_set(
            subnet=house.subnet, name=PROBE_SET, note=note, settings=settings or scope_settings(), actor=lab
        )
        for guest in pair.guests:
            host = probes.add_probe_host(
                server=Server.objects.get(subnet=house.subnet, hostname=guest.name), address=guest.address,
                ssh_port=guest.ssh_port, ssh_user=guest.user, host_key=guest.host_key,
                program_digest=guest.program_digest, wrapper_digest=guest.wrapper_digest, actor=lab,
            )  # fmt: skip
            probes.add_to_probe_set(scope=scope, host=host, device=guest.device, port=1, actor=lab)
    return scope


def scope_url(house: House, scope: "ProbeScope") -> str:
    """Where the probe set's page is."""
    from django.urls import reverse

    return house.url.rstrip("/") + reverse("probes:scope", args=[scope.public_id], urlconf="fabricui.urls")


def _register(house: House, pair: Guests) -> None:
    """Run the agent in both guests, which reach the registration door of this machine by TLS."""
    from inventory import operations as inventory

    token = inventory.create_enrolment_token(
        subnet=house.subnet, name=PROBE_SET, uses=len(pair.guests), lifetime=timedelta(hours=1), actor=lab_actor()
    )
    key_file = house.folder / "door.pem"
    certificate = tls.make_certificate(HERE_FROM_GUESTS, key_file=key_file)

    async def through_the_door() -> None:
        async with tls.door(house.register_port, key_file=key_file) as port:
            await asyncio.gather(
                *(asyncio.to_thread(_run_agent, guest, port, token, certificate) for guest in pair.guests)
            )

    asyncio.run(through_the_door())


def _run_agent(guest: Guest, port: int, token: str, certificate: str) -> None:
    guest.run_agent(
        "--url", f"https://{HERE_FROM_GUESTS}:{port}", "--ca-file", "/run/door.pem",
        "--enrolment-token-file", "/run/enrolment-token", "--credential-file", "/run/fabricui-agent/credential",
        "--machine-id", uuid.uuid5(uuid.NAMESPACE_OID, guest.node_guid).hex, "--attempts", "4", "--backoff-s", "1",
        files={"door.pem": certificate, "enrolment-token": token}, timeout_s=120.0,
    )  # fmt: skip
