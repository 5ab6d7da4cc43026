"""What differs between two partition tables, as typed values, and the table that a set of differences makes.

A partition counts as there while it has a member or a keyword: others are rows for people, and OpenSM sees nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from subnet.default import DefaultPartition
from subnet.errors import InvalidTable
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member
from subnet.pkey import DEFAULT, Membership, PKey
from subnet.table import Partition, PartitionTable

FlagValue = bool | int | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Change:
    """One port's membership in one partition by its GUID, before and after; None means no membership.

    In Default it says what an HCA port of that GUID is: limited or full, by name or by Default's keywords.
    """

    verb: ClassVar[str] = ""

    pkey: PKey
    partition: str
    tenant: str | None
    guid: GUID
    from_membership: Membership | None
    to_membership: Membership | None


class Added(Change):
    """The port joins the partition."""

    __slots__ = ()
    verb: ClassVar[str] = "added"


class Removed(Change):
    """The port leaves the partition."""

    __slots__ = ()
    verb: ClassVar[str] = "removed"


class Changed(Change):
    """The port stays and its membership changes, in place at the same index."""

    __slots__ = ()
    verb: ClassVar[str] = "changed"


@dataclass(frozen=True, slots=True)
class KeywordChange:
    """A keyword's membership in one partition, before and after: it reaches every port that the keyword stands for."""

    pkey: PKey
    partition: str
    tenant: str | None
    keyword: Keyword
    from_membership: Membership | None
    to_membership: Membership | None


@dataclass(frozen=True, slots=True)
class FlagChange:
    """A flag of a partition, by its name in `Flags`. What a group has already is kept until the partition empties."""

    pkey: PKey
    partition: str
    tenant: str | None
    flag: str
    before: FlagValue
    after: FlagValue

    @property
    def on(self) -> bool:
        """Whether the flag says something afterwards."""
        return self.after not in (None, False, ())


@dataclass(frozen=True, slots=True)
class MgidChange:
    """The lines for multicast groups of one partition, before and after."""

    pkey: PKey
    partition: str
    tenant: str | None
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DefaultChange:
    """Default before and after, with the SM ports that stand in it."""

    before: DefaultPartition
    after: DefaultPartition
    sm_ports_before: tuple[GUID, ...]
    sm_ports_after: tuple[GUID, ...]

    @property
    def reaches_ports(self) -> bool:
        """Whether the file says something else of Default, not only of why a port is named in it."""
        return self._said(self.before, self.sm_ports_before) != self._said(self.after, self.sm_ports_after)

    @property
    def closes(self) -> bool:
        """Whether HCA ports become limited members unless excepted."""
        return self.before.is_open and not self.after.is_open

    @property
    def opens(self) -> bool:
        """Whether HCA ports become full members unless excepted: each could reach each other."""
        return self.after.is_open and not self.before.is_open

    @staticmethod
    def _said(default: DefaultPartition, sm_ports: tuple[GUID, ...]) -> object:
        named = {member.guid: member.membership for member in default.members}
        named |= dict.fromkeys(sm_ports, Membership.FULL)
        return default.keywords, default.flags, default.mgids, named


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A partition that comes, goes, is renamed or changes owner; None stands for no partition. Reaches no port."""

    pkey: PKey
    name_before: str | None
    name_after: str | None
    tenant_before: str | None
    tenant_after: str | None

    @property
    def what(self) -> str:
        """`created`, `retired`, `renamed`, or `passed on` to another owner."""
        if self.name_before is None:
            return "created"
        if self.name_after is None:
            return "retired"
        return "renamed" if self.tenant_before == self.tenant_after else "passed on"


@dataclass(frozen=True, slots=True)
class Difference:
    """Everything that differs; `apply` makes the second table of it and the first."""

    changes: tuple[Change, ...]
    keywords: tuple[KeywordChange, ...]
    flags: tuple[FlagChange, ...]
    mgids: tuple[MgidChange, ...]
    partitions: tuple[PartitionChange, ...]
    default: DefaultChange | None

    @property
    def reaches_nothing(self) -> bool:
        """Whether OpenSM would be told the same: names, owners and labels alone are nothing to roll out."""
        reaches = self.default is not None and self.default.reaches_ports
        return not (self.changes or self.keywords or self.flags or self.mgids or reaches)


def difference(current: PartitionTable, wanted: PartitionTable) -> Difference:
    """What differs, in order of P_Key and GUID, Default last."""
    before, after = there(current), there(wanted)
    touched = [
        (pkey, before.get(pkey), after.get(pkey))
        for pkey in sorted(before.keys() | after.keys())
        if before.get(pkey) != after.get(pkey)
    ]
    default = None
    if (current.default, current.sm_ports) != (wanted.default, wanted.sm_ports):
        default = DefaultChange(current.default, wanted.default, current.sm_ports, wanted.sm_ports)
    return Difference(
        changes=(
            *(change for pkey, old, new in touched for change in _members(pkey, old, new)),
            *(_in_default(current, wanted) if default else ()),
        ),
        keywords=(
            *(change for pkey, old, new in touched for change in _keywords(pkey, old, new)),
            *_default_keywords(current.default, wanted.default),
        ),
        flags=(
            *(change for pkey, old, new in touched for change in _flags(pkey, old, new)),
            *_flag_changes(DEFAULT, "Default", None, current.default.flags, wanted.default.flags),
        ),
        mgids=(
            *(change for pkey, old, new in touched for change in _mgids(pkey, old, new)),
            *_mgid_changes(DEFAULT, "Default", None, current.default.mgids, wanted.default.mgids),
        ),
        partitions=tuple(
            PartitionChange(
                pkey,
                old.name if old else None,
                new.name if new else None,
                old.tenant if old else None,
                new.tenant if new else None,
            )
            for pkey, old, new in touched
            if old is None or new is None or (old.name, old.tenant) != (new.name, new.tenant)
        ),
        default=default,
    )


def apply(found: Difference, table: PartitionTable) -> PartitionTable:
    """`table` with these differences; its own labels, and no empty partitions.

    `apply(difference(a, b), a)` is `b` but for labels and empty partitions. Raises InvalidTable when the differences
    were taken between other tables and do not fit.
    """
    kept = there(table)
    for named in found.partitions:
        if named.name_after is None:
            kept.pop(named.pkey, None)
        elif named.pkey in kept:
            kept[named.pkey] = replace(kept[named.pkey], name=named.name_after, tenant=named.tenant_after)
        else:
            kept[named.pkey] = Partition(named.pkey, named.name_after, named.tenant_after)
    members: dict[PKey, dict[GUID, Membership | None]] = {}
    for change in found.changes:
        members.setdefault(change.pkey, {})[change.guid] = change.to_membership
    keywords: dict[PKey, dict[Keyword, Membership | None]] = {}
    for told in found.keywords:
        keywords.setdefault(told.pkey, {})[told.keyword] = told.to_membership
    flags: dict[PKey, dict[str, Any]] = {}
    for flag in found.flags:
        flags.setdefault(flag.pkey, {})[flag.flag] = flag.after
    mgids = {change.pkey: change.after for change in found.mgids}
    strangers = {*members, *keywords, *flags, *mgids} - {*kept, *there(table), DEFAULT}
    if strangers:
        raise InvalidTable(f"P_Key {min(strangers)} is changed, and no partition of this table has it.")
    partitions = []
    for pkey, partition in kept.items():
        held = {member.guid: member.membership for member in partition.members} | members.get(pkey, {})
        said = {member.keyword: member.membership for member in partition.keywords} | keywords.get(pkey, {})
        new = replace(
            partition,
            members=tuple(Member(guid, membership) for guid, membership in held.items() if membership),
            keywords=tuple(KeywordMember(keyword, membership) for keyword, membership in said.items() if membership),
            flags=replace(partition.flags, **flags.get(pkey, {})),
            mgids=mgids.get(pkey, partition.mgids),
        )
        if not new.is_empty:
            partitions.append(new)
    default = found.default
    return PartitionTable(
        sm_ports=default.sm_ports_after if default else table.sm_ports,
        partitions=tuple(partitions),
        labels=table.labels,
        default=default.after if default else table.default,
    )


def there(table: PartitionTable) -> dict[PKey, Partition]:
    """The partitions that OpenSM will see, by P_Key."""
    return {partition.pkey: partition for partition in table.partitions if not partition.is_empty}


def _members(pkey: PKey, old: Partition | None, new: Partition | None) -> Iterator[Change]:
    was = {member.guid: member.membership for member in old.members} if old else {}
    will = {member.guid: member.membership for member in new.members} if new else {}
    for guid in sorted({guid for guid, _ in was.items() ^ will.items()}):
        a, b = was.get(guid), will.get(guid)
        # A key that changes owner is left in the old owner's partition and joined in the new one's.
        place = new if new and b is not None else old
        assert place is not None  # noqa: S101  one of the two names this port
        kind = Added if a is None else Removed if b is None else Changed
        yield kind(pkey, place.name, place.tenant, guid, a, b)


def _in_default(current: PartitionTable, wanted: PartitionTable) -> Iterator[Change]:
    """Each port that Default names before or after and that becomes something else there as an HCA port."""
    named = {*current.sm_ports, *wanted.sm_ports}
    named |= {member.guid for member in (*current.default.members, *wanted.default.members)}
    for guid in sorted(named):
        was, will = current.default_of(guid, "CA"), wanted.default_of(guid, "CA")
        if was != will:
            yield Changed(DEFAULT, "Default", None, guid, was, will)


def _keywords(pkey: PKey, old: Partition | None, new: Partition | None) -> Iterator[KeywordChange]:
    place = new or old
    assert place is not None  # noqa: S101  one of the two differs from the other
    yield from _keyword_changes(
        pkey, place.name, place.tenant, old.keywords if old else (), new.keywords if new else ()
    )


def _default_keywords(old: DefaultPartition, new: DefaultPartition) -> Iterator[KeywordChange]:
    yield from _keyword_changes(DEFAULT, "Default", None, old.keywords, new.keywords)


def _keyword_changes(
    pkey: PKey, name: str, tenant: str | None, old: tuple[KeywordMember, ...], new: tuple[KeywordMember, ...]
) -> Iterator[KeywordChange]:
    was = {member.keyword: member.membership for member in old}
    will = {member.keyword: member.membership for member in new}
    for keyword in Keyword:
        if was.get(keyword) != will.get(keyword):
            yield KeywordChange(pkey, name, tenant, keyword, was.get(keyword), will.get(keyword))


def _flags(pkey: PKey, old: Partition | None, new: Partition | None) -> Iterator[FlagChange]:
    place = new or old
    assert place is not None  # noqa: S101  one of the two differs from the other
    none = Flags()
    yield from _flag_changes(pkey, place.name, place.tenant, old.flags if old else none, new.flags if new else none)


def _flag_changes(pkey: PKey, name: str, tenant: str | None, old: Flags, new: Flags) -> Iterator[FlagChange]:
    if old == new:
        return
    for field in fields(Flags):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            yield FlagChange(pkey, name, tenant, field.name, before, after)


def _mgids(pkey: PKey, old: Partition | None, new: Partition | None) -> Iterator[MgidChange]:
    place = new or old
    assert place is not None  # noqa: S101  one of the two differs from the other
    yield from _mgid_changes(pkey, place.name, place.tenant, old.mgids if old else (), new.mgids if new else ())


def _mgid_changes(
    pkey: PKey, name: str, tenant: str | None, old: tuple[str, ...], new: tuple[str, ...]
) -> Iterator[MgidChange]:
    if old != new:
        yield MgidChange(pkey, name, tenant, old, new)
