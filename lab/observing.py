"""What an onlooker must never see on a fabric, whatever broke: three rules over one sample of tables and files.

Pure. Nothing here knows what FabricUI's database says: what is allowed is told from outside (ADR 0023).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from subnet.errors import InvalidFile
from subnet.guid import GUID
from subnet.partitions_conf import parse_strict
from subnet.pkey import FULL_BIT

FULL_DEFAULT = 0xFFFF

type Keys = Mapping[int, int]  # index → entry, empty ones left out


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the observer was told: the digests that are revisions, whose a P_Key is, and what a fault does itself.

    `excused` holds words: `fallback`, `tenants`, `file:sm-a`, `port:0x0002…`. A fault that opens the fabric by itself,
    such as a rogue SM, excuses `fallback` as long as it lasts; the product's part in it is never excused.
    """

    version: int = 0
    revisions: frozenset[str] = frozenset()
    tenants: Mapping[int, str] = field(default_factory=dict)  # P_Key without the membership bit → tenant
    sm_ports: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The terms as `Observer.tell` wrote them."""
        return cls(
            version=int(value["version"]),
            revisions=frozenset(value["revisions"]),
            tenants={int(pkey, 16): str(tenant) for pkey, tenant in value["tenants"].items()},
            sm_ports=frozenset(value["sm_ports"]),
            excused=frozenset(value["excused"]),
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One full look: every end port's table, what each leaf switch enforces for it, and every manager's file.

    None stands for a port that did not answer, or a file that is not there.
    """

    ports: Mapping[GUID, Keys | None]
    switch_ports: Mapping[GUID, Keys | None]  # port 0 of each leaf: full in Default by every revision
    leaf_copies: Mapping[GUID, Keys | None]
    files: Mapping[str, bytes | None]

    def silent(self, allowed: Allowed) -> list[GUID]:
        """The ports that did not answer although nothing excuses them."""
        return [guid for guid, keys in self.ports.items() if keys is None and f"port:{guid}" not in allowed.excused]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a sample breaks; `kind` is `file`, `tenants` or `fallback`."""

    kind: str
    where: str
    sentence: str


def violations(sample: Sample, allowed: Allowed) -> Iterator[Violation]:
    """Everything in `sample` that must never be seen and is not excused."""
    for name, data in sample.files.items():
        if f"file:{name}" not in allowed.excused:
            yield from _file(name, data, allowed)
    for guid, keys in sample.ports.items():
        if keys is not None:
            if "fallback" not in allowed.excused and guid not in allowed.sm_ports:
                yield from _fallback(guid, keys)
            yield from _tenants(f"port {guid}", keys, allowed)
    for what, tables in (("switch port", sample.switch_ports), ("leaf copy of port", sample.leaf_copies)):
        for guid, keys in tables.items():
            yield from _tenants(f"{what} {guid}", keys or {}, allowed)


def _file(name: str, data: bytes | None, allowed: Allowed) -> Iterator[Violation]:
    if data is None:
        yield Violation("file", name, f"{name} has no partition file: OpenSM would open the fabric.")
        return
    digest = hashlib.sha256(data).hexdigest()
    try:
        parse_strict(data)
    except InvalidFile as error:
        yield Violation("file", name, f"The file of {name} ({len(data)} bytes) does not parse strictly: {error}")
        return
    if digest not in allowed.revisions:
        yield Violation("file", name, f"The file of {name} (SHA-256 {digest[:12]}…) is no known revision.")


def _fallback(guid: GUID, keys: Keys) -> Iterator[Violation]:
    """Every revision has Default limited, so a full Default key on a server's port is OpenSM's fallback."""
    if FULL_DEFAULT in keys.values():
        yield Violation("fallback", guid, f"Port {guid} is a full member of Default: {_words(keys)}.")


def _tenants(where: str, keys: Keys, allowed: Allowed) -> Iterator[Violation]:
    if "tenants" in allowed.excused:
        return
    owners = {allowed.tenants[key & ~FULL_BIT] for key in keys.values() if key & ~FULL_BIT in allowed.tenants}
    if len(owners) > 1:
        yield Violation(
            "tenants", where, f"{where.capitalize()} holds keys of {' and '.join(sorted(owners))}: {_words(keys)}."
        )


def _words(keys: Keys) -> str:
    return ", ".join(f"0x{key:04x} at {index}" for index, key in sorted(keys.items())) or "no key"
