"""Small fabrics for tests, as values and as the reader's JSON lines."""

import json
from dataclasses import replace
from pathlib import Path

from subnet.guid import GUID
from subnet.observed import LeafCopy, ObservedFabric, PortReading, SeenSM
from subnet.pkey import Membership, PKey
from subnet.table import Flags, Member, Partition, PartitionTable

DATA = Path(__file__).parent.parent / "data"

FULL, LIMITED = Membership.FULL, Membership.LIMITED
SM1, SM2 = GUID("0x0002c903000a0001"), GUID("0x0002c903000b0001")
LEAF = GUID("0x0010000000010000")
TRAINING, INFERENCE, STORAGE = PKey(0x2C41), PKey(0x0044), PKey(0x1001)


def guid(number: int) -> GUID:
    """The GUID of the test HCA port with this number."""
    return GUID(f"0x0002c9030001{number:04x}")


def partition(pkey: PKey, name: str, tenant: str | None, *members: GUID, membership=FULL, ipoib=False) -> Partition:
    return Partition(pkey, name, tenant, tuple(Member(member, membership) for member in members), Flags(ipoib=ipoib))


def table(*partitions: Partition, sm_ports=(SM1, SM2), labels=None) -> PartitionTable:
    return PartitionTable(sm_ports=sm_ports, partitions=partitions, labels=labels or {})


def port(name: GUID | int, pkeys=None, *, lid=None, leaf: LeafCopy | None = None, **changes) -> PortReading:
    """An active HCA port that only holds Default as a limited member, unless told otherwise."""
    its_guid = name if isinstance(name, GUID) else guid(name)
    reading = PortReading(
        guid=its_guid,
        node_guid=GUID(f"0x{its_guid.number - 1 or 1:016x}"),
        system_guid=None,
        node_type="CA",
        number=1,
        lid=lid if lid is not None else 100 + its_guid.number % 1000,
        state="ACTIVE",
        phys="LinkUp",
        master_sm_lid=1,
        is_sm=False,
        capacity=64,
        pkeys={0: 0x7FFF} if pkeys is None else pkeys,
        leaf=leaf,
        description="an HCA",
        reading="read",
        error=None,
    )
    return replace(reading, **changes)


def leaf_copy(pkeys, *, enforcing=True, **changes) -> LeafCopy:
    return replace(LeafCopy(LEAF, 5, 3, pkeys, enforcing, enforcing, 64), **changes)


def sm_ports() -> tuple[PortReading, PortReading]:
    """The ports of the two manager hosts."""
    return (
        port(SM1, {0: 0xFFFF}, lid=1, is_sm=True),
        port(SM2, {0: 0xFFFF}, lid=2, is_sm=True),
    )


MASTER = SeenSM(SM1, 1, "MASTER", 5, 100)
STANDBY = SeenSM(SM2, 2, "STANDBY", 1, 50)


def fabric(*ports: PortReading, sms=(MASTER, STANDBY), managers=True) -> ObservedFabric:
    """A fabric of these ports, with both manager hosts."""
    every = (*sm_ports(), *ports) if managers else ports
    return ObservedFabric(
        ports={reading.guid: reading for reading in every},
        sms=tuple(sms),
        topology="list",
        list_mtime_ns=1,
        smps=1,
        seconds=0.1,
        timeouts=0,
    )


def port_line(**changes) -> dict:
    """One port as the reader prints it."""
    return {
        "kind": "port", "port_guid": "0x0002c90300010001", "node_guid": "0x0002c90300010000",
        "system_guid": "0x0002c90300010000", "node_type": "CA", "port": 1, "lid": 7, "state": "ACTIVE",
        "phys": "LinkUp", "master_sm_lid": 1, "is_sm": False, "capacity": 64,
        "pkeys": {"0": "0x7fff", "2": "0xac41"},
        "leaf": {"guid": "0x0010000000010000", "port": 5, "lid": 3, "pkeys": {"0": "0x7fff", "1": "0xac41"},
                 "enforce_in": True, "enforce_out": True},
        "description": "srv-001 mlx5_0", "reading": "read", "error": None,
    } | changes  # fmt: skip


def reading_bytes(*lines: dict, **end) -> bytes:
    """The reader's whole answer with these port and SM lines."""
    ports = sum(line.get("kind") == "port" for line in lines)
    every = [
        {"kind": "reading", "version": 1, "topology": "list", "list_mtime_ns": 123},
        *lines,
        {"kind": "end", "ports": ports, "smps": 40, "timeouts": 1, "seconds": 0.25} | end,
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in every)
