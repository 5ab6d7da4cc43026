"""What the home page shows: one glance at subnets, managers, staged changes, rollouts, and all that waits for a person.

The number of queries is the same whatever there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, IntegerField, Max, Min, OuterRef, Q, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.values import ActorKind
from console import from_above, lamps
from console.by_hand import Spared, Work, spared
from console.from_above import Need
from deploy.drift_models import ALARMS, Drift, Watch
from deploy.models import Fence, HostOutcome, Rollout
from inventory.models import ManagerHost, Port, PortConflict, Subnet
from partitions.models import StagedChange, StagedDefault
from people.models import User
from probes.models import Incident
from webhooks.models import Endpoint

LATE: Final = 4  # intervals without a look, after which what was seen is no longer believed
NEWEST: Final = 5  # rollouts


@dataclass(frozen=True, slots=True)
class SubnetRow:
    """One subnet: how far FabricUI goes there, what is current, and what differs."""

    subnet: Subnet
    lamp: lamps.Lamp
    drift: lamps.Lamp
    current: int | None  # number of the revision
    proven_at: datetime | None
    seen_at: datetime | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class ManagerRow:
    """One manager host as the watch saw it last."""

    host: ManagerHost
    role: lamps.Lamp
    file: lamps.Lamp
    proven_at: datetime | None


@dataclass(frozen=True, slots=True)
class Staged:
    """How much is staged: by everybody, and by who looks at the page."""

    servers: int
    ports: int
    people: int
    my_servers: int
    my_ports: int
    has_default: bool  # a change of Default waits too

    @property
    def is_any(self) -> bool:
        """Whether anything is."""
        return bool(self.ports or self.has_default)


def overview(user: User) -> dict[str, Any]:
    """Everything of the page beside the frame, for `user`."""
    now = timezone.now()
    proven = Rollout.objects.filter(subnet=OuterRef("pk"), state=Rollout.State.PROVEN).order_by("-id")
    known = Subnet.objects.select_related("fence__current", "fence__rollout", "watch")
    subnets = list(known.annotate(proven_at=Subquery(proven.values("finished_at")[:1])).order_by("pk"))
    drifts = _drifts()
    staged = _staged(user)
    rollouts = list(
        Rollout.objects.select_related("revision", "parent", "subnet")
        .prefetch_related("outcomes")
        .order_by("-id")[:NEWEST]
    )
    subnet_rows = [_subnet_row(subnet, drifts, now) for subnet in subnets]
    managers = _managers(subnets, drifts, now)
    return {
        "subnet_rows": subnet_rows,
        "managers": managers,
        "staged": staged,
        "rollouts": rollouts,
        "needs": _needs(subnets, drifts, managers),
        "spared": _spared(),
        "may_be_late": any(row.is_late for row in subnet_rows),
    }


@dataclass(frozen=True, slots=True)
class _Drifts:
    """What differs: how often each kind in each subnet, the file of which host, and one row of each kind to quote."""

    counts: dict[tuple[int, str], int]
    files: frozenset[tuple[int, str]]
    rows: dict[tuple[int, str], Drift]


def _drifts() -> _Drifts:
    """Three queries: after a lost isolation thousands of tables differ, and nobody reads them on this page."""
    told = Drift.objects.filter(closed_at=None).exclude(opened_at=None)
    counted = {
        (subnet, kind): (count, first)
        for subnet, kind, count, first in told.values_list("subnet", "kind").annotate(Count("pk"), Min("pk")).order_by()
    }
    rows = {row.pk: row for row in Drift.objects.filter(pk__in=[first for _, first in counted.values()])}
    return _Drifts(
        counts={place: count for place, (count, _) in counted.items()},
        files=frozenset(told.filter(kind=Drift.Kind.FILE).values_list("subnet", "key")),
        rows={place: rows[first] for place, (_, first) in counted.items() if first in rows},
    )


def _subnet_row(subnet: Subnet, drifts: _Drifts, now: datetime) -> SubnetRow:
    fence = _one(subnet, "fence", Fence)
    watch = _one(subnet, "watch", Watch)
    seen_at = watch.checked_at if watch is not None else None
    ours = {kind: count for (pk, kind), count in drifts.counts.items() if pk == subnet.pk}
    is_late = _is_late(watch, now)
    return SubnetRow(
        subnet=subnet,
        lamp=lamps.subnet(
            mode=subnet.mode,
            is_frozen=subnet.frozen_at is not None,
            rollout_state=fence.rollout.state if fence is not None and fence.rollout is not None else None,
        ),
        # What was seen long ago may be told as wrong still, never as good.
        drift=lamps.drifting(count=sum(ours.values()), is_alarm=not ALARMS.isdisjoint(ours), is_seen=not is_late),
        current=fence.current.number if fence is not None and fence.current is not None else None,
        proven_at=subnet.proven_at,  # type: ignore[attr-defined]  # annotated
        seen_at=seen_at,
        is_late=is_late,
    )


def _managers(subnets: Sequence[Subnet], drifts: _Drifts, now: datetime) -> list[ManagerRow]:
    proven = HostOutcome.objects.filter(rollout__state=Rollout.State.PROVEN).exclude(placed_at=None)
    proven_at = dict(proven.values_list("host").annotate(Max("rollout__finished_at")).order_by())
    seen: dict[tuple[int, str], dict[str, Any]] = {}
    for subnet in subnets:
        watch = _one(subnet, "watch", Watch)
        if watch is not None and not _is_late(watch, now):
            seen |= {(subnet.pk, said["host"]): said for said in watch.managers}
    rows = []
    for host in ManagerHost.objects.select_related("subnet").order_by("subnet__name", "name"):
        place = (host.subnet_id, host.name)
        said = seen.get(place, {})
        rows.append(
            ManagerRow(
                host=host,
                role=lamps.subnet_manager(said.get("role")),
                file=_file(said, differs=place in drifts.files),
                proven_at=proven_at.get(host.pk),
            )
        )
    return rows


def _file(said: dict[str, Any], *, differs: bool) -> lamps.Lamp:
    digest = str(said.get("digest") or "")
    return lamps.file(digest=digest, current="" if differs else digest, error=str(said.get("error") or ""))


def _staged(user: User) -> Staged:
    mine = Q(by=user)
    found = StagedChange.objects.aggregate(
        servers=Count("port__hca__server", distinct=True),
        ports=Count("port", distinct=True),
        people=Count("by", distinct=True),
        my_servers=Count("port__hca__server", distinct=True, filter=mine),
        my_ports=Count("port", distinct=True, filter=mine),
    )
    return Staged(**found, has_default=StagedDefault.objects.exists())


def _needs(subnets: Sequence[Subnet], drifts: _Drifts, managers: list[ManagerRow]) -> list[Need]:
    """What waits for a person, the gravest first."""
    needs = [
        Need(lamps.drift(row.kind, is_over=False), _quoted(row, drifts.counts[place]), reverse("console:drift"))
        for place, row in sorted(drifts.rows.items(), key=lambda item: (not item[1].is_alarm, item[1].pk))
    ]
    for subnet in subnets:
        fence = _one(subnet, "fence", Fence)
        rollout = fence.rollout if fence is not None else None
        if rollout is not None and not Rollout.State(rollout.state).is_running:
            sentence = f"Rollout {rollout.public_id} holds {subnet}: {rollout.cause or rollout.get_state_display()}"
            address = reverse("console:rollout", args=[rollout.public_id])
            needs.append(Need(lamps.rollout(rollout.state), sentence, address))
    incidents = Incident.objects.filter(acknowledged_at=None).aggregate(
        leaks=Count("pk", filter=Q(leak__isnull=False)), worse=Count("pk", filter=Q(leak__isnull=True))
    )
    conflicts = PortConflict.objects.filter(closed_at=None).count()
    unconfirmed = Port.objects.filter(confirmed_at=None, hca__isnull=False).count()
    address = reverse("probes:incidents")
    leaks, worse = incidents["leaks"], incidents["worse"]
    if leaks:
        needs.append(Need(lamps.ALARM, f"{leaks} leak{'' if leaks == 1 else 's'} between tenants.", address))
    if worse:
        lamp = lamps.Lamp(lamps.Colour.WARN, "activity", "regression")
        needs.append(Need(lamp, f"{worse} pair{'' if worse == 1 else 's'} of probes got worse.", address))
    if conflicts:
        lamp = lamps.port(is_confirmed=False, has_conflict=True)
        sentence = f"{conflicts} conflict{'' if conflicts == 1 else 's'} about ports."
        needs.append(Need(lamp, sentence, reverse("console:conflicts")))
    if unconfirmed:
        lamp = lamps.port(is_confirmed=False, has_conflict=False)
        address = f"{reverse('console:servers')}?q=trust%3Aunconfirmed"
        needs.append(Need(lamp, f"{unconfirmed} port{'' if unconfirmed == 1 else 's'} nobody has confirmed.", address))
    needs += from_above.needs()
    silent = Endpoint.objects.given_up().count()
    if silent:
        lamp = lamps.Lamp(lamps.Colour.WARN, "alert-triangle", "webhook")
        sentence = f"{silent} webhook{'' if silent == 1 else 's'} took nothing and hears nothing more."
        needs.append(Need(lamp, sentence, reverse("webhooks:endpoints")))
    for subnet in subnets:
        count = sum(row.host.subnet_id == subnet.pk for row in managers)
        if count < 2:
            lamp = lamps.Lamp(lamps.Colour.WARN, "crown", "managers")
            sentence = f"{subnet} has {count} manager host{'' if count == 1 else 's'}; it needs a master and a standby."
            needs.append(Need(lamp, sentence, reverse("console:first_run")))
    return needs


def _spared() -> Spared:
    proven = Rollout.objects.filter(state=Rollout.State.PROVEN)
    by_state = Rollout.objects.aggregate(started=Count("pk"), proven=Count("pk", filter=Q(state=Rollout.State.PROVEN)))
    settled = Event.objects.filter(
        action=Action.MEMBER_SETTLE.value, revision_key__in=proven.values("revision__public_id")
    ).aggregate(ports=Sum(Cast(KeyTextTransform("ports", "after"), IntegerField())))
    staging = [Action.MEMBER_STAGE.value, Action.MEMBER_DISCARD.value]
    by_people = Event.objects.filter(action__in=staging, actor_kind=ActorKind.PERSON.value)
    return spared(
        Work(
            ports=settled["ports"] or 0,
            files=HostOutcome.objects.filter(rollout__in=proven).exclude(placed_at=None).count(),
            proven=by_state["proven"],
            started=by_state["started"],
            staged=by_people.count(),
        )
    )


def _quoted(row: Drift, count: int) -> str:
    sentence = str(row.details[0]) if row.details else str(row)
    return sentence if count == 1 else f"{sentence} And {count - 1} more of this kind."


def _one[Row](subnet: Subnet, name: str, model: type[Row]) -> Row | None:
    """The row that `select_related` brought along, or None when there is none."""
    found: Row | None = getattr(subnet, name, None)
    return found


def _is_late(watch: Watch | None, now: datetime) -> bool:
    late = timedelta(seconds=settings.WATCH_INTERVAL_S * LATE)
    return watch is None or watch.checked_at is None or now - watch.checked_at > late
