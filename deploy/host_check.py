"""“Check this host”: ask one manager host for every piece it needs, and keep the answer for its page."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import Actor
from deploy import queries
from deploy.look import told
from deploy.models import HostCheck
from deploy.qualification import facts_json
from deploy.qualification_models import PENDING_REQUEST, RequestState
from inventory.models import ManagerHost
from inventory.subjects import manager_host_subject
from remote.errors import RemoteError
from remote.host_check import QualifyVerbs

TASK: Final = "deploy.tasks.check_host"


def request(*, host: ManagerHost, actor: Actor) -> HostCheck:
    """Have the managers' worker ask `host` soon; while such a request is pending, return that one."""
    with transaction.atomic():
        ManagerHost.objects.select_for_update().get(pk=host.pk)
        pending = HostCheck.objects.filter(host=host, state__in=PENDING_REQUEST).order_by("id").first()
        if pending is not None:
            return pending
        row = HostCheck.objects.create(
            host=host, requested_by_key=actor.key, requested_by_name=actor.name, requested_at=timezone.now()
        )
        record(action=Action.HOST_CHECK_REQUEST, actor=actor, subject=manager_host_subject(host))
        transaction.on_commit(lambda: nudge.task(TASK, {"check_id": row.pk}), robust=True)
    return row


def run(*, check: HostCheck, hosts: Sequence[QualifyVerbs], clock: Callable[[], datetime] = timezone.now) -> None:
    """Ask, and end DONE with the facts or FAILED with the sentence why nobody answered. Safe to run twice."""
    now = clock()
    free = HostCheck.objects.filter(pk=check.pk, state=RequestState.REQUESTED)
    left = HostCheck.objects.filter(
        pk=check.pk, state=RequestState.READING, began_at__lte=now - queries.QUALIFYING_TAKES_AT_MOST
    )
    if (free | left).update(state=RequestState.READING, began_at=now) != 1:
        return
    fields: dict[str, object]
    host = next((host for host in hosts if host.name == check.host.name), None)
    if host is None:
        fields = {"state": RequestState.FAILED, "failure": f"Manager host {check.host.name} was retired."}
    else:
        try:
            facts = host.check()
        except RemoteError as error:
            fields = {"state": RequestState.FAILED, "failure": told(check.host.name, error)}
        else:
            pinned = (check.host.wrapper_digest, check.host.reader_digest)
            is_pinned = (facts.wrapper_digest, facts.reader_digest) == pinned
            fields = {"state": RequestState.DONE, "facts": {**facts_json(facts), "is_pinned": is_pinned}}
    HostCheck.objects.filter(pk=check.pk, state=RequestState.READING).update(finished_at=clock(), **fields)
    check.refresh_from_db()
