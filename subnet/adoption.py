"""The canonical table of a hand-written partition file: the same P_Key table for every port, in our words.

What OpenSM made of the file is given (`opensm_reading`); here its statements are merged, the last word on each port is
kept, numbers that OpenSM drew are pinned, and names are made safe. Nothing is believed: `subnet/adoption_proof.py`
reads what we would write with the same model and compares every port.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from subnet.default import DefaultPartition
from subnet.errors import InvalidFlag, InvalidGUID, InvalidTable
from subnet.flags import Flags, mgid_line
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member, NodeType
from subnet.opensm_reading import Fabric, Reading, ReadPartition, Spec, Statement
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.table import Partition, PartitionTable, partition_name

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_HEX_NAME: Final = re.compile(r"[0-9a-f]{4}\Z")  # what OpenSM calls a partition whose header has no name
_LONGEST_NAME: Final = 31
_TYPES: Final[tuple[NodeType, ...]] = ("CA", "SW", "RT")


@dataclass(frozen=True, slots=True)
class Note:
    """What a person should know of one thing that was rewritten. `line` is of the found file; None: of no line."""

    rule: str
    line: int | None
    severity: Literal["ok", "warn", "refuse"]
    message: str


@dataclass(frozen=True, slots=True)
class AdoptedPartition:
    """One partition as it was found and as it is called from now on.

    `found_name` is what the file calls it. `is_programmed` says whether any port on the fabric holds its P_Key.
    """

    pkey: PKey
    name: str
    found_name: str
    lines: tuple[int, ...]
    is_auto_numbered: bool
    is_programmed: bool
    members: int
    keywords: tuple[KeywordMember, ...]


@dataclass(frozen=True, slots=True)
class Adopted:
    """The table, its partitions beside Default in order of P_Key, and notes in order of line."""

    table: PartitionTable = field(repr=False)
    partitions: tuple[AdoptedPartition, ...]
    notes: tuple[Note, ...]


def table_of(
    reading: Reading,
    fabric: Fabric,
    *,
    sm_ports: Collection[GUID],
    labels: Mapping[GUID, str] | None = None,
    names: Mapping[PKey, str] | None = None,
    reserved: Collection[str] = (),
    tenants: Mapping[PKey, str] | None = None,
) -> Adopted:
    """The table that gives every port of `fabric` the P_Keys that `reading` found, and absent ports as well.

    `sm_ports` are the registered manager hosts' ports: those that the file makes full members of Default are named
    as such, the others are left as they are. `labels` are servers' by port; `names` are names to use for some P_Keys
    (rows that exist) and `reserved` names that no other may get; `tenants` are the owners' slugs by P_Key (none: the
    provider's). Linear in the size of the file.
    A note of severity `refuse` says what a table cannot hold. Raises InvalidTable for a rejected reading.
    """
    if reading.rejection is not None:
        raise InvalidTable(f"OpenSM rejects the file ({reading.rejection.message}): there is nothing to take over.")
    notes: list[Note] = []
    found = {PKey(partition.pkey): partition for partition in reading.partitions}
    # OpenSM begins with every port limited and its own full (osm_prtn.c: prtn_make_default).
    beginning = {(node_type, is_self): is_self for node_type in _TYPES for is_self in (False, True)}
    default = _Merged.of(found.get(DEFAULT), fabric, beginning=beginning)
    full = {guid for guid in sm_ports if _default_of(default, guid, fabric) == Membership.FULL}
    members = [member for member in default.members if member.guid not in full]
    wanted = DefaultPartition(
        keywords=default.keywords, members=tuple(members), flags=_flags(default, notes), mgids=_mgids(default, notes)
    )
    notes += default.notes
    chosen = dict(names or {})
    partitions, adopted = [], []
    calls = _names({pkey: part.name for pkey, part in found.items() if pkey != DEFAULT}, chosen, reserved)
    programmed = {number & 0x7FFF for table in reading.tables.values() for number in table.values()}
    for pkey in sorted(found.keys() - {DEFAULT}):
        merged = _Merged.of(found[pkey], fabric)
        partition = Partition(
            pkey=pkey,
            name=calls[pkey],
            tenant=(tenants or {}).get(pkey),
            members=merged.members,
            flags=_flags(merged, notes),
            keywords=merged.keywords,
            mgids=_mgids(merged, notes),
        )
        partitions.append(partition)
        adopted.append(_adopted(partition, found[pkey], is_programmed=int(pkey) in programmed))
        notes += merged.notes
        notes += _about(adopted[-1])
    table = PartitionTable(
        sm_ports=tuple(full), partitions=tuple(partitions), labels=dict(labels or {}), default=wanted
    )
    ordered = sorted(notes, key=lambda note: (note.line or 0, note.rule, note.message))
    return Adopted(table=table, partitions=tuple(adopted), notes=tuple(ordered))


type _Class = tuple[NodeType, bool]  # node type, and whether the reading SM is bound to the port


@dataclass(frozen=True, slots=True)
class _Merged:
    """All statements of one P_Key as one: who is in it by keyword and who by GUID, the last word for each port."""

    statements: tuple[Statement, ...]
    keywords: tuple[KeywordMember, ...]
    members: tuple[Member, ...]
    notes: tuple[Note, ...]

    @classmethod
    def of(
        cls, partition: ReadPartition | None, fabric: Fabric, beginning: Mapping[_Class, bool] | None = None
    ) -> "_Merged":
        """Merge; `beginning` is what each class of ports is before the first statement (True: full), for Default."""
        statements = () if partition is None else tuple(partition.statements)
        by_class: dict[_Class, tuple[int, Membership]] = {
            its_class: (-1, Membership.FULL if is_full else Membership.LIMITED)
            for its_class, is_full in (beginning or {}).items()
        }
        by_guid: dict[int, tuple[int, Spec]] = {}
        for at, spec in enumerate(spec for statement in statements for spec in statement.specs):
            if spec.kind == "guid":
                by_guid[spec.guid or 0] = (at, spec)
            else:
                for its_class in _classes(spec.kind):
                    by_class[its_class] = (at, _membership(spec))
        notes: list[Note] = []
        members = tuple(_members(by_guid, by_class, fabric, notes))
        keywords = tuple(_keywords(by_class, _type_of(fabric.sm_port, fabric)))
        return cls(statements, keywords, members, tuple(notes))


def _membership(spec: Spec) -> Membership:
    """`both` is full as long as allow_both_pkeys is FALSE (ground truth: OpenSM, 2.7)."""
    return Membership.LIMITED if spec.membership == "limited" else Membership.FULL


def _classes(kind: str) -> Iterator[_Class]:
    if kind in Keyword:
        for node_type in _TYPES:
            for is_self in (False, True):
                if Keyword(kind).matches(node_type, is_self=is_self):
                    yield node_type, is_self


def _type_of(guid: GUID, fabric: Fabric) -> NodeType:
    """The node type of a port; an absent one is taken for an HCA's, as most are."""
    port = fabric.ports.get(guid)
    return "CA" if port is None else port.node_type


def _members(
    by_guid: Mapping[int, tuple[int, Spec]],
    by_class: Mapping[_Class, tuple[int, Membership]],
    fabric: Fabric,
    notes: list[Note],
) -> Iterator[Member]:
    """The ports that stay named by GUID: those that no later keyword made something else."""
    for number, (at, spec) in by_guid.items():
        try:
            guid = GUID(f"0x{number:016x}")
        except InvalidGUID:
            notes.append(
                Note("not-a-guid", spec.line, "warn", f"No port can have the GUID 0x{number:016x}; it is left out.")
            )
            continue
        port = fabric.ports.get(guid)
        types: tuple[NodeType, ...] = _TYPES if port is None else (port.node_type,)
        lasts = [by_class.get((kind, guid == fabric.sm_port)) for kind in types]
        overruling = [last for last in lasts if last and last[0] > at and last[1] != _membership(spec)]
        if overruling and len(overruling) < len(lasts):
            message = (
                f"Port {guid} is not on the fabric, and what it will be there hangs on its kind: a later keyword has "
                "the last word on some. Take it out of the file, name it behind the keywords, or bring it up."
            )
            notes.append(Note("absent-port", spec.line, "refuse", message))
        elif overruling:
            message = f"Port {guid} is left out: a later keyword has the last word and makes it {overruling[0][1]}."
            notes.append(Note("keyword-wins", spec.line, "ok", message))
        if lasts[0] not in overruling:  # an absent port is shown as what an HCA's would be
            yield Member(guid, _membership(spec))


def _keywords(by_class: Mapping[_Class, tuple[int, Membership]], sm_type: NodeType) -> Iterator[KeywordMember]:
    """The fewest keywords, in our fixed order, that say what each class of ports is."""
    last = {node_type: by_class[node_type, False][1] for node_type in _TYPES if (node_type, False) in by_class}
    if len(last) == len(_TYPES):
        yield KeywordMember(Keyword.ALL, last["CA"])
        others: dict[NodeType, Membership] = {key: how for key, how in last.items() if how != last["CA"]}
    else:
        others = last
    for node_type, keyword in _KEYWORD_OF.items():
        if node_type in others:
            yield KeywordMember(keyword, others[node_type])
    own = {node_type: by_class[node_type, True][1] for node_type in _TYPES if (node_type, True) in by_class}
    if own and own != last:
        yield KeywordMember(Keyword.SELF, own.get(sm_type, Membership.FULL))


_KEYWORD_OF: Final[Mapping[NodeType, Keyword]] = {
    "CA": Keyword.ALL_CAS,
    "SW": Keyword.ALL_SWITCHES,
    "RT": Keyword.ALL_ROUTERS,
}


def _default_of(default: _Merged, guid: GUID, fabric: Fabric) -> Membership:
    named = next((member.membership for member in default.members if member.guid == guid), None)
    by_keyword = DefaultPartition(keywords=default.keywords)
    return named or by_keyword.membership_of(_type_of(guid, fabric), is_self=guid == fabric.sm_port)


def _flags(merged: _Merged, notes: list[Note]) -> Flags:
    """One set of flags for all statements of a P_Key: those of the first that creates a multicast group.

    The service level is the last statement's (each one sets it anew); a group, once created, keeps its attributes.
    """
    if not merged.statements:
        return Flags()
    makers = [st for st in merged.statements if st.flags.ipoib or any(mgid.accepted for mgid in st.mgids)]
    broadcasts = [statement for statement in makers if statement.flags.ipoib]
    first = (makers or list(merged.statements))[0]
    for statement in makers[1:]:
        if _group(statement) != _group(first):
            message = (
                f"The groups of this statement have other attributes than those of line {first.line}; from now on "
                "they are created with that line's. Groups that exist keep theirs until they empty."
            )
            notes.append(Note("flags-merged", statement.line, "warn", message))
    for statement in merged.statements:
        if statement.flags.indx0:
            message = (
                "`indx0` puts this P_Key at index 0 and Default elsewhere; FabricUI always keeps Default at index 0, "
                "so taking the file over would move two keys under live connections. Take `indx0` out in a window."
            )
            notes.append(Note("indx0", statement.line, "refuse", message))
    scopes = {scope for statement in broadcasts for scope in (statement.flags.scope or (2,))}
    try:
        return Flags(
            ipoib=bool(broadcasts),
            mtu=first.flags.mtu,
            rate=first.flags.rate,
            sl=merged.statements[-1].flags.sl,
            scope=() if scopes <= {2} else tuple(scopes),
            q_key=first.flags.q_key,
            tclass=first.flags.tclass,
            flow_label=first.flags.flow_label,
        )
    except InvalidFlag as error:
        notes.append(Note("flag", first.line, "refuse", f"{error} Write a value that exists, or none."))
        return Flags(ipoib=bool(broadcasts))


def _group(statement: Statement) -> tuple[object, ...]:
    flags = statement.flags
    return flags.mtu, flags.rate, flags.q_key, flags.tclass, flags.flow_label


def _mgids(merged: _Merged, notes: list[Note]) -> tuple[str, ...]:
    """The lines that create groups, each once and in their order; what OpenSM skips is left out."""
    kept: dict[str, None] = {}
    for mgid in (mgid for statement in merged.statements for mgid in statement.mgids):
        if not mgid.accepted:
            message = f"OpenSM creates no group for “{mgid.text[:60]}”; the line is left out."
            notes.append(Note("mgid-skipped", mgid.line, "warn", message))
            continue
        try:
            kept.setdefault(mgid_line(mgid.text))
        except InvalidFlag as error:
            notes.append(Note("mgid", mgid.line, "refuse", f"{error} Shorten the line or take it out."))
    return tuple(kept)


def _names(found: Mapping[PKey, str], chosen: Mapping[PKey, str], reserved: Collection[str]) -> dict[PKey, str]:
    """A name for each P_Key that OpenSM reads as one name and that no other has, whatever its case."""
    names: dict[PKey, str] = {}
    taken = {name.lower() for name in (*chosen.values(), *reserved)}
    for pkey, text in sorted(found.items()):
        if pkey in chosen:
            names[pkey] = partition_name(chosen[pkey])
            continue
        name = safe_name(text, pkey)
        if name.lower() in taken:
            name = f"{name[: _LONGEST_NAME - 5]}-{int(pkey):04x}"
        taken.add(name.lower())
        names[pkey] = name
    return names


def safe_name(text: str, pkey: PKey) -> str:
    """A partition name as close to `text` as OpenSM reads without accident: “föräldralös ÄÖ” is foraldralos_AO."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    name = _NOT_IN_NAMES.sub("_", plain).strip("_.-")
    if not name or _HEX_NAME.match(name) or name.lower() == "default":
        return f"pkey-{int(pkey):04x}"
    if not name[0].isalpha():
        name = f"p-{name}"
    return name[:_LONGEST_NAME]


def _adopted(partition: Partition, found: ReadPartition, *, is_programmed: bool) -> AdoptedPartition:
    return AdoptedPartition(
        pkey=partition.pkey,
        name=partition.name,
        found_name=found.name,
        lines=tuple(statement.line for statement in found.statements),
        is_auto_numbered=found.auto_numbered,
        is_programmed=is_programmed,
        members=len(partition.members),
        keywords=partition.keywords,
    )


def _about(partition: AdoptedPartition) -> Iterable[Note]:
    """What FabricUI writes otherwise than the file about one partition; its oddities are the reading's findings."""
    line = partition.lines[0] if partition.lines else None
    called = f"{partition.name} ({partition.pkey})"
    if partition.name != partition.found_name:
        found = f"“{partition.found_name}”" if partition.found_name else "no name"
        message = f"{called} has {found} in the file; FabricUI writes {partition.name} and remembers the other."
        yield Note("renamed", line, "ok", message)
    if partition.is_auto_numbered:
        message = f"{called} has its P_Key written out from now on, so no other line and no takeover changes it."
        yield Note("pinned", line, "ok", message)
    if len(partition.lines) > 1:
        lines = ", ".join(map(str, partition.lines))
        yield Note(
            "merged", line, "ok", f"The {len(partition.lines)} statements of {called} (lines {lines}) become one."
        )
