"""A boot storm: many servers at once that enrol and report as the agent does, each over connections of its own."""

import asyncio
import contextlib
import copy
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inventory import agent
from lab.register_door import RegisterDoor

AT_ONCE = 64  # requests on their way at any moment; a rack or two that comes back from a power cut
ATTEMPTS = 8
_TIMEOUT_S = 60.0


@dataclass
class Storm:
    """What a storm of servers met."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    answered: int = 0  # servers whose report was answered with 200
    tries_again: int = 0
    longest_s: float = 0.0  # from the first connection of a server to its last answer


def hostname(number: int) -> str:
    """The host name of server `number`."""
    return f"srv-{number:05}"


def port_guids(number: int, hcas: int) -> list[str]:
    """The port GUIDs of server `number`."""
    return [f"0x{0x0002C90300000000 + (number * 64 + at) * 16 + 1:016x}" for at in range(hcas)]


def run(door: RegisterDoor, numbers: Iterable[int], *, hcas: int) -> Storm:
    """Let each server of `numbers` enrol and report, at most 64 requests at a time."""
    storm, waiting = Storm(), iter(list(numbers))
    cpu_s, began = door.cpu_s(), time.perf_counter()
    asyncio.run(_all(door, waiting, hcas, storm))
    storm.seconds, storm.cpu_s = time.perf_counter() - began, door.cpu_s() - cpu_s
    return storm


async def _all(door: RegisterDoor, waiting: Iterable[int], hcas: int, storm: Storm) -> None:
    async def one_after_another() -> None:
        for number in waiting:
            await _boot(door, number, hcas, storm)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


async def _boot(door: RegisterDoor, number: int, hcas: int, storm: Storm) -> None:
    began = time.perf_counter()
    secret = f"secret of {hostname(number)}"
    enrolment = {
        "schema": agent.SCHEMA,
        "hostname": hostname(number),
        "boot_id": "boot-1",
        "credential_digest": hashlib.sha256(secret.encode()).hexdigest(),
    }
    if await _post(door, "enrol", door.token, enrolment, storm) != 201:
        return
    if await _post(door, "reports", secret, a_report(number, hcas), storm) == 200:
        storm.answered += 1
    storm.longest_s = max(storm.longest_s, time.perf_counter() - began)


async def _post(door: RegisterDoor, name: str, secret: str, value: dict[str, Any], storm: Storm) -> int:
    """The status in the end; 0 when nobody answered."""
    body = json.dumps(value).encode()
    head = (
        f"POST {agent.DOOR}/{name} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    status = 0
    for attempt in range(ATTEMPTS):
        if attempt:
            storm.tries_again += 1
            await asyncio.sleep(random.uniform(0, 2.0 * 2 ** (attempt - 1)))  # noqa: S311  jitter
        status = 0
        with contextlib.suppress(OSError, ValueError, IndexError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                status = await _exchange(door.port, head.encode() + body)
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
