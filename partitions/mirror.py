"""The mirror: make Membership rows show the current revision, and let go of staged changes that have come true.

It follows the events of rollouts (`audit.follow`), at least once and possibly long after them, so it looks at what
is current *now* and at nothing in the event but the subnet. All of one catch-up is one transaction: a crash in the
middle leaves the former revision's rows and the cursor where they were, and the next turn does all of it again.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.record import record
from audit.values import SYSTEM, Subject
from deploy.models import Fence, Revision, Rollout
from deploy.queries import current_revision
from inventory.models import Port, Subnet
from partitions import staged_rows
from partitions.desired import default_of
from partitions.errors import MirrorBroken
from partitions.models import (
    Cleaning,
    DefaultRule,
    Membership,
    MembershipKind,
    MirroredRevision,
    Partition,
    Replacement,
    StagedChange,
    StagedDefault,
)
from people.models import Tenant
from subnet.default import keywords_to_json
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.table import PartitionTable

BATCH = 500  # rows a statement: SQLite takes 32,766 variables, older ones 999

# Whatever may change which revision is current; `follow` looks for itself whether it did.
FOLLOWED = frozenset(
    {
        Action.REVISION_PROPOSE,  # the first revision is current at once
        Action.REVISION_ADOPT,  # so is an adopted one
        Action.ROLLOUT_PROVEN,
        Action.ROLLOUT_DEGRADED,
        Action.ROLLOUT_RESTORED,
    }
)

type Rows = dict[tuple[int, int], MembershipKind]  # (row id of partition, of port) → how


def follow(event: Event) -> None:
    """Catch up with whatever subnet the event is about; the follower's function."""
    if event.subject_kind == "rollout":
        subnets = Subnet.objects.filter(rollouts__public_id=event.subject_key)
    elif event.subject_kind == "revision":
        subnets = Subnet.objects.filter(revisions__public_id=event.subject_key)
    else:
        subnets = Subnet.objects.filter(public_id=event.subject_key)
    for subnet in subnets:
        catch_up(subnet)


def is_settling(subnet: Subnet) -> bool:
    """Whether the board still shows an older revision than the current one. One query."""
    return Fence.objects.filter(subnet=subnet).exclude(subnet__mirrored__revision=F("current")).exists()


@transaction.atomic
def catch_up(subnet: Subnet) -> bool:
    """Show the current revision of `subnet`; return whether there was anything to do. Safe to call at any time.

    Raises MirrorBroken when the revision names a partition that no row knows.
    """
    _remember_attempts(subnet)
    if _behind(subnet) is None:
        return False
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)  # one catch-up at a time
    revision = _behind(subnet)
    if revision is None:
        return False
    table = revision.partition_table()
    touched = _write_memberships(_wanted(subnet, table, revision), subnet)
    _write_rules(subnet, table)
    _let_go(subnet, touched)
    _let_go_of_default(subnet, table)
    _let_go_of_replaced(subnet, table)
    _remember_tenants(subnet)
    MirroredRevision.objects.update_or_create(subnet=subnet, defaults={"revision": revision, "at": timezone.now()})
    record(
        action=Action.MEMBER_SETTLE,
        actor=SYSTEM,
        subject=Subject(kind="revision", key=revision.public_id, label=f"revision {revision.number} of {subnet}"),
        after={"ports": len(touched)},
    )
    return True


def _behind(subnet: Subnet) -> Revision | None:
    """The current revision if the rows do not show it yet. Asked before each staging, so it is not read for nothing."""
    return current_revision(subnet) if is_settling(subnet) else None


def _wanted(subnet: Subnet, table: PartitionTable, revision: Revision) -> Rows:
    """The rows that `table` asks for; a port that no row knows yet gets one, named in a file."""
    partitions = {pkey: row.pk for pkey, row in Partition.objects.filter(subnet=subnet).by_pkey().items()}
    for partition in table.partitions:
        if partition.pkey not in partitions:
            raise MirrorBroken(
                f"{revision} of {subnet} has a partition {partition.name} ({partition.pkey}) that FabricUI has no row "
                "for, so its members cannot be shown. Create that partition with this P_Key for its tenant; the board "
                "catches up by itself."
            )
    ports = _ports(subnet, table.by_port())
    return {
        (partitions[partition.pkey], ports[member.guid]): MembershipKind(member.membership.value)
        for partition, member in table.memberships()
    }


def _ports(subnet: Subnet, guids: Iterable[GUID]) -> dict[GUID, int]:
    rows = Port.objects.filter(subnet=subnet).values_list("guid", "pk")
    known = {GUID(guid): pk for guid, pk in rows}
    # A port whose HCA was replaced stands in revisions of before under its old GUID.
    pending = Replacement.objects.pending().filter(port__subnet=subnet).values_list("old_guid", "port_id")
    known |= {GUID(guid): pk for guid, pk in pending}
    missing = [guid for guid in guids if guid not in known]
    if missing:
        created = Port.objects.bulk_create([Port(subnet=subnet, guid=guid) for guid in missing], batch_size=BATCH)
        known |= {GUID(port.guid): port.pk for port in created}
    return known


def _write_memberships(wanted: Rows, subnet: Subnet) -> set[int]:
    """Make the subnet's rows equal `wanted`; return the row ids of the ports that were touched."""
    rows = Membership.objects.filter(partition__subnet=subnet).values_list("partition_id", "port_id", "pk", "kind")
    current = {(partition, port): (pk, MembershipKind(kind)) for partition, port, pk, kind in rows}
    gone = {place: pk for place, (pk, _) in current.items() if place not in wanted}
    new = {place: kind for place, kind in wanted.items() if place not in current}
    changed = {place: kind for place, kind in wanted.items() if place in current and current[place][1] != kind}
    for batch in batches(list(gone.values())):
        Membership.objects.filter(pk__in=batch).delete()
    Membership.objects.bulk_create(
        [Membership(partition_id=partition, port_id=port, kind=kind) for (partition, port), kind in new.items()],
        batch_size=BATCH,
    )
    for kind in MembershipKind:
        for batch in batches([current[place][0] for place, to in changed.items() if to == kind]):
            Membership.objects.filter(pk__in=batch).update(kind=kind)
    return {port for _, port in (*gone, *new, *changed)}


def _write_rules(subnet: Subnet, table: PartitionTable) -> None:
    """Make the rows say what `table` does beside GUIDs: flags, keywords and multicast lines, and Default's own."""
    rows = Partition.objects.filter(subnet=subnet).by_pkey()
    differing = []
    for partition in table.partitions:
        row = rows[partition.pkey]
        says = (partition.flags.to_json(), keywords_to_json(partition.keywords), list(partition.mgids))
        if (row.flags, row.keywords, row.mgids) != says:
            row.flags, row.keywords, row.mgids = says
            differing.append(row)
    Partition.objects.bulk_update(differing, ["flags", "keywords", "mgids"], batch_size=BATCH // 10)
    DefaultRule.objects.update_or_create(subnet=subnet, defaults=table.default.to_json())


def _let_go_of_default(subnet: Subnet, table: PartitionTable) -> None:
    """Delete the staged change of Default when it is current now."""
    staged = StagedDefault.objects.filter(subnet=subnet).first()
    if staged is None:
        return
    try:
        wanted = replace(table, default=default_of(staged, table.default))
    except SubnetError:
        return  # what no table can say is not current; the plan page says why
    if wanted.default == table.default:
        staged.delete()


def _let_go_of_replaced(subnet: Subnet, table: PartitionTable) -> None:
    """A replacement is done once the current revision does not name the old GUID any more."""
    named = set(table.by_port())
    pending = Replacement.objects.pending().filter(port__subnet=subnet).values_list("pk", "old_guid")
    done = [pk for pk, old_guid in pending if GUID(old_guid) not in named]
    Replacement.objects.filter(pk__in=done).update(done_at=timezone.now())


def _let_go(subnet: Subnet, touched: set[int]) -> None:
    """Delete staged changes that are current now, and let the others start from what is current."""
    staged = StagedChange.objects.of_subnet(subnet)
    now = Subquery(Membership.objects.filter(partition=OuterRef("partition"), port=OuterRef("port")).values("kind")[:1])
    come_true: list[int] = []
    settled: set[int] = set()  # ports
    moved_on: dict[str | None, list[int]] = defaultdict(list)
    rows = staged.annotate(now=now).values_list("pk", "port_id", "kind_from", "kind_to", "now")
    for pk, port, kind_from, kind_to, kind_now in rows:
        if kind_to == kind_now:
            come_true.append(pk)
            settled.add(port)
        elif port in touched and kind_from != kind_now:
            moved_on[kind_now].append(pk)
    staged_rows.forget(subnet=subnet, ports=settled)
    for batch in batches(come_true):
        StagedChange.objects.filter(pk__in=batch).delete()
    for kind, ids in moved_on.items():
        for batch in batches(ids):
            StagedChange.objects.filter(pk__in=batch).update(kind_from=kind)


def _remember_tenants(subnet: Subnet) -> None:
    """Note on each port whose partitions it is in; a port that has left keeps the last one."""
    tenant = Subquery(
        Membership.objects.filter(port=OuterRef("pk"), partition__tenant__isnull=False).values("partition__tenant")[:1]
    )
    ports = Port.objects.filter(subnet=subnet).annotate(tenant_now=tenant).exclude(tenant_now=None)
    stale = ports.filter(Q(former_tenant=None) | ~Q(former_tenant=F("tenant_now")))
    for batch in batches(list(stale.values_list("pk", flat=True))):
        Port.objects.filter(pk__in=batch).update(former_tenant=tenant)


def _remember_attempts(subnet: Subnet) -> None:
    """Note the tenant whose key a port was given without a proof: it may have held it, or may hold it still.

    A rollout that ended RESTORED or STUCK has placed its revision, which never becomes current. Without this a port
    could go from the one tenant's key to another's in a single sweep. Staging and rolling out begin with a catch-up,
    so every attempt on the current revision is noted before another one can become current. What a person has
    cleaned since an attempt is clean of it.
    """
    ended = Rollout.objects.filter(
        subnet=subnet,
        parent__in=Fence.objects.filter(subnet=subnet).values("current"),
        state__in=(Rollout.State.RESTORED, Rollout.State.STUCK),
    )
    attempts = list(ended.values_list("revision__table", "finished_at"))
    tenants = dict(Tenant.objects.values_list("slug", "pk")) if attempts else {}
    for table, finished_at in attempts:
        cleaned = Exists(Cleaning.objects.filter(port=OuterRef("pk"), at__gte=finished_at))
        for partition in table["partitions"]:
            if partition["tenant"] in tenants:
                for batch in batches([guid for guid, _ in partition["members"]]):
                    ports = Port.objects.filter(~cleaned, subnet=subnet, guid__in=batch, former_tenant=None)
                    ports.update(former_tenant=tenants[partition["tenant"]])


def batches[Key](ids: list[Key]) -> Iterable[list[Key]]:
    """`ids` in pieces that fit into one statement."""
    return (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))
