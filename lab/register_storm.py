"""A boot storm: many servers at once that enrol and report as the agent does, each over connections of its own.

What they send is made before the clock starts: on one machine the servers would else take the door's processors.
"""

import asyncio
import contextlib
import copy
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inventory import agent
from lab.register_door import RegisterDoor

# Requests on their way at any moment. In a storm of 5,000 servers far more wait; with 64 the door waited for servers as
# long as they for it, and that measured how long an answer takes instead of how many it gives (docs/registration.md).
AT_ONCE = 256
ATTEMPTS = 8
_TIMEOUT_S = 60.0


@dataclass
class Storm:
    """What a storm of servers met."""

    seconds: float = 0.0
    cpu_s: float = 0.0  # of door, broker and database
    client_s: float = 0.0  # processor seconds of the servers themselves
    answered: int = 0  # servers whose last request was answered as it should be
    tries_again: int = 0
    longest_s: float = 0.0  # from the first connection of a server to its last answer


def hostname(number: int) -> str:
    """The host name of server `number`."""
    return f"srv-{number:05}"


def port_guids(number: int, hcas: int) -> list[str]:
    """The port GUIDs of server `number`."""
    return [f"0x{0x0002C90300000000 + (number * 64 + at) * 16 + 1:016x}" for at in range(hcas)]


def run(door: RegisterDoor, numbers: Iterable[int], *, hcas: int) -> Storm:
    """Let each server of `numbers` enrol and report, at most `AT_ONCE` requests at a time."""
    return _measured(door, [(enrolment(door, number), report(door, number, hcas)) for number in numbers])


def again(door: RegisterDoor, numbers: Iterable[int], *, hcas: int) -> Storm:
    """Let each server of `numbers`, which have enrolled, say again what it said, as it does every hour."""
    return _measured(door, [(report(door, number, hcas),) for number in numbers])


def _measured(door: RegisterDoor, servers: Sequence[Sequence[bytes]]) -> Storm:
    storm, waiting = Storm(), iter(servers)
    cpu_s, client_s, began = door.cpu_s(), time.process_time(), time.perf_counter()
    asyncio.run(_all(door, waiting, storm))
    storm.seconds, storm.cpu_s = time.perf_counter() - began, door.cpu_s() - cpu_s
    storm.client_s = time.process_time() - client_s
    return storm


async def _all(door: RegisterDoor, waiting: Iterator[Sequence[bytes]], storm: Storm) -> None:
    async def one_after_another() -> None:
        for requests in waiting:
            await _boot(door, requests, storm)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


async def _boot(door: RegisterDoor, requests: Sequence[bytes], storm: Storm) -> None:
    began = time.perf_counter()
    for request in requests:
        if await _post(door, request, storm) not in (200, 201):
            return
    storm.answered += 1
    storm.longest_s = max(storm.longest_s, time.perf_counter() - began)


def enrolment(door: RegisterDoor, number: int) -> bytes:
    """The request with which server `number` enrols."""
    value = {
        "schema": agent.SCHEMA,
        "hostname": hostname(number),
        "boot_id": "boot-1",
        "credential_digest": hashlib.sha256(_secret(number).encode()).hexdigest(),
    }
    return _request(door, "enrol", door.token, value)


def report(door: RegisterDoor, number: int, hcas: int) -> bytes:
    """The request with which server `number` reports."""
    return _request(door, "reports", _secret(number), a_report(number, hcas))


def _secret(number: int) -> str:
    return f"secret of {hostname(number)}"


def _request(door: RegisterDoor, name: str, secret: str, value: dict[str, Any]) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"POST {agent.DOOR}/{name} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _post(door: RegisterDoor, request: bytes, storm: Storm) -> int:
    """The status in the end; 0 when nobody answered."""
    status = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            storm.tries_again += 1
            await asyncio.sleep(random.uniform(0, 2.0 * 2 ** (attempt - 1)))  # noqa: S311  jitter
        status = 0
        with contextlib.suppress(OSError, ValueError, IndexError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                status = await _exchange(door.port, request)
        if status and status < 500 and status not in (408, 429):
            break
    return status


async def _exchange(port: int, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        answer = await reader.read()
        return int(answer.split(b" ", 2)[1])
    finally:
        writer.close()


def a_report(number: int, hcas: int) -> dict[str, Any]:
    """What the agent would send from server `number`: read by the agent itself, with other GUIDs put in."""
    report = copy.deepcopy(_read_by_the_agent(hcas))
    report["hostname"] = hostname(number)
    for port, guid in zip(report["ports"], port_guids(number, hcas), strict=True):
        port["port_guid"] = guid
        port["node_guid"] = port["system_image_guid"] = guid[:-1] + "0"
    return report


@cache
def _read_by_the_agent(hcas: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as top:
        for at in range(hcas):
            for path, content in _FILES.items():
                file = Path(top) / f"mlx5_{at}" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content.format(at=at))
        machine = {"hostname": "srv", "boot_id": "boot-1", "machine_id": "0" * 32}
        report: dict[str, Any] = agent.read_report(top, machine)
    return report


_FILES = {
    "node_guid": "0002:c903:0001:{at}000\n",
    "sys_image_guid": "0002:c903:0001:{at}000\n",
    "node_desc": "srv mlx5_{at}\n",
    "node_type": "1: CA\n",
    "hca_type": "MT4129\n",
    "fw_ver": "28.39.1002\n",
    "board_id": "MT_0000000838\n",
    "ports/1/state": "4: ACTIVE\n",
    "ports/1/phys_state": "5: LinkUp\n",
    "ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "ports/1/link_layer": "InfiniBand\n",
    "ports/1/lid": "0x15\n",
    "ports/1/sm_lid": "0x1\n",
    "ports/1/gids/0": "fe80:0000:0000:0000:0002:c903:0001:{at}001\n",
    "ports/1/pkeys/0": "0x7fff\n",
    "ports/1/pkeys/1": "0x8123\n",
    **{
        f"ports/1/counters/{name}": "0\n"
        for name in (
            "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
            "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors",
            "port_rcv_packets", "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
            "port_xmit_constraint_errors", "port_xmit_data", "port_xmit_discards", "port_xmit_packets",
            "port_xmit_wait", "symbol_error",
        )
    },
}  # fmt: skip
