"""Stage and discard a change of the Default partition: one wanted rule a subnet, kept until it is current."""

from collections.abc import Iterable
from dataclasses import replace

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from deploy.models import Revision
from deploy.queries import current_revision, running_rollout
from inventory.models import Subnet
from inventory.subjects import subnet_subject
from partitions import desired, mirror
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused, NoRevision
from partitions.models import StagedDefault
from partitions.refusals import moment
from people.permissions import is_operator
from subnet.default import DefaultPartition, keywords_to_json
from subnet.member import KeywordMember, Member
from subnet.table import PartitionTable


@transaction.atomic
def stage_default(
    *,
    subnet: Subnet,
    keywords: Iterable[KeywordMember],
    members: Iterable[Member],
    actor: Doer,
    reason: str = "",
) -> StagedDefault | None:
    """Want Default to have these keyword members and these exceptions; its flags and multicast lines stay.

    Staging what is current already takes the staged change back, and returns None. Raises NoRevision, MoveRefused
    while a rollout changes Default or another person's change of it is staged, and InvalidTable.
    """
    person = as_person(actor)
    mirror.catch_up(subnet)
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
    table = _current(subnet).partition_table()
    wanted = replace(table.default, keywords=tuple(keywords), members=tuple(members))
    # The table refuses what no file may say, and drops exceptions that are none.
    wanted = PartitionTable(sm_ports=desired.sm_ports(subnet), default=wanted).default
    staged = _staged(subnet)
    _refuse_rolling_out(subnet)
    if staged is not None and staged.by_id != person.pk:
        raise MoveRefused(
            f"{staged.by} has already staged a change of Default at {moment(staged.at)}. "
            f"Ask {staged.by}, or discard that change first.",
            rule="another_person",
        )
    if wanted == table.default:
        if staged is not None:
            _discard(staged, actor)
        return None
    staged, _ = StagedDefault.objects.update_or_create(
        subnet=subnet,
        defaults={
            "keywords": keywords_to_json(wanted.keywords),
            "members": [[member.guid, member.membership.value] for member in wanted.members],
            "by": person,
            "at": timezone.now(),
            "reason": reason,
        },
    )
    record(
        action=Action.DEFAULT_STAGE,
        actor=as_actor(actor),
        subject=subnet_subject(subnet),
        before=_told(table.default),
        after=_told(wanted),
        reason=reason,
    )
    return staged


@transaction.atomic
def discard_default(*, subnet: Subnet, actor: Doer) -> bool:
    """Take the staged change of Default back; whether there was one. Raises MoveRefused."""
    person = as_person(actor)
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
    staged = _staged(subnet)
    if staged is None:
        return False
    if staged.by_id != person.pk and not is_operator(person):
        raise MoveRefused(
            f"{staged.by} staged this change of Default. Ask {staged.by} or an operator to discard it.",
            rule="not_yours",
        )
    _refuse_rolling_out(subnet)
    _discard(staged, actor)
    return True


def _discard(staged: StagedDefault, actor: Doer) -> None:
    before = {"keywords": staged.keywords, "members": len(staged.members), "by": str(staged.by)}
    staged.delete()
    record(action=Action.DEFAULT_DISCARD, actor=as_actor(actor), subject=subnet_subject(staged.subnet), before=before)


def _staged(subnet: Subnet) -> StagedDefault | None:
    return StagedDefault.objects.filter(subnet=subnet).select_related("by", "subnet").first()


def _current(subnet: Subnet) -> Revision:
    current = current_revision(subnet)
    if current is None:
        raise NoRevision(
            f"Subnet {subnet} has no first revision yet. Record what stands on its manager hosts before you plan."
        )
    return current


def _refuse_rolling_out(subnet: Subnet) -> None:
    rollout = running_rollout(subnet)
    if rollout is None or rollout.revision == current_revision(subnet):
        return
    if rollout.revision.partition_table().default != rollout.parent.partition_table().default:
        raise MoveRefused(
            f"A rollout that {rollout.started_by_name} started at {moment(rollout.requested_at)} is changing Default. "
            "Wait until it has ended, then try again.",
            rule="rolling_out",
        )


def _told(default: DefaultPartition) -> dict[str, object]:
    """The rule as an event freezes it; exceptions are counted, because there may be thousands."""
    return {"keywords": [str(member) for member in default.keywords], "members": len(default.members)}
