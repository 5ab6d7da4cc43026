"""Verdicts on isolation: stored once, and a leak alarmed until a person has looked at it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor, Subject
from inventory.models import Subnet
from probes.accept import LONGEST_REASON, plain, small
from probes.errors import ProbeRefused
from probes.models import Incident, IsolationCheck, ProbeHost
from probes.verdict import Isolation, Judged

LEAK_RULE: Final = "leak"
LARGEST_EVIDENCE: Final = 6000  # values: a check is up to nine runs
PAIRS_NOW: Final = 16
State = IsolationCheck.State


def check_subject(check: IsolationCheck) -> Subject:
    """Name a check in the trail by its two servers and the plane."""
    return Subject(kind="isolation-check", key=check.public_id, label=str(check))


@transaction.atomic
def store(check: IsolationCheck, *, judged: Judged, evidence: dict[str, Any], now: datetime) -> bool:
    """Store the verdict of a check that this worker made; False if another one ended it meanwhile.

    A LEAK opens a critical incident, or counts on an open one, and is recorded in the same transaction.
    """
    row = IsolationCheck.objects.select_for_update().filter(pk=check.pk, state=State.RUNNING).first()
    if row is None:
        return False
    row.state, row.finished_at, row.claimed_until = State.DONE, now, None
    row.verdict, row.is_confirmed = judged.verdict, judged.is_confirmed
    row.sentence = plain(judged.sentence, LONGEST_REASON)
    # Both servers have a reason to keep a leak untold: nothing they answer may break the storing of it.
    row.evidence = small(evidence, most=LARGEST_EVIDENCE)
    row.save()
    about = f"{row.plane}:{row.sender_id}:{row.target_id}"
    known = Incident.objects.select_for_update().filter(leak_of=about, acknowledged_at=None).first()
    if judged.verdict is Isolation.LEAK:
        _alarm(row, known, about, now)
    elif known is not None and judged.verdict is Isolation.ISOLATED and known.recovered_at is None:
        known.recovered_at = now
        known.save(update_fields=["recovered_at"])
    return True


def _alarm(row: IsolationCheck, known: Incident | None, about: str, now: datetime) -> None:
    if known is None:
        known = Incident.objects.create(
            leak=row, leak_of=about, rule=LEAK_RULE, sentence=row.sentence, opened_at=now, seen_at=now
        )
    else:
        known.times, known.seen_at, known.recovered_at = known.times + 1, now, None
        known.save(update_fields=["times", "seen_at", "recovered_at"])
    record(
        action=Action.ISOLATION_LEAK, actor=SYSTEM, subject=check_subject(row),
        after={
            "sentence": row.sentence, "plane": row.plane, "sender_port": row.sender_guid,
            "target_port": row.target_guid, "tenants": [row.sender_tenant, row.target_tenant],
            "rollout": row.rollout.public_id if row.rollout else None, "incident": known.public_id,
        },
        tenant_key="",  # it names servers of two tenants: neither is shown the other’s
    )  # fmt: skip


def not_run(check: IsolationCheck, *, sentence: str, now: datetime) -> None:
    """End a check that cannot or may not be made any more; it says nothing."""
    mine = IsolationCheck.objects.filter(pk=check.pk, state=State.RUNNING)
    mine.update(state=State.DROPPED, finished_at=now, claimed_until=None, sentence=sentence[:2000])


def give_back(checks: Iterable[IsolationCheck]) -> None:
    """Let checks wait again: what was seen cannot be used, because tables changed or a port was busy meanwhile."""
    mine = IsolationCheck.objects.filter(pk__in=[check.pk for check in checks], state=State.RUNNING)
    mine.update(state=State.QUEUED, claimed_until=None)


@transaction.atomic
def check_now(*, subnet: Subnet, actor: Actor) -> list[IsolationCheck]:
    """Queue checks of sampled pairs of different tenants. Raises ProbeRefused when there is no such pair."""
    from probes.isolation import ask, sample

    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
    drawn = sample(subnet, most=PAIRS_NOW)
    if drawn is None or not drawn[0]:
        raise ProbeRefused(
            "There are no two ports of different tenants in the current revision: nobody has to be kept apart."
        )
    pairs, tenancy = drawn
    rows = ask(
        subnet, pairs, tenancy=tenancy, cause=IsolationCheck.Cause.NOW, now=timezone.now(), asked_by=actor.name[:150]
    )
    _recorded(subnet, actor, rows)
    return rows


@transaction.atomic
def attempt_now(*, sender: ProbeHost, target: ProbeHost, actor: Actor) -> IsolationCheck:
    """Queue a data-plane attempt between two probe hosts that no partition names, such as RoCE hosts.

    On Ethernet it ends as not applicable. Raises ProbeRefused for hosts of two subnets or one that was withdrawn.
    """
    if sender.pk == target.pk or sender.server.subnet_id != target.server.subnet_id:
        raise ProbeRefused(f"{sender} and {target} are no two hosts of one subnet.")
    if sender.withdrawn_at is not None or target.withdrawn_at is not None:
        raise ProbeRefused("One of the two was withdrawn from probes.")
    row = IsolationCheck.objects.create(
        subnet=sender.server.subnet, plane=IsolationCheck.Plane.DATA, cause=IsolationCheck.Cause.NOW,
        sender=sender.server, target=target.server, asked_at=timezone.now(), asked_by=actor.name[:150],
    )  # fmt: skip
    transaction.on_commit(lambda: nudge.task("probes.tasks.check_isolation", {}), robust=True)
    _recorded(row.subnet, actor, [row])
    return row


def _recorded(subnet: Subnet, actor: Actor, rows: list[IsolationCheck]) -> None:
    record(
        action=Action.ISOLATION_NOW, actor=actor,
        subject=Subject(kind="subnet", key=subnet.public_id, label=subnet.name), after={"checks": len(rows)},
    )  # fmt: skip
