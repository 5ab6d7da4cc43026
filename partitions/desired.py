"""Desired: the current revision's table with a selection of staged changes in it. The only bridge to values."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from inventory.models import ManagerHost, Port, Subnet
from partitions.models import Partition, Replacement, StagedChange, StagedDefault
from subnet.default import DefaultPartition, keywords_from_json
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.member import KeywordMember, Member
from subnet.pkey import Membership, PKey
from subnet.table import Partition as TablePartition
from subnet.table import PartitionTable, safe_label

type Members = dict[PKey, dict[GUID, Membership]]


def wanted_table(
    *,
    subnet: Subnet,
    current: PartitionTable,
    changes: Iterable[StagedChange],
    default: StagedDefault | None = None,
    replaced: Iterable[Replacement] = (),
) -> PartitionTable:
    """The table that `current` becomes by `changes`: names, tenants and labels as the rows say today. 3 queries.

    Where `replaced` says that a port has another GUID since its HCA was replaced, the new one stands for the old one.
    Partitions without members are left out: they are rows, and nothing on the fabric. A partition that no row knows
    stays as it is, and so do flags, keywords, multicast lines and Default unless `default` is staged: FabricUI never
    removes what it did not put there. Only a partition that is not in `current` takes its flags from its row.
    Raises InvalidTable when `default` excepts a manager host's port.
    """
    members: Members = defaultdict(dict)
    for partition, member in current.memberships():
        members[partition.pkey][member.guid] = member.membership
    for row in replaced:
        for held in members.values():
            if row.old_guid in held:
                held[row.new_guid] = held.pop(row.old_guid)
    for change in changes:
        held = members[PKey(change.partition.pkey)]
        if change.kind_to is None:
            held.pop(change.port.guid, None)
        else:
            held[change.port.guid] = Membership(change.kind_to)
    known = {partition.pkey: partition for partition in current.partitions}
    rows = Partition.objects.filter(subnet=subnet).by_pkey()
    return PartitionTable(
        sm_ports=sm_ports(subnet),
        partitions=tuple(
            _partition(pkey, members.get(pkey, {}), rows.get(pkey), known.get(pkey))
            for pkey in sorted(members.keys() | known.keys())
            if members.get(pkey) or (pkey in known and known[pkey].keywords)
        ),
        default=current.default if default is None else default_of(default, current.default),
        labels=_labels(subnet, {guid for held in members.values() for guid in held}),
    )


def default_of(staged: StagedDefault, current: DefaultPartition) -> DefaultPartition:
    """What `current` becomes by a staged change of Default; its flags and multicast lines stay. Raises SubnetError."""
    return replace(
        current,
        keywords=keywords_from_json(staged.keywords),
        members=tuple(Member(GUID(guid), Membership(kind)) for guid, kind in staged.members),
    )


def keywords_of(row: Partition) -> tuple[KeywordMember, ...]:
    """The keyword members of a partition's row."""
    return keywords_from_json(row.keywords)


def sm_ports(subnet: Subnet) -> tuple[GUID, ...]:
    """The port GUIDs of the subnet's registered manager hosts."""
    return tuple(GUID(guid) for guid in ManagerHost.objects.filter(subnet=subnet).values_list("port_guid", flat=True))


def _partition(
    pkey: PKey, held: dict[GUID, Membership], row: Partition | None, known: TablePartition | None
) -> TablePartition:
    members = tuple(Member(guid, membership) for guid, membership in held.items())
    if row is None:
        assert known is not None  # noqa: S101  a member comes from a row or from the current table
        return replace(known, members=members)
    return TablePartition(
        pkey=pkey,
        name=row.name,
        tenant=None if row.tenant is None else row.tenant.slug,
        members=members,
        flags=Flags.from_json(row.flags) if known is None else known.flags,
        keywords=keywords_of(row) if known is None else known.keywords,
        mgids=tuple(row.mgids) if known is None else known.mgids,
    )


def _labels(subnet: Subnet, named: set[GUID]) -> dict[GUID, str]:
    """The hostname of each named port's server; one query over the subnet, whatever the number of ports."""
    rows = Port.objects.filter(subnet=subnet, hca__isnull=False).values_list("guid", "hca__server__hostname")
    return {GUID(guid): safe_label(hostname) for guid, hostname in rows if guid in named}
