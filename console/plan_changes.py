"""What a plan changes beside the servers that move, for its page: partitions, Default, and all other ports in groups.

A change of Default or of a keyword reaches every port of the fabric, so ports whose tables change alike are one row.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from console.plans import Key, PortRow, port_row
from inventory.models import Port
from partitions.mirror import batches
from partitions.operations import DrawnPlan
from people.models import Tenant
from subnet.change import FlagValue
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.pkey import DEFAULT, PKey
from subnet.plan import Plan
from subnet.policy import Violation

MOST_NAMED = 100  # ports that one row lists by name; the files below hold all of them
MOST_VIOLATIONS = 20
PROVIDER = "the provider"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that becomes another; either side may be empty."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition whose name, owner, flags, keywords or groups change; Default too."""

    pkey: PKey
    name: str
    what: str  # in a few words what becomes of it, empty when it only changes
    lines: tuple[Line, ...]

    @property
    def is_default(self) -> bool:
        """Whether every port is in it."""
        return self.pkey.is_default


@dataclass(frozen=True, slots=True)
class PortGroup:
    """Ports whose tables change alike. `before` and `after` are the entries that differ, with their indexes."""

    count: int
    is_read: bool
    before: tuple[Key, ...]
    after: tuple[Key, ...]
    named: tuple[tuple[GUID, str], ...]  # each with its server's label, if it has one

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.count - len(self.named)


@dataclass(frozen=True, slots=True)
class HazardNote:
    """A hazard once, with every port that it is about."""

    sentence: str
    needs_takeover: bool
    count: int
    named: tuple[tuple[GUID, str], ...]

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.count - len(self.named)


def partition_rows(drawn: DrawnPlan) -> tuple[PartitionRow, ...]:
    """Every partition that becomes another, Default last. One query when one changes hands, comes or goes."""
    plan = drawn.plan
    lines: dict[PKey, list[Line]] = defaultdict(list)
    named: dict[PKey, str] = {}
    what: dict[PKey, str] = {}
    owners: dict[str, str] = {}
    if any(change.tenant_before != change.tenant_after for change in plan.partitions):
        owners = dict(Tenant.objects.values_list("slug", "name"))

    def owner(slug: str | None) -> str:
        return PROVIDER if slug is None else owners.get(slug, slug)

    for change in plan.partitions:
        named[change.pkey] = change.name_after or change.name_before or ""
        lines[change.pkey] += []
        if change.what == "created":
            what[change.pkey] = f"comes into the file, for {owner(change.tenant_after)}"
        elif change.what == "retired":
            what[change.pkey] = f"leaves the file: nobody of {owner(change.tenant_before)} is in it any more"
        else:
            if change.name_before != change.name_after:
                lines[change.pkey].append(Line("Name", change.name_before or "", change.name_after or ""))
            if change.tenant_before != change.tenant_after:
                lines[change.pkey].append(Line("Owner", owner(change.tenant_before), owner(change.tenant_after)))
    for word in plan.keywords:
        named.setdefault(word.pkey, word.partition)
        lines[word.pkey].append(
            Line(f"Keyword {word.keyword}", str(word.from_membership or ""), str(word.to_membership or ""))
        )
    for flag in plan.flags:
        named.setdefault(flag.pkey, flag.partition)
        lines[flag.pkey].append(
            Line(f"Flag {flag.flag}", flag_text(flag.flag, flag.before), flag_text(flag.flag, flag.after))
        )
    for group in plan.mgids:
        named.setdefault(group.pkey, group.partition)
        gone = [text for text in group.before if text not in group.after]
        new = [text for text in group.after if text not in group.before]
        lines[group.pkey] += [Line("Multicast group", text, "") for text in gone]
        lines[group.pkey] += [Line("Multicast group", "", text) for text in new]
    excepted = list(_exceptions(plan, {**drawn.current.labels, **drawn.table.labels}))
    if excepted:
        named[DEFAULT] = "Default"
        lines[DEFAULT] += excepted
    return tuple(PartitionRow(pkey, named[pkey], what.get(pkey, ""), tuple(lines[pkey])) for pkey in sorted(lines))


def flag_text(name: str, value: FlagValue) -> str:
    """A flag as the file spells it; empty when it is not set."""
    return ", ".join(Flags(**{name: value}).written())  # type: ignore[arg-type]


def other_ports(drawn: DrawnPlan) -> tuple[PortGroup, ...]:
    """The affected ports that no server's row shows, those that change alike together, the largest group first."""
    shown = {change.port.guid for change in drawn.changes if change.port.hca is not None}
    names = {int(partition.pkey): partition.name for partition in (*drawn.current.partitions, *drawn.table.partitions)}
    groups: dict[tuple[bool, tuple[Key, ...], tuple[Key, ...]], list[GUID]] = defaultdict(list)
    for port in drawn.plan.ports:
        if port.guid in shown:
            continue
        row = port_row(port, "", names)
        is_read = row.before is not None
        groups[is_read, _differing(row, before=True), _differing(row, before=False)].append(port.guid)
    names_of = _hostnames(drawn, groups.values())
    return tuple(
        PortGroup(len(ports), is_read, before, after, tuple((guid, names_of.get(guid, "")) for guid in _first(ports)))
        for (is_read, before, after), ports in sorted(groups.items(), key=lambda item: -len(item[1]))
    )


def hazard_notes(drawn: DrawnPlan) -> tuple[HazardNote, ...]:
    """Each hazard's sentence once; what needs a takeover to happen comes last. One query, none without any."""
    told: dict[tuple[str, bool], list[GUID]] = {}
    for hazard, guids in drawn.plan.hazards_told:
        told.setdefault((hazard.sentence, hazard.needs_takeover), []).extend(guids)
    names_of = _hostnames(drawn, told.values())
    return tuple(
        HazardNote(sentence, later, len(guids), tuple((guid, names_of.get(guid, "")) for guid in _first(guids)))
        for (sentence, later), guids in told.items()
    )


def first_violations(violations: Iterable[Violation]) -> tuple[tuple[Violation, ...], int]:
    """Each sentence once, those that refuse the plan first, and how many more there are than a person reads."""
    ordered = sorted({v.sentence: v for v in violations}.values(), key=lambda v: v.severity != "refuse")
    return tuple(ordered[:MOST_VIOLATIONS]), max(0, len(ordered) - MOST_VIOLATIONS)


def _first(guids: list[GUID]) -> list[GUID]:
    return guids[:MOST_NAMED]


def _hostnames(drawn: DrawnPlan, groups: Iterable[list[GUID]]) -> dict[str, str]:
    """The server of each port that is named; a row of ports without one is empty."""
    named = sorted({guid for guids in groups for guid in _first(guids)})
    found: dict[str, str] = {}
    for batch in batches(named):
        rows = Port.objects.filter(subnet=drawn.subnet, guid__in=batch, hca__isnull=False)
        found |= dict(rows.values_list("guid", "hca__server__hostname"))
    return found


def _differing(row: PortRow, *, before: bool) -> tuple[Key, ...]:
    """What goes, or what comes, with its index where the port was read."""
    side = row.before if before else row.after
    return (row.losses if before else row.gains) if side is None else tuple(key for key in side if key.change)


def _exceptions(plan: Plan, labels: Mapping[GUID, str]) -> Iterator[Line]:
    """The ports that Default names and that become something else there."""
    for change in plan.changes:
        if change.pkey.is_default:
            server = labels.get(change.guid)
            where = f"Port {change.guid}{f' of {server}' if server else ''}"
            yield Line(where, str(change.from_membership or ""), str(change.to_membership or ""))
