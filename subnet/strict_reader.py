"""Reads a file of ours line by line. What it lets pass is compared with the renderer's own bytes afterwards."""

import re
from dataclasses import dataclass

from subnet.errors import InvalidFile, InvalidTable, SubnetError
from subnet.file_header import FIRST_LINE, Header, Layout
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.table import DefaultPartition, Partition, PartitionTable

END = "# end"
PROVIDER = "# provider"

_FLAGS = (
    r"(, ipoib)?(?:, mtu=([1-5]))?(?:, rate=([1-9][0-9]?))?(?:, sl=(1?[0-9]))?((?:, scope=1?[0-9])*)"
    r"(?:, Q_Key=(0x[0-9a-f]{8}))?(?:, TClass=(0x[0-9a-f]{2}))?(?:, FlowLabel=(0x[0-9a-f]{5}))?"
)
_DEFAULT = re.compile(rf"Default={DEFAULT}{_FLAGS}, defmember=limited :\Z")
_PARTITION = re.compile(rf"([A-Za-z][A-Za-z0-9_.-]{{0,30}})=(0x[0-9a-f]{{4}}){_FLAGS}, defmember=limited :\Z")
_OWNER = re.compile(r"# tenant ([A-Za-z0-9._-]{1,60})\Z")
_MGID = re.compile(r" (mgid=[!-~ ]+)\Z")
_KEYWORD = re.compile(rf" ({'|'.join(Keyword)})=(full|limited)([,;])\Z")
_SM_PORT = re.compile(r" (0x[0-9a-f]{16})=full([,;])\Z")
_RUN = re.compile(r"# (?:no server|server ([A-Za-z0-9._-]{1,60})), [1-9][0-9]{0,6} ports?\Z")
_MEMBER = re.compile(r" (0x[0-9a-f]{16})=(full|limited)([,;])\Z")

_MEMBERSHIP = {membership.value: membership for membership in Membership}


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a canonical file says."""

    header: Header
    table: PartitionTable


class StrictReader:
    """Reads the lines from the first to `# end`; every complaint is an InvalidFile that names the line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.by_server = False
        self.closed = False  # whether the statement being read has had its `;`
        self.labels: dict[GUID, str] = {}
        self.guids: dict[str, GUID] = {}

    def read(self) -> ParsedFile:
        """The header and the table."""
        header = self._header()
        by_pkey = header.layout == Layout.BY_PKEY
        self.by_server = not by_pkey
        default, sm_ports = self._default()
        partitions: list[Partition] = []
        names: set[str] = set()
        owned, owner = False, None
        while self.lines[self.at] != END:
            first_line = self.at + 1
            if by_pkey or not owned or self.lines[self.at].startswith("#"):
                owned, owner = True, self._owner()
            try:
                partition = self._partition(owner)
            except InvalidFile:
                raise
            except SubnetError as error:
                raise InvalidFile(str(error), line=first_line) from error
            if by_pkey and partitions and partition.pkey <= partitions[-1].pkey:
                raise InvalidFile(f"P_Key {partition.pkey} stands twice or out of order", line=first_line)
            if partition.name.lower() in names:
                raise InvalidFile(f"two partitions are called {partition.name}", line=first_line)
            names.add(partition.name.lower())
            partitions.append(partition)
        if self.at != len(self.lines) - 1:
            raise InvalidFile("“# end” stands before the end of the file", line=self.at + 1)
        try:
            table = PartitionTable(sm_ports=sm_ports, partitions=tuple(partitions), labels=self.labels, default=default)
        except InvalidTable as error:
            raise InvalidFile(str(error), line=self.at + 1) from error
        return ParsedFile(header, table)

    def _take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = pattern.match(self.lines[self.at])
        if match is None:
            raise InvalidFile(f"expected {wanted}, found “{self.lines[self.at][:80]}”", line=self.at + 1)
        self.at += 1
        return match

    def _take_if(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.lines[self.at])
        if match is not None:
            self.at += 1
        return match

    def _header(self) -> Header:
        return Header.read(self._take(FIRST_LINE, "“# FabricUI subnet=… revision=… parent=…”"))

    def _default(self) -> tuple[DefaultPartition, tuple[GUID, ...]]:
        """Default, and the SM ports: the full members that stand before any comment."""
        head = self._take(_DEFAULT, "Default as “Default=0x7fff, ipoib, defmember=limited :”")
        try:
            flags = _flags(head, 1)
            mgids, keywords = self._mgids(), self._keywords()
            if self.closed:
                raise InvalidFile("Default names no SM port", line=self.at)
            ports: list[GUID] = []
            while not self.closed and not (ports and self.lines[self.at].startswith("#")):
                match = self._take(_SM_PORT, "an SM port as “ 0x… =full” with “,” or, the last one, “;”")
                ports.append(self._guid(match[1], after=ports[-1] if ports else None))
                self.closed = match[2] == ";"
            members = () if self.closed else self._members()
            return DefaultPartition(keywords=keywords, members=members, flags=flags, mgids=mgids), tuple(ports)
        except InvalidFile:
            raise
        except SubnetError as error:
            raise InvalidFile(str(error), line=2) from error

    def _owner(self) -> str | None:
        if self.lines[self.at] == PROVIDER:
            self.at += 1
            return None
        return self._take(_OWNER, "“# tenant …”, “# provider” or “# end”")[1]

    def _partition(self, owner: str | None) -> Partition:
        """The partition whose header stands here; the servers' labels are added to `labels`."""
        head = self._take(_PARTITION, "a partition as “name=0x…, defmember=limited :”")
        mgids, keywords = self._mgids(), self._keywords()
        return Partition(
            pkey=PKey.for_partition(int(head[2], 16)),
            name=head[1],
            tenant=owner,
            members=() if self.closed else self._members(),
            flags=_flags(head, 3),
            keywords=keywords,
            mgids=mgids,
        )

    def _mgids(self) -> tuple[str, ...]:
        """The lines for multicast groups, each without the comma that ends the short ones."""
        found = []
        while match := self._take_if(_MGID):
            text = match[1]
            found.append(text[:-1] if text.endswith(",") else text)
        return tuple(found)

    def _keywords(self) -> tuple[KeywordMember, ...]:
        found: list[KeywordMember] = []
        self.closed = False
        while not self.closed and (match := self._take_if(_KEYWORD)):
            found.append(KeywordMember(Keyword(match[1]), _MEMBERSHIP[match[2]]))
            self.closed = match[3] == ";"
        return tuple(found)

    def _members(self) -> tuple[Member, ...]:
        """The members up to `;`, which begin with a comment that names their server."""
        lines, labels = self.lines, self.labels
        members: list[Member] = []
        label: str | None = self._take(_RUN, "“# server …, N ports”")[1]
        after: GUID | None = None
        while True:
            line = lines[self.at]
            if line[0:1] == "#" and members and (run := _RUN.match(line)):
                label = run[1]
                self.at += 1
                if self.by_server:
                    after = None  # each server's ports begin anew
            match = self._take(_MEMBER, "a member as “ 0x… =full” or “=limited” with “,” or, the last one, “;”")
            text, membership, sign = match.groups()
            after = guid = self._guid(text, after=after)
            if label is not None and labels.setdefault(guid, label) != label:
                raise InvalidFile(f"port {guid} stands under two servers: {labels[guid]} and {label}", line=self.at)
            members.append(Member(guid, _MEMBERSHIP[membership]))
            if sign == ";":
                return tuple(members)

    def _guid(self, text: str, *, after: GUID | None) -> GUID:
        """The GUID on the line just taken; raise InvalidFile unless it is one and follows `after` in order."""
        guid = self.guids.get(text)
        if guid is None:
            try:
                guid = self.guids[text] = GUID(text)
            except SubnetError as error:
                raise InvalidFile(str(error), line=self.at) from error
        if after is not None and guid <= after:
            raise InvalidFile(f"port {guid} is named twice or out of order", line=self.at)
        return guid


def _flags(head: re.Match[str], at: int) -> Flags:
    """The flags in the groups of `_FLAGS`, which begin after group `at - 1`."""
    ipoib, mtu, rate, sl, scopes, q_key, tclass, flow_label = head.groups()[at - 1 :]
    return Flags(
        ipoib=ipoib is not None,
        mtu=_number(mtu),
        rate=_number(rate),
        sl=_number(sl),
        scope=tuple(int(text) for text in scopes.split(", scope=")[1:]),
        q_key=_number(q_key),
        tclass=_number(tclass),
        flow_label=_number(flow_label),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text, 0)
