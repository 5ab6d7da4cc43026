"""A file with what the real OpenSM made of it, as two files side by side: `NAME.conf` and `NAME.json`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.differential.comparison import shown
from lab.oracle import OracleAnswer


@dataclass(frozen=True, slots=True)
class Case:
    """What OpenSM with `options` did with `data` on the differential's fabric, and why that is worth keeping."""

    name: str
    data: bytes
    options: tuple[str, ...]
    expected: dict[str, Any]
    why: str


def outcome(answer: OracleAnswer) -> dict[str, Any]:
    """An answer as JSON values: `died`, `rejection` as [line, message], `tables` as `0xKEY@INDEX`."""
    return {
        "died": answer.died,
        "rejection": None if answer.rejection is None else list(answer.rejection),
        "tables": {guid: shown(table) for guid, table in sorted(answer.tables.items())},
    }


def save(case: Case, folder: Path) -> Path:
    """Write a case and return its file of bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.name}.conf"
    path.write_bytes(case.data)
    said = {"why": case.why, "options": list(case.options), "opensm": case.expected}
    path.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Case:
    """The case whose bytes lie in `path`."""
    said = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Case(path.stem, path.read_bytes(), tuple(said["options"]), said["opensm"], said["why"])
