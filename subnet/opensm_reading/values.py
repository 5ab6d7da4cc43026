"""What OpenSM reads in a partitions.conf, as plain values: statements, partitions, findings, tables.

Lines and columns count from 1; a column counts bytes. Lines are the text's own (ended by LF), as an editor shows them;
only `Rejection.line` counts as OpenSM does, to whom a line over 4094 bytes is several.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from subnet.guid import GUID
from subnet.pkey import PKey

if TYPE_CHECKING:
    from subnet.opensm_reading.store import Statements

ReadMembership = Literal["full", "limited", "both"]
SpecKind = Literal["guid", "ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "NONE"]
Severity = Literal["ok", "warn", "refuse"]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why OpenSM takes nothing of the file: the message it logs, and its own count of the line.

    `line` is None when OpenSM names none: a file without any definition.
    """

    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one header as OpenSM understood them; unknown and unusable ones are not here.

    `mtu` and `rate` are IBTA codes, None when the header sets none (OpenSM then takes mtu 4 and rate 3). `sl` is as
    the header sets it; OpenSM uses it only with QoS on. `scope` holds the scopes named, ascending.
    """

    ipoib: bool = False
    mtu: int | None = None
    rate: int | None = None
    sl: int | None = None
    scope: tuple[int, ...] = ()
    q_key: int | None = None
    tclass: int | None = None
    flow_label: int | None = None
    indx0: bool = False
    defmember: ReadMembership = "limited"


@dataclass(frozen=True, slots=True)
class Spec:
    """One member as it stands in a list: who (`kind`, and the number if it is one) and how.

    `guid` may be any 64-bit number, one that no port has included. `membership` is "both" as written, also where
    OpenSM takes it for full.
    """

    line: int
    column: int
    kind: SpecKind
    guid: int | None
    membership: ReadMembership


@dataclass(frozen=True, slots=True)
class MgidLine:
    """A multicast group a statement asks for: its text without comment, and whether OpenSM makes the group."""

    line: int
    text: str
    accepted: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """One definition of the file, from its header to its `;`. `line` is the header's."""

    line: int
    flags: Flags
    specs: Sequence[Spec]
    mgids: Sequence[MgidLine]


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """All statements of one P_Key, which OpenSM merges under the first name.

    `name` is what OpenSM keeps (31 bytes; bytes that are no UTF-8 show as \\xNN). `auto_numbered` says that OpenSM
    chose the P_Key, by the order of the file.
    """

    pkey: PKey
    name: str
    auto_numbered: bool
    statements: "Statements"


@dataclass(frozen=True, slots=True)
class Finding:
    """One oddity: where, which rule (docs/partitions-conf.md), what OpenSM will do, and how to mend it."""

    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Check:
    """What can be said of a file without knowing the fabric; the verdict is the worst finding's severity."""

    verdict: Severity
    findings: tuple[Finding, ...]
    partitions: tuple[ReadPartition, ...]
    rejection: Rejection | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What OpenSM makes of a file on a given fabric: each end port's table (index → 16-bit entry).

    After a rejection the tables are those of OpenSM's fallback and `partitions` is empty.
    """

    rejection: Rejection | None
    tables: Mapping[GUID, Mapping[int, int]]
    partitions: tuple[ReadPartition, ...]
    findings: tuple[Finding, ...]
