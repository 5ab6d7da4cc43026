"""Moves that a tenant's people have staged and that do not go out by themselves: what an operator has to look at.

Either the tenant's moves always wait for an operator, or its newest turn was left to one (`portal/turns.py`).
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min
from django.urls import reverse
from django.utils.translation import gettext

from inventory.models import Subnet
from partitions.models import StagedChange
from partitions.selection import Selection
from people.models import Tenant
from portal.models import Turn
from portal.words import Why


@dataclass(frozen=True, slots=True)
class LeftMoves:
    """One tenant's moves on one subnet: how many servers, since when, why an operator has to see them, and where.

    `told` is why as the rooms below say it, in English; it may name others.
    """

    tenant: Tenant
    subnet: Subnet
    servers: int
    since: datetime
    why: str
    told: str

    @property
    def plan(self) -> str:
        """The address of the plan of exactly these moves."""
        return f"{reverse('console:plan')}?selection={Selection.own_of(self.tenant)}"


def left_moves() -> list[LeftMoves]:
    """All of them, the oldest first. One query while there are none, four whatever there is."""
    staged = StagedChange.objects.exclude(for_tenant=None).order_by()
    rows = list(
        staged.values("for_tenant", "partition__subnet").annotate(
            servers=Count("port__hca__server", distinct=True), since=Min("at")
        )
    )
    if not rows:
        return []
    tenants = Tenant.objects.in_bulk([row["for_tenant"] for row in rows])
    subnets = Subnet.objects.in_bulk([row["partition__subnet"] for row in rows])
    last = Turn.objects.filter(tenant__in=tenants).order_by().values("tenant", "subnet").annotate(last=Max("pk"))
    turns = Turn.objects.filter(pk__in=last.values("last"))
    newest = {(turn.tenant_id, turn.subnet_id): turn for turn in turns}
    found = []
    for row in rows:
        tenant, turn = tenants[row["for_tenant"]], newest.get((row["for_tenant"], row["partition__subnet"]))
        if turn is not None and turn.next_try_at is not None:
            continue  # it goes on by itself
        is_left = turn is not None and turn.state == Turn.State.OPERATOR
        if not is_left and tenant.moves == Tenant.Moves.ALONE:
            continue  # its rollout failed, which is a page of its own; the tenant tries again
        why = Why(turn.why) if turn is not None and is_left else Why.POLICY
        told = turn.told if turn is not None and is_left else ""
        found.append(
            LeftMoves(tenant, subnets[row["partition__subnet"]], row["servers"], row["since"], _words(why), told)
        )
    return sorted(found, key=lambda one: one.since)


def _words(why: Why) -> str:
    return {
        Why.PEOPLE: gettext("Whoever staged them may not act for it any more."),
        Why.UNSAFE: gettext("The plan asks a person something."),
        Why.SILENT: gettext("A port has no link or did not answer, so nobody could prove the change."),
    }.get(why, gettext("By its policy none goes out by itself."))
