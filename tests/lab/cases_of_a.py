"""The cases of tests/data/partitions_conf, and the same ones under other GUIDs, names and keys and in another order."""

import json
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

from subnet.guid import GUID

FOLDER = Path(__file__).resolve().parents[1] / "data/partitions_conf"
HOSTS = range(1, 7)
_NAMED = re.compile(rb"(?m)^([ \t]*)([A-Za-z][A-Za-z0-9_-]{1,24})(?=[ \t]*=[ \t]*0[xX][0-9a-fA-F]+[ \t]*[,:])")
_KEYED = re.compile(rb"(?m)^([^#\n:=]*=[ \t]*)(0[xX])([0-9a-fA-F]{1,4})(?=[ \t]*[,:])")
_GUID = re.compile(rb"(?i)210fa0300([ae])([1-6])(000[01])")


@dataclass(frozen=True)
class Case:
    """A file on a fabric, and what OpenSM 3.3.23 was seen to make of it."""

    name: str
    net: str
    data: bytes
    options: tuple[str, ...]
    sm_port: GUID
    rejected: bool
    error: str | None
    tables: dict[GUID, dict[int, int]]


def cases() -> list[Case]:
    """The cases as they stand in expected.json."""
    net = (FOLDER / "oracle.net").read_text(encoding="utf-8")
    expected = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    return [
        Case(
            name,
            net,
            (FOLDER / said["file"]).read_bytes(),
            tuple(said["opensm_options"]),
            _port("node01"),
            said["opensm_rejects_file"],
            said["opensm_error"],
            {_port(port): _table(entries) for port, entries in said["pkey_tables"].items()},
        )
        for name, said in sorted(expected.items())
    ]


def _port(name: str) -> GUID:
    """node0N: port 1 of that host; leafN: port 0 of that switch (cases/README)."""
    box, number = name[:4], int(name[4:])
    return GUID(f"0x0210fa0300a{number}0001" if box == "node" else f"0x0210fa0300e{number}0000")


def _table(entries: list[str]) -> dict[int, int]:
    pairs = (entry.split("@") for entry in entries)
    return {int(index): int(key, 16) for key, index in pairs}


def renamed(case: Case, number: int) -> Case:
    """The case with other GUIDs (another vendor, hosts exchanged) and partition names; nothing else changes."""
    shuffled = random.Random(f"{case.name} {number}")  # noqa: S311  no secret
    hosts = dict(zip(HOSTS, shuffled.sample(HOSTS, len(HOSTS)), strict=True))
    vendor = f"{shuffled.randrange(0x100000, 0xFFFFFFF):07x}"

    def other(match: re.Match[bytes]) -> bytes:
        box, host, port = match[1], int(match[2]), match[3].decode()
        # Two switches only: they stay where they are.
        new = f"{vendor}00{box.decode()}{hosts[host] if box.lower() == b'a' else host}{port}"
        return (new.upper() if match[0] != match[0].lower() else new).encode()

    def guid(old: GUID) -> GUID:
        return GUID(_GUID.sub(other, old.encode()).decode().lower())

    names: dict[bytes, bytes] = {}

    def name(match: re.Match[bytes]) -> bytes:
        return match[1] + names.setdefault(match[2], b"n%d-%06x" % (len(names), shuffled.getrandbits(24)))

    data = _GUID.sub(other, case.data)
    return replace(
        case,
        name=f"{case.name} renamed",
        net=_GUID.sub(other, case.net.encode()).decode(),
        # A lone number of 7 hex digits and more may be a GUID only in part: names are changed in headers alone.
        data=_NAMED.sub(name, data),
        sm_port=guid(case.sm_port),
        tables={guid(port): table for port, table in case.tables.items()},
    )


def rekeyed(case: Case) -> Case | None:
    """The case with 0x300 added to every explicit key below 0x80; None when it has none or numbers keys itself.

    A table's order is that of the keys' low bytes here, so every index stays.
    """
    if case.rejected or _auto_numbered(case):
        return None
    changed = 0

    def key(match: re.Match[bytes]) -> bytes:
        nonlocal changed
        number = int(match[3], 16)
        if not 0 < number & 0x7FFF < 0x100:
            return match[0]
        changed += 1
        return match[1] + match[2] + b"%x" % (number + 0x300)

    def entry(old: int) -> int:
        return old + 0x300 if 0 < old & 0x7FFF < 0x100 else old

    data = _KEYED.sub(key, case.data)
    if not changed:
        return None
    tables = {port: {index: entry(old) for index, old in table.items()} for port, table in case.tables.items()}
    return replace(case, name=f"{case.name} rekeyed", data=data, tables=tables)


def _auto_numbered(case: Case) -> bool:
    heads = re.findall(rb"(?m)^[ \t]*([^#\n:;]*):", case.data)
    return any(b"=" not in head.split(b",")[0] for head in heads)


def reordered(case: Case) -> Case | None:
    """The case with its statements in the opposite order; None where the order decides.

    It decides when a key or the lack of one comes twice, and mgid lines are left alone: they reach to their line's end.
    """
    if case.rejected or b"mgid" in case.data or b"indx0" in case.data:
        return None
    statements = [part for part in re.sub(rb"#[^\n]*", b"", case.data).split(b";") if part.strip(b" \t\n")]
    heads = [re.match(rb"[^:=]*=[ \t\n]*(0[xX][0-9a-fA-F]+)[^:]*:", statement) for statement in statements]
    keys = [int(head[1], 16) & 0x7FFF for head in heads if head]
    if len(keys) != len(statements) or len(set(keys)) != len(keys) or len(keys) < 2:
        return None
    data = b"".join(statement.strip(b" \t\n") + b";\n" for statement in reversed(statements))
    return replace(case, name=f"{case.name} reordered", data=data)
