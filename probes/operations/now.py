"""Probes out of turn, because a person asks."""

from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import Actor
from probes.errors import ProbeRefused
from probes.members import roll_of
from probes.models import ProbeHost, ProbeRun, ProbeScope
from probes.operations.scopes import scope_subject, tenant_key_of
from probes.pairing import Pair, quick_round
from probes.planning import runs_of_pair
from probes.schedule import Why


@transaction.atomic
def run_now(
    *, scope: ProbeScope, actor: Actor, sender: ProbeHost | None = None, target: ProbeHost | None = None
) -> list[ProbeRun]:
    """Queue one pair both ways, or, without a pair, a quick round in which each host takes part once.

    What waits already for a pair is not queued twice. Raises ProbeRefused when nothing can be probed, and why.
    """
    ProbeScope.objects.select_for_update().get(pk=scope.pk)
    roll = roll_of(scope)
    hosts = [member.host.pk for member in roll.members]
    if (sender is None) != (target is None):
        raise ProbeRefused("Name both servers of the pair, or neither for a quick round.")
    if sender is not None and target is not None:
        if not {sender.pk, target.pk} <= set(hosts) or sender.pk == target.pk:
            raise ProbeRefused(f"{sender} and {target} are no pair of {scope} that may be probed now.")
        pairs: list[Pair] = [(sender.pk, target.pk), (target.pk, sender.pk)]
    else:
        pairs = quick_round(hosts)
    limited = roll.limited(scope.rail)
    pairs = [pair for pair in pairs if not set(pair) <= limited]
    if not pairs:
        sentence = roll.left_out[0].sentence if roll.left_out else "Fewer than two hosts take part that could talk."
        raise ProbeRefused(f"There is no pair to probe in {scope}. {sentence}")
    waiting = set(
        ProbeRun.objects.filter(scope=scope, state=ProbeRun.State.QUEUED, asked_by__gt="").values_list(
            "sender", "target"
        )
    )
    pairs = [pair for pair in pairs if pair not in waiting]
    now = timezone.now()
    runs = [
        run
        for one, other in pairs
        for run in runs_of_pair(
            scope, sender=one, target=other, why=Why.NOW, now=now, due_at=now, asked_by=actor.name[:150]
        )
    ]
    for run in runs:
        run.save()
    transaction.on_commit(lambda: nudge.task("probes.tasks.tick", {}), robust=True)
    record(
        action=Action.PROBE_NOW, actor=actor, subject=scope_subject(scope),
        after={"pairs": len(pairs), "runs": len(runs)}, tenant_key=tenant_key_of(scope),
    )  # fmt: skip
    return runs
