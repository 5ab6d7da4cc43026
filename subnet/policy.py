"""Which partition tables may go out: the same rules for forms, the API, the review page and the tests.

It reports and never raises; the operations decide what to do with a violation.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from subnet import policy_language, policy_reading
from subnet.guid import GUID
from subnet.member import membership_by_keyword
from subnet.moves import owners
from subnet.pkey import Membership
from subnet.table import Member, Partition, PartitionTable
from subnet.violation import Severity, Violation

__all__ = ["Limits", "Severity", "Violation", "check"]

# From this share of its slots on, a port's table is called nearly full.
NEARLY_FULL = 0.9


@dataclass(frozen=True, slots=True)
class Limits:
    """How many P_Keys a port's table holds, Default included: one number for all, or one for each port GUID."""

    capacity: Mapping[GUID, int] | int

    def of(self, guid: GUID) -> int | None:
        """The capacity of one port; None when it was never read."""
        return self.capacity if isinstance(self.capacity, int) else self.capacity.get(guid)


def check(
    table: PartitionTable,
    limits: Limits,
    *,
    sm_ports_registered: Iterable[GUID],
    standing: PartitionTable | None = None,
) -> tuple[Violation, ...]:
    """Every rule that `table` breaks, refusals first. `standing` is the current table, adopted or ours.

    Refused: no SM port, a registered SM port missing from Default's full members, a stranger among them, a port in
    two tenants' partitions, a port that goes from one tenant to another in this one step, a tenant's port as a full
    member of a provider's (shared) partition, more keys than the port holds; and, unless it stands already as it is
    (then it is warned of, because an adopted file must stay plannable): a keyword in a tenant's partition, one that
    makes HCA ports full in a provider's, SELF in a partition, an SM that demotes its own port. Multicast groups that
    kill OpenSM are always refused.
    Warned of: a table nearly full, unknown capacities, an SM port in a partition, partitions whose members cannot
    talk to each other, an open Default, switches or routers limited in it, flags and groups without effect. Reserved
    P_Keys and names that OpenSM misreads cannot get into a table at all.
    """
    held: dict[GUID, list[tuple[Partition, Member]]] = {}
    for partition, member in table.memberships():
        held.setdefault(member.guid, []).append((partition, member))
    found = [
        *_sm_ports(table, frozenset(sm_ports_registered), held),
        *_tenants(table, held),
        *_between_tenants(table, held, standing),
        *_capacities(table, limits, held),
        *_silent_partitions(table),
        *policy_language.violations(table, standing),
        *policy_reading.violations(table),
    ]
    return tuple(sorted(found, key=lambda violation: violation.severity != "refuse"))


def _port(table: PartitionTable, guid: GUID) -> str:
    label = table.labels.get(guid)
    return f"Port {guid} of {label}" if label else f"Port {guid}"


def _sm_ports(
    table: PartitionTable, registered: frozenset[GUID], held: Mapping[GUID, list[tuple[Partition, Member]]]
) -> Iterator[Violation]:
    if not table.sm_ports:
        yield Violation(
            "no_sm_port",
            "refuse",
            "table",
            "The table names no subnet manager's port as a full member of Default: hosts could not reach the subnet "
            "administrator. Enrol the manager hosts first.",
        )
    named = frozenset(table.sm_ports)
    for guid in sorted(registered - named):
        yield Violation(
            "sm_port_missing",
            "refuse",
            guid,
            f"Port {guid} belongs to a registered manager host and is not a full member of Default: after a takeover "
            "no limited host could reach it. Draw up the plan again.",
        )
    for guid in sorted(named - registered):
        yield Violation(
            "sm_port_unknown",
            "refuse",
            guid,
            f"Port {guid} would be a full member of Default, so it could talk to every port, but no registered "
            "manager host has it. Enrol that host, or draw up the plan again.",
        )
    for guid in sorted(named & held.keys()):
        names = ", ".join(partition.name for partition, _ in held[guid])
        yield Violation(
            "sm_port_in_partition",
            "warn",
            guid,
            f"{_port(table, guid)} is a manager host's port and also a member of {names}. Keep manager hosts out of "
            "partitions unless they must serve there.",
        )


def _tenants(table: PartitionTable, held: Mapping[GUID, list[tuple[Partition, Member]]]) -> Iterator[Violation]:
    for guid, places in held.items():
        tenants = sorted({partition.tenant for partition, _ in places if partition.tenant is not None})
        if len(tenants) > 1:
            names = ", ".join(f"{p.name} ({p.pkey}, {p.tenant})" for p, _ in places if p.tenant is not None)
            yield Violation(
                "two_tenants",
                "refuse",
                guid,
                f"{_port(table, guid)} would be in partitions of {len(tenants)} tenants: {names}. "
                "Take it out of all but one tenant's.",
            )
        if not tenants:
            continue
        for partition, member in places:
            if partition.tenant is None and member.membership == Membership.FULL:
                yield Violation(
                    "tenant_full_in_provider",
                    "refuse",
                    guid,
                    f"{_port(table, guid)} belongs to {tenants[0]} and would be a full member of the provider's "
                    f"partition {partition.name} ({partition.pkey}), where it could reach other tenants' ports. "
                    "Make it a limited member.",
                )


def _between_tenants(
    table: PartitionTable, held: Mapping[GUID, list[tuple[Partition, Member]]], standing: PartitionTable | None
) -> Iterator[Violation]:
    """A port that joins a tenant's partition while `standing` has it in another tenant's (`subnet/moves.py`: why).

    A partition that passes to another owner with its ports is no move: a plan asks for a reason then.
    """
    if standing is None or standing is table:
        return
    before = owners(standing)
    stood = {partition.pkey: partition for partition in standing.partitions}
    for guid, places in held.items():
        tenants = {partition.tenant for partition, _ in places if partition.tenant is not None}
        former = before.get(guid, set()) - tenants
        if len(tenants) != 1 or not former or before[guid] & tenants:
            continue  # two tenants at once are refused as that
        joins = [p for p, _ in places if p.tenant is not None and not _names(stood.get(p.pkey), guid)]
        if joins:
            yield Violation(
                "between_tenants",
                "refuse",
                guid,
                f"{_port(table, guid)} would go from {min(former)} to {joins[0].tenant} ({joins[0].name}, "
                f"{joins[0].pkey}) in one step: a connection that outlives it could end up in the new tenant's "
                "partition. Take it out first; it joins once that is proven and its server is marked clean.",
            )


def _names(partition: Partition | None, guid: GUID) -> bool:
    return partition is not None and any(member.guid == guid for member in partition.members)


def _capacities(
    table: PartitionTable, limits: Limits, held: Mapping[GUID, list[tuple[Partition, Member]]]
) -> Iterator[Violation]:
    unknown: list[GUID] = []
    by_keyword = frozenset(
        p.pkey for p in table.partitions if membership_by_keyword(p.keywords, "CA", is_self=False) is not None
    )
    if by_keyword and not isinstance(limits.capacity, int):
        held = {guid: held.get(guid, []) for guid in sorted(held.keys() | limits.capacity.keys())}
    for guid, places in held.items():
        capacity = limits.of(guid)
        # Default takes one; so does each partition whose keyword stands for all HCA ports.
        keys = 1 + (len({p.pkey for p, _ in places} | by_keyword) if by_keyword else len(places))
        if capacity is None:
            unknown.append(guid)
        elif keys > capacity:
            yield Violation(
                "capacity",
                "refuse",
                guid,
                f"{_port(table, guid)} holds {capacity} P_Keys, Default included, and would need {keys}: OpenSM "
                f"would leave some out. Take it out of {keys - capacity} of its partitions.",
            )
        elif keys >= NEARLY_FULL * capacity:
            yield Violation(
                "capacity_nearly_full",
                "warn",
                guid,
                f"{_port(table, guid)} would use {keys} of its {capacity} P_Key slots.",
            )
    if unknown:
        others = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        yield Violation(
            "capacity_unknown",
            "warn",
            "table",
            f"How many P_Keys port {unknown[0]}{others} can hold is not known, because it was not read. "
            "Read the tables once the port is up.",
        )


def _silent_partitions(table: PartitionTable) -> Iterator[Violation]:
    for partition in table.partitions:
        everyone = [
            *(member.membership for member in partition.members),
            *(keyword.membership for keyword in partition.keywords),
        ]
        is_more_than_one = len(everyone) > 1 or partition.keywords
        if is_more_than_one and Membership.FULL not in everyone:
            yield Violation(
                "all_limited",
                "warn",
                str(partition.pkey),
                f"All {len(everyone)} members of {partition.name} ({partition.pkey}) are limited, so none can talk to "
                "another. Make at least one a full member.",
            )
