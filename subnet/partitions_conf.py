"""OpenSM's partitions.conf: the canonical bytes of a table, and the table of canonical bytes.

OpenSM never refuses a file: what it dislikes becomes “everyone full in Default”, and half a file is a smaller
configuration (ground truth: OpenSM, 0 and 2.9). So there is exactly one way to write a table, and the parser accepts
nothing else.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from subnet.errors import InvalidFile, InvalidName, InvalidTable, SubnetError
from subnet.guid import GUID
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.table import Flags, Member, Partition, PartitionTable, safe_label

NO_PARENT = "0" * 64

_END = "# end"
_PROVIDER = "# provider"
_DEFAULT_HEADER = f"Default={DEFAULT}, ipoib, defmember=limited :"
# The order matters: for one port the last line wins (ground truth: OpenSM, 2.7 and 10). SELF follows ALL, or the SM's
# own port would be demoted; the SM ports follow by GUID, or the SA would be cut off after a takeover.
_EVERYBODY = (" ALL=limited,", " ALL_SWITCHES=full,", " ALL_ROUTERS=full,", " SELF=full,")

_FIRST_LINE = re.compile(
    r"# FabricUI subnet=([A-Za-z0-9._-]{1,60}) revision=(0|[1-9][0-9]{0,17}) parent=([0-9a-f]{64})\Z"
)
_SM_PORT = re.compile(r" (0x[0-9a-f]{16})=full([,;])\Z")
_OWNER = re.compile(r"# tenant ([A-Za-z0-9._-]{1,60})\Z")
_PARTITION = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,30})=(0x[0-9a-f]{4})(, ipoib)?, defmember=limited :\Z")
_RUN = re.compile(r"# (?:no server|server ([A-Za-z0-9._-]{1,60})), [1-9][0-9]{0,6} ports?\Z")
_MEMBER = re.compile(r" (0x[0-9a-f]{16})=(full|limited)([,;])\Z")


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says: subnet, revision number, and the digest of the parent's bytes (64 hex digits).

    Raises InvalidName for a subnet or a parent that cannot stand in that line.
    """

    subnet: str
    revision: int
    parent: str = NO_PARENT

    def __post_init__(self) -> None:
        if not _FIRST_LINE.match(self.line):
            raise InvalidName(
                f"Subnet “{self.subnet[:60]}”, revision {self.revision} and parent “{self.parent[:64]}” cannot head a "
                "file: a subnet is 1 to 60 letters, digits, “_”, “.” or “-”, a parent is 64 hex digits."
            )

    @property
    def line(self) -> str:
        """The first line of the file, without its line end."""
        return f"# FabricUI subnet={self.subnet} revision={self.revision} parent={self.parent}"


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a canonical file says."""

    header: Header
    table: PartitionTable


def render(table: PartitionTable, header: Header) -> bytes:
    """The one file that says `table`: ASCII, LF, one member a line, no line of 200 bytes, last line `# end`.

    Partitions without members are left out: OpenSM drops them anyway. Labels of ports that are in no partition do
    not appear. The bytes depend on the values alone, not on the order they were put together.

    Raises InvalidTable for a table without SM ports: after a takeover no limited host could reach the SA
    (ground truth: OpenSM, 7).
    """
    if not table.sm_ports:
        raise InvalidTable(
            "The table names no subnet manager's port. Enrol the manager hosts first: each SM port must be a full "
            "member of Default, or hosts cannot reach the subnet administrator after a takeover."
        )
    lines = [header.line, _DEFAULT_HEADER, *_EVERYBODY]
    lines += _closed([f" {guid}=full," for guid in table.sm_ports])
    for partition in table.partitions:
        if partition.members:
            lines += _partition_lines(partition, table)
    lines += [_END, ""]
    return "\n".join(lines).encode("ascii")


def parse_strict(data: bytes) -> ParsedFile:
    """The header and table that `data` says, if `render` could have written `data`; raise InvalidFile otherwise.

    Every truncation, every other order, spelling, blank or line end is refused, with the line where it shows.
    """
    lines = _canonical_lines(data)
    parsed = _Reader(lines).read()
    again = render(parsed.table, parsed.header)
    if again != data:
        raise InvalidFile(
            "this is not what FabricUI writes for such a table (order, counts or blanks differ). "
            "Someone edited the file by hand; put the current revision back.",
            line=_first_difference(lines, again.decode("ascii").split("\n")),
        )
    return parsed


def digest(data: bytes) -> str:
    """The SHA-256 of the file's bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def table_digest(table: PartitionTable) -> str:
    """The SHA-256 over what reaches a port: sorted `pkey guid membership` lines and each partition's flags.

    Names, tenants, labels and partitions without members do not count: changing only these is nothing to roll out.
    """
    facts = [f"{DEFAULT} {guid} {Membership.FULL}" for guid in table.sm_ports]
    facts += [f"{partition.pkey} {member.guid} {member.membership}" for partition, member in table.memberships()]
    facts += [f"{partition.pkey} ipoib" for partition in table.partitions if partition.ipoib and partition.members]
    return hashlib.sha256("\n".join(sorted(facts)).encode("ascii")).hexdigest()


def _partition_lines(partition: Partition, table: PartitionTable) -> Iterator[str]:
    """The owner, the header and the members of one partition, with a comment before each run of one server's ports."""
    yield _PROVIDER if partition.tenant is None else f"# tenant {partition.tenant}"
    ipoib = ", ipoib" if partition.ipoib else ""
    yield f"{partition.name}={partition.pkey}{ipoib}, defmember=limited :"
    last = partition.members[-1]
    for label, run in groupby(partition.members, key=lambda member: table.labels.get(member.guid)):
        members = list(run)
        server = "no server" if label is None else f"server {safe_label(label)}"
        yield f"# {server}, {len(members)} {'port' if len(members) == 1 else 'ports'}"
        for member in members:
            yield f" {member.guid}={member.membership}{';' if member is last else ','}"


def _closed(members: list[str]) -> list[str]:
    """The member lines with `;` directly after the last GUID: a `;` alone on a line spoils the whole file."""
    return [*members[:-1], members[-1][:-1] + ";"]


def _canonical_lines(data: bytes) -> list[str]:
    """The lines of `data` without the last, empty one; raise InvalidFile where the bytes cannot be ours."""
    if not data:
        raise InvalidFile("the file is empty: OpenSM makes every port a full member of Default and drops the rest")
    for fault, sentence in (
        (b"\r", "the line holds a carriage return: OpenSM rejects the whole file"),
        (b"\0", "the line holds a NUL byte"),
    ):
        position = data.find(fault)
        if position >= 0:
            raise InvalidFile(sentence, line=data.count(b"\n", 0, position) + 1)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidFile(
            "the line holds a byte that is not ASCII", line=data.count(b"\n", 0, error.start) + 1
        ) from None
    lines = text.split("\n")
    if lines.pop() or not lines or lines[-1] != _END:
        raise InvalidFile(
            "the file is cut short: its last line is not “# end”. OpenSM may take it for a smaller configuration",
            line=max(len(lines), 1),
        )
    return lines


def _first_difference(lines: list[str], expected: list[str]) -> int:
    pairs = enumerate(zip(lines, expected, strict=False), start=1)
    return next((number for number, (found, wanted) in pairs if found != wanted), min(len(lines), len(expected)))


class _Reader:
    """Reads a file's lines from the first to the last; every complaint names the line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def read(self) -> ParsedFile:
        header = self._header()
        sm_ports = self._default()
        labels: dict[GUID, str] = {}
        partitions: list[Partition] = []
        names: set[str] = set()
        while self._here() != _END:
            first_line = self.at + 1
            try:
                partition = self._partition(labels)
            except InvalidFile:
                raise
            except SubnetError as error:
                raise InvalidFile(str(error), line=first_line) from error
            if partitions and partition.pkey <= partitions[-1].pkey:
                raise InvalidFile(f"P_Key {partition.pkey} stands twice or out of order", line=first_line)
            if partition.name.lower() in names:
                raise InvalidFile(f"two partitions are called {partition.name}", line=first_line)
            names.add(partition.name.lower())
            partitions.append(partition)
        if self.at != len(self.lines) - 1:
            raise InvalidFile("“# end” stands before the end of the file", line=self.at + 1)
        return ParsedFile(header, PartitionTable(sm_ports=sm_ports, partitions=tuple(partitions), labels=labels))

    def _here(self) -> str:
        return self.lines[self.at]

    def _take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self._here())
        if match is None:
            raise self._unexpected(wanted)
        self.at += 1
        return match

    def _unexpected(self, wanted: str) -> InvalidFile:
        return InvalidFile(f"expected {wanted}, found “{self._here()[:80]}”", line=self.at + 1)

    def _header(self) -> Header:
        match = self._take(_FIRST_LINE, "“# FabricUI subnet=… revision=… parent=…”")
        return Header(subnet=match[1], revision=int(match[2]), parent=match[3])

    def _default(self) -> tuple[GUID, ...]:
        """Step over the Default partition and return the SM ports it names."""
        for line in (_DEFAULT_HEADER, *_EVERYBODY):
            if self._here() != line:
                raise self._unexpected(f"“{line}”")
            self.at += 1
        ports: list[GUID] = []
        closed = False
        while not closed:
            match = self._take(_SM_PORT, "an SM port as “ 0x… =full” with “,” or, the last one, “;”")
            ports.append(self._guid(match[1], after=ports[-1] if ports else None))
            closed = match[2] == ";"
        return tuple(ports)

    def _partition(self, labels: dict[GUID, str]) -> Partition:
        """The partition that begins here; the servers' labels are added to `labels`."""
        tenant = None
        if self._here() == _PROVIDER:
            self.at += 1
        else:
            tenant = self._take(_OWNER, "“# tenant …”, “# provider” or “# end”")[1]
        head = self._take(_PARTITION, "a partition as “name=0x…, defmember=limited :”")
        members: list[Member] = []
        label: str | None = self._take(_RUN, "“# server …, N ports”")[1]
        closed = False
        while not closed:
            run = _RUN.match(self._here()) if members else None
            if run:
                label = run[1]
                self.at += 1
            match = self._take(_MEMBER, "a member as “ 0x… =full” or “=limited” with “,” or, the last one, “;”")
            guid = self._guid(match[1], after=members[-1].guid if members else None)
            if label is not None and labels.setdefault(guid, label) != label:
                raise InvalidFile(f"port {guid} stands under two servers: {labels[guid]} and {label}", line=self.at)
            members.append(Member(guid, Membership(match[2])))
            closed = match[3] == ";"
        return Partition(
            pkey=PKey.for_partition(int(head[2], 16)),
            name=head[1],
            tenant=tenant,
            members=tuple(members),
            flags=Flags(ipoib=head[3] is not None),
        )

    def _guid(self, text: str, *, after: GUID | None) -> GUID:
        """The GUID on the line just taken; raise InvalidFile unless it is one and follows `after` in order."""
        try:
            guid = GUID(text)
        except SubnetError as error:
            raise InvalidFile(str(error), line=self.at) from error
        if after is not None and guid <= after:
            raise InvalidFile(f"port {guid} is named twice or out of order", line=self.at)
        return guid
