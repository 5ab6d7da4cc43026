"""OpenSM's partitions.conf: the canonical bytes of a table, and the table of canonical bytes.

OpenSM never refuses a file: what it dislikes becomes “everyone full in Default”, and half a file is a smaller
configuration (ground truth: OpenSM, 0 and 2.9). So there is exactly one way to write a table in each layout, and the
parser accepts nothing else.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from subnet.default import STANDARD
from subnet.errors import InvalidFile, InvalidTable
from subnet.file_header import NEWEST, NO_PARENT, Header, Layout
from subnet.flags import Flags
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.strict_reader import END, PROVIDER, ParsedFile, StrictReader
from subnet.table import KeywordMember, Member, Partition, PartitionTable

__all__ = ["NEWEST", "NO_PARENT", "Header", "Layout", "ParsedFile", "digest", "parse_strict", "render", "table_digest"]


def render(table: PartitionTable, header: Header) -> bytes:
    """The one file that says `table` in the header's layout: ASCII, LF, one member a line, last line `# end`.

    Lines stay under 400 bytes (OpenSM cuts at 4094). Each partition is one statement: its flags in fixed order on
    one line, then mgid lines, keywords and GUIDs, so that OpenSM swallows nothing and a GUID always wins. One member
    a line makes it needless to repeat a header for a long list. Partitions without members or keywords are left out:
    OpenSM drops them anyway. Labels of ports that are in no partition do not appear. The bytes depend on the values
    alone, not on the order they were put together.

    Raises InvalidTable for a table without SM ports: after a takeover no limited host could reach the SA
    (ground truth: OpenSM, 7).
    """
    if not table.sm_ports:
        raise InvalidTable(
            "The table names no subnet manager's port. Enrol the manager hosts first: each SM port must be a full "
            "member of Default, or hosts cannot reach the subnet administrator after a takeover."
        )
    runs = _RUNS[header.layout]
    default = table.default
    lines = [header.line, _header("Default", DEFAULT, default.flags)]
    lines += _mgid_lines(default.mgids)
    lines += _keyword_lines(default.keywords)
    lines += [f" {guid}=full," for guid in table.sm_ports]
    lines += runs(default.members, table)
    _close(lines)
    for owner, partitions in _by_owner(table, header.layout):
        lines.append(PROVIDER if owner is None else f"# tenant {owner}")
        for partition in partitions:
            lines.append(_header(partition.name, partition.pkey, partition.flags))
            lines += _mgid_lines(partition.mgids)
            lines += _keyword_lines(partition.keywords)
            lines += runs(partition.members, table)
            _close(lines)
    lines += [END, ""]
    return "\n".join(lines).encode("ascii")


def parse_strict(data: bytes) -> ParsedFile:
    """The header and table that `data` says, if `render` could have written `data`; raise InvalidFile otherwise.

    Every truncation, every other order, spelling, blank or line end is refused, with the line where it shows.
    """
    lines = _canonical_lines(data)
    parsed = StrictReader(lines).read()
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
    """The SHA-256 over what reaches a port or a multicast group: one sorted line for each fact.

    Facts are `pkey guid membership`, each partition's keywords, flags and mgid lines, and Default where it is not
    the closed one. Names, tenants, labels and empty partitions do not count: changing only these is nothing to roll
    out.
    """
    facts = [f"{DEFAULT} {guid} full" for guid in table.sm_ports]
    for partition in table.partitions:
        if not partition.is_empty:
            pkey = str(partition.pkey)
            facts += [f"{pkey} {member.guid} {member.membership.value}" for member in partition.members]
            facts += _further_facts(pkey, partition.keywords, partition.flags, partition.mgids)
    default = table.default
    facts += [f"{DEFAULT} {member.guid} {member.membership.value}" for member in default.members]
    if (default.keywords, default.flags, default.mgids) != (STANDARD.keywords, STANDARD.flags, STANDARD.mgids):
        # Said even when empty: without a keyword OpenSM has rules of its own, which are not those of the closed one.
        facts.append(f"{DEFAULT} other")
        facts += _further_facts(str(DEFAULT), default.keywords, default.flags, default.mgids)
    return hashlib.sha256("\n".join(sorted(facts)).encode("ascii")).hexdigest()


def _further_facts(pkey: str, keywords: Iterable[KeywordMember], flags: Flags, mgids: tuple[str, ...]) -> Iterator[str]:
    for keyword in keywords:
        yield f"{pkey} {keyword}"
    for flag in flags.written():
        yield f"{pkey} {flag}"
    for number, line in enumerate(mgids):
        yield f"{pkey} {number} {line}"


def _header(name: str, pkey: PKey, flags: Flags) -> str:
    return f"{', '.join([f'{name}={pkey}', *flags.written()])}, defmember=limited :"


def _mgid_lines(mgids: Iterable[str]) -> Iterator[str]:
    """One line each, before any member: OpenSM takes the rest of the line for the group's flags.

    A line without a comma makes it read flags from behind the line's end, out of what an earlier, longer line left
    there (osm_prtn_config.c: parse_part_conf gives mgroup_create the byte after the NUL). So each gets one.
    """
    for line in mgids:
        yield f" {line}" if "," in line else f" {line},"


def _keyword_lines(keywords: Iterable[KeywordMember]) -> Iterator[str]:
    for member in keywords:
        yield f" {member},"


def _close(lines: list[str]) -> None:
    """End the statement with `;` directly after its last member: alone on a line it spoils the whole file."""
    lines[-1] = lines[-1][:-1] + ";"


def _by_owner(table: PartitionTable, layout: Layout) -> Iterator[tuple[str | None, list[Partition]]]:
    """Owners with their partitions; by P_Key each partition is a group of its own."""
    partitions = [partition for partition in table.partitions if not partition.is_empty]
    if layout == Layout.BY_PKEY:
        for partition in partitions:
            yield partition.tenant, [partition]
        return
    owned: dict[str | None, list[Partition]] = {}
    for partition in partitions:
        owned.setdefault(partition.tenant, []).append(partition)
    for owner in sorted(owned, key=lambda tenant: tenant or ""):
        yield owner, owned[owner]


def _by_guid(members: tuple[Member, ...], table: PartitionTable) -> Iterator[str]:
    """The members in order of GUID, with a comment before each run of one server's ports."""
    labels = table.labels
    for label, run in groupby(members, key=lambda member: labels.get(member.guid)):
        yield from _run_lines(label, list(run))


def _by_server(members: tuple[Member, ...], table: PartitionTable) -> Iterator[str]:
    """Each server once with all its ports, by label; ports without a server come last."""
    servers: dict[str | None, list[Member]] = {}
    for member in members:
        servers.setdefault(table.labels.get(member.guid), []).append(member)
    for label in sorted(servers, key=lambda name: (name is None, name or "")):
        yield from _run_lines(label, servers[label])


_RUNS: dict[Layout, Callable[[tuple[Member, ...], PartitionTable], Iterator[str]]] = {
    Layout.BY_PKEY: _by_guid,
    Layout.BY_OWNER: _by_server,
}


def _run_lines(label: str | None, members: list[Member]) -> Iterator[str]:
    server = "no server" if label is None else f"server {label}"
    yield f"# {server}, {len(members)} {'port' if len(members) == 1 else 'ports'}"
    for member in members:
        yield f" {member.guid}=full," if member.membership is Membership.FULL else f" {member.guid}=limited,"


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
    if lines.pop() or not lines or lines[-1] != END:
        raise InvalidFile(
            "the file is cut short: its last line is not “# end”. OpenSM may take it for a smaller configuration",
            line=max(len(lines), 1),
        )
    return lines


def _first_difference(lines: list[str], expected: list[str]) -> int:
    pairs = enumerate(zip(lines, expected, strict=False), start=1)
    return next((number for number, (found, wanted) in pairs if found != wanted), min(len(lines), len(expected)))
