"""Conflicts: two servers claim one port GUID, and a person decides. Each decision is made once, whoever comes first."""

from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory import history, ownership
from inventory.errors import ConflictDecided, DecisionRefused
from inventory.history import Kind, Witness
from inventory.models import HCA, Port, PortConflict, Server
from inventory.races import settle
from inventory.subjects import port_subject, server_subject
from subnet.errors import InvalidGUID
from subnet.guid import GUID

REJECTED = "rejected"  # the claim is wrong, and not news when it is made again
MOVED = "moved"  # the card is in the claimant now
CLONED = "cloned"  # the claimant is a copy of the other machine, or carries a copy of its GUID
RECONSIDERED = "reconsidered"  # was rejected once; the same claim opens a conflict again


def reject_claim(*, conflict: PortConflict, actor: Actor, reason: str = "") -> None:
    """Decide that the claim is wrong: the port stays where it is, may move again, and the same claim opens no more.

    Without this a tenant who is root could stop another's server by naming its GUID again and again. One that is
    rejected already stays as it is. Raises ConflictDecided when it was decided otherwise.
    """

    def change() -> None:
        row = _held(conflict)
        if row.decision == REJECTED:
            return
        _refuse_decided(row)
        _close([row], REJECTED, actor, reason)

    settle(change)


def reconsider_claim(*, conflict: PortConflict, actor: Actor, reason: str = "") -> None:
    """Take back that a claim was rejected: the next report that makes it opens a conflict again."""

    def change() -> None:
        row = _held(conflict)
        if row.decision != REJECTED:
            raise DecisionRefused("Only a claim that was rejected can be reconsidered.")
        _close([row], RECONSIDERED, actor, reason)

    settle(change)


def move_card(*, conflict: PortConflict, actor: Actor, reason: str = "") -> tuple[Port, ...]:
    """Decide that the card is in the claimant now: its HCA with all its ports belongs to that server; give the ports.

    A person has looked at both machines, so the ports are confirmed there; where they are cabled is learnt anew.
    What becomes of their memberships is for `partitions.operations.move_card`, which is the one to call. Raises
    ConflictDecided; DecisionRefused when no server has the port, or the claim names another HCA.
    """

    def change() -> tuple[Port, ...]:
        row = _held(conflict)
        _refuse_decided(row)
        card, claimant, former = _card_of(row)
        ports = list(Port.objects.select_for_update().filter(hca=card).order_by("guid"))
        now = timezone.now()
        device = str(row.claim.get("device") or card.device)[:64]
        HCA.objects.filter(pk=card.pk).update(server=claimant, device=device)
        Port.objects.filter(pk__in=[port.pk for port in ports]).update(
            confirmed_at=now, confirmed_how=ownership.PERSON, missing_since=None,
            home_leaf_guid=None, home_leaf_port=None, testimony="", points=[],
        )  # fmt: skip
        Server.objects.filter(pk=claimant.pk).update(report_digest="")  # so that its next report is looked at whole
        what = card.node_guid or device
        history.keep(
            history.entry(Kind.CARD, Witness.PERSON, what=what, before=former, after=claimant, at=now, server=server)
            for server in (former, claimant)
        )
        same = PortConflict.objects.filter(closed_at=None, claimed_by=claimant, port__in=ports).exclude(pk=row.pk)
        _close(
            [row, *same.select_related("port__hca__server", "claimed_by")],
            MOVED,
            actor,
            reason,
            after={"hca": str(what), "from": former.public_id, "ports": [str(port.guid) for port in ports]},
        )
        return tuple(Port.objects.filter(pk__in=[port.pk for port in ports]).select_related("hca__server"))

    return settle(change)


def declare_clone(*, conflict: PortConflict, actor: Actor, reason: str = "") -> int:
    """Decide that the claimant is a clone: it must enrol anew, all its open claims end, and the port is unconfirmed.

    Which of the two machines the fabric shows is not known while both carry the GUID, so the card's ports join nothing
    new until they are confirmed again; memberships stay. Gives how many claims ended. Raises ConflictDecided.
    """

    def change() -> int:
        row = _held(conflict)
        _refuse_decided(row)
        clone = row.claimed_by
        open_claims = PortConflict.objects.filter(closed_at=None, claimed_by=clone).exclude(pk=row.pk)
        rows = [row, *open_claims.select_related("port__hca__server", "claimed_by")]
        ports = sorted({one.port.guid for one in rows})
        revoked = clone.credentials.filter(revoked_at=None).update(revoked_at=timezone.now())
        unconfirmed = Port.objects.filter(guid__in=ports, confirmed_at__isnull=False)
        unconfirmed.update(confirmed_at=None, confirmed_how="", home_leaf_guid=None, home_leaf_port=None)
        _close(rows, CLONED, actor, reason, after={"unconfirmed": [str(guid) for guid in ports]})
        if revoked:
            record(
                action=Action.SERVER_CREDENTIAL_REVOKE,
                actor=actor,
                subject=server_subject(clone),
                after={"revoked": revoked, "why": "cloned machine"},
                reason=reason,
            )
        return len(rows)

    return settle(change)


def _held(conflict: PortConflict) -> PortConflict:
    """The row as it is now, held until the commit."""
    rows = PortConflict.objects.select_related("port__hca__server", "claimed_by").select_for_update(of=("self",))
    return rows.get(pk=conflict.pk)


def _refuse_decided(row: PortConflict) -> None:
    if row.closed_at is not None:
        raise ConflictDecided(
            f"The conflict about port {row.port} was decided at {row.closed_at:%Y-%m-%d %H:%M} UTC: {row.decision}"
            f"{f' by {row.decided_by}' if row.decided_by else ''}. Nothing was changed now."
        )


def _card_of(row: PortConflict) -> tuple[HCA, Server, Server]:
    """The card that is claimed, by whom, and whose it is so far; raise DecisionRefused if it is not one card."""
    card, claimant = row.port.hca, row.claimed_by
    if card is None:
        raise DecisionRefused(
            f"No server has port {row.port}, so its card cannot have moved. It runs a subnet manager, or is known in "
            "another subnet. Reject the claim, or mend that first."
        )
    claimed = _claimed_node(row)
    if claimed is not None and card.node_guid is not None and claimed != card.node_guid:
        raise DecisionRefused(
            f"{claimant} claims port {row.port} on HCA {claimed}, and {card.server} has it on HCA {card.node_guid}: "
            "that is not one card that has moved. Reject the claim, or decide that the machine is cloned."
        )
    return card, claimant, card.server


def _claimed_node(row: PortConflict) -> GUID | None:
    try:
        return GUID(str(row.claim["node_guid"])) if row.claim.get("node_guid") else None
    except InvalidGUID:
        return None


def _close(
    rows: list[PortConflict], decision: str, actor: Actor, reason: str, *, after: dict[str, object] | None = None
) -> None:
    """Write the decision on all of `rows`, one event for each. The last statement of each decision but the clone's."""
    now = timezone.now()
    for row in rows:
        row.closed_at, row.decision, row.decided_by, row.reason = now, decision, actor.name[:150], reason
        row.save(update_fields=["closed_at", "decision", "decided_by", "reason"])
    for row in rows:
        record(
            action=Action.PORT_CONFLICT_DECIDE,
            actor=actor,
            subject=port_subject(row.port),
            after={"decision": decision, "claimed_by": row.claimed_by.public_id, **(after or {})},
            reason=reason,
        )
