"""What is known of a partitions.conf as text and as JSON, in pieces, because a file may be large.

The JSON is a contract: docs/partitions-conf.md describes it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import batched
from typing import Any

from subnet.guid import GUID
from subnet.opensm_reading import Check, Fabric, Finding, Flags, Reading, ReadPartition, Rejection
from subnet.pkey import entry_text

_ITEMS_A_PIECE = 5000
_quoted = json.JSONEncoder().encode


def check_json(found: Check) -> Iterator[str]:
    """`check --json`."""
    findings = [
        {
            "line": one.line,
            "column": one.column,
            "rule": one.rule,
            "severity": one.severity,
            "message": one.message,
            "fix": one.fix,
        }
        for one in found.findings
    ]
    yield f'{{"verdict": {json.dumps(found.verdict)}, "findings": {json.dumps(findings)}, "partitions": ['
    for number, partition in enumerate(found.partitions):
        yield ", " if number else ""
        yield from _partition_json(partition)
    yield "]}"


def _partition_json(partition: ReadPartition) -> Iterator[str]:
    """One partition: its flags as OpenSM merges them, and its members with what each one's last mention says."""
    statements = partition.statements
    head = {"pkey": str(partition.pkey), "name": partition.name, "auto_numbered": partition.auto_numbered}
    yield json.dumps(head)[:-1] + ', "lines": ['
    yield from _in_pieces(map(str, statements.lines()))
    yield f'], "flags": {json.dumps(_merged(*statements.flags()))}, "mgids": ['
    yield from _in_pieces(
        f'{{"line": {line}, "text": {_quoted(text)}, "accepted": {"true" if accepted else "false"}}}'
        for line, text, accepted in statements.mgids()
    )
    yield '], "members": ['
    yield from _in_pieces(
        f'{{"member": "{who if isinstance(who, str) else f"0x{who:016x}"}", "membership": "{membership}"}}'
        for who, membership in statements.mentions().items()
    )
    yield "]}"


def _in_pieces(items: Iterable[str]) -> Iterator[str]:
    """The items of a list, many at a time."""
    separator = ""
    for piece in batched(items, _ITEMS_A_PIECE):
        yield separator + ", ".join(piece)
        separator = ", "


def _merged(flags: list[Flags], last: Flags) -> dict[str, Any]:
    """The flags of a partition: the group is made by the first statement with ipoib, sl is set by the last one."""
    group = next((one for one in flags if one.ipoib), flags[0])
    return {
        "ipoib": any(one.ipoib for one in flags),
        "mtu": group.mtu,
        "rate": group.rate,
        "sl": last.sl,
        "scope": list(group.scope),
        "q_key": group.q_key,
        "tclass": group.tclass,
        "flow_label": group.flow_label,
        "indx0": any(one.indx0 for one in flags),
        "defmember": flags[0].defmember if len({one.defmember for one in flags}) == 1 else None,
    }


def check_text(found: Check) -> Iterator[str]:
    """`check` for people: a line a finding, then the verdict."""
    for one in found.findings:
        yield _finding_text(one)
    count = Counter(one.severity for one in found.findings)
    said = {
        "ok": "ok: OpenSM takes the file as it is meant.",
        "warn": f"warn: OpenSM takes the file; {count['warn']} findings to look at.",
        "refuse": "refuse: do not place this file.",
    }
    yield said[found.verdict]


def _finding_text(one: Finding) -> str:
    return f"{one.line}:{one.column}: {one.severity}: {one.message} {one.fix} [{one.rule}]\n"


def explain_json(reading: Reading) -> Iterator[str]:
    """`explain --json`."""
    yield json.dumps(
        {
            "rejected": reading.rejection is not None,
            "error": error_text(reading.rejection),
            "ports": {guid: entries_of(table) for guid, table in sorted(reading.tables.items())},
        }
    )


def explain_text(reading: Reading, fabric: Fabric) -> Iterator[str]:
    """`explain` for people: what is wrong, then a line a port."""
    for one in reading.findings:
        yield _finding_text(one)
    yield _fate(reading, "The file") + "\n"
    for guid, table in sorted(reading.tables.items()):
        yield f"{guid}  {' '.join(entries_of(table))}{_label(fabric, guid)}\n"
    yield f"{len(reading.tables)} end ports."


def diff_json(old: Reading, new: Reading) -> Iterator[str]:
    """`diff --json`: only the ports whose table differs."""
    yield json.dumps(
        {
            "old": {"rejected": old.rejection is not None, "error": error_text(old.rejection)},
            "new": {"rejected": new.rejection is not None, "error": error_text(new.rejection)},
            "ports": {
                guid: {
                    "old": entries_of(old.tables[guid]),
                    "new": entries_of(new.tables[guid]),
                    "gains": _without(new.tables[guid], old.tables[guid]),
                    "loses": _without(old.tables[guid], new.tables[guid]),
                }
                for guid in _differing(old, new)
            },
        }
    )


def diff_text(old: Reading, new: Reading, fabric: Fabric) -> Iterator[str]:
    """`diff` for people."""
    yield f"{_fate(old, 'The old file')}\n{_fate(new, 'The new file')}\n"
    differing = _differing(old, new)
    for guid in differing:
        yield f"{guid}{_label(fabric, guid)}\n"
        yield f"  old {' '.join(entries_of(old.tables[guid]))}\n  new {' '.join(entries_of(new.tables[guid]))}\n"
    yield f"{len(differing)} of {len(new.tables)} end ports differ."


def error_text(rejection: Rejection | None) -> str | None:
    """What OpenSM writes to its log; nothing for a file without any definition, of which it names no line."""
    if rejection is None or rejection.line is None:
        return None
    return f"PARSE ERROR: line {rejection.line}: {rejection.message}"


def entries_of(table: Mapping[int, int]) -> list[str]:
    """A table as `0xKEY@INDEX`, by index."""
    return [f"{entry_text(entry)}@{index}" for index, entry in sorted(table.items())]


def _differing(old: Reading, new: Reading) -> list[GUID]:
    return sorted(guid for guid, table in new.tables.items() if table != old.tables[guid])


def _without(table: Mapping[int, int], other: Mapping[int, int]) -> list[str]:
    return [entry_text(entry) for entry in sorted(set(table.values()) - set(other.values()))]


def _fate(reading: Reading, what: str) -> str:
    if reading.rejection is None:
        return f"{what} is taken."
    error = error_text(reading.rejection) or reading.rejection.message
    return f"{what} is rejected ({error}): every port becomes a full member of Default and of nothing else."


def _label(fabric: Fabric, guid: GUID) -> str:
    """The port's label with nothing in it that a terminal would obey."""
    label = "".join(char for char in fabric.ports[guid].label if char.isprintable())
    return f"  {label}" if label else ""
