"""Subnets: create one, say how far FabricUI may go there, freeze and unfreeze it."""

import re

from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import AlreadyThere, InventoryError, NotQualified
from inventory.guards import why_not_write
from inventory.models import DEFAULT_PREFIX, Subnet
from inventory.races import settle
from inventory.subjects import subnet_subject
from subnet.guid import GUID

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")


def create_subnet(*, name: str, actor: Actor, prefix: str = DEFAULT_PREFIX) -> Subnet:
    """Create subnet `name` in mode *observe*; its name stands in the header of every file that is rendered for it.

    `prefix` is OpenSM's subnet_prefix, in any spelling of a GUID. Raises AlreadyThere, InventoryError, InvalidGUID.
    """
    if not _NAME.match(name):
        raise InventoryError(f"“{name[:60]}” cannot name a subnet. Use 1 to 40 letters, digits, “-” or “_”.")
    upper = GUID(prefix)

    def change() -> Subnet:
        if Subnet.objects.filter(name=name).exists():
            raise AlreadyThere(f"There is a subnet called {name} already. Choose another name.")
        subnet = Subnet.objects.create(name=name, prefix=upper)
        after = {"name": name, "mode": subnet.mode, "prefix": str(upper)}
        record(action=Action.SUBNET_CREATE, actor=actor, subject=subnet_subject(subnet), after=after)
        return subnet

    return settle(change)


def set_mode(*, subnet: Subnet, mode: str, actor: Actor, reason: str = "") -> Subnet:
    """Let FabricUI go as far as `mode` in `subnet`, and no further.

    *Write* needs that no guard speaks against it (`inventory/guards.py`): a valid, signed qualification report.
    Raises NotQualified with the sentence of the guard, InventoryError for a mode there is not.
    """
    if mode not in Subnet.Mode.values:
        raise InventoryError(f"“{mode[:20]}” is no mode. Choose {', '.join(Subnet.Mode.values)}.")

    def change() -> Subnet:
        row = Subnet.objects.select_for_update().get(pk=subnet.pk)
        before = {"mode": row.mode}
        why = why_not_write(row) if mode == Subnet.Mode.WRITE else ""
        if why:
            raise NotQualified(why)
        row.mode = mode
        row.save(update_fields=["mode"])
        after = {"mode": row.mode}
        record(
            action=Action.SUBNET_MODE,
            actor=actor,
            subject=subnet_subject(row),
            before=before,
            after=after,
            reason=reason,
        )
        return row

    return _refresh(subnet, settle(change))


def freeze(*, subnet: Subnet, actor: Actor, reason: str) -> Subnet:
    """Stop every new rollout in `subnet` until somebody unfreezes it; a frozen subnet stays as it is.

    Raises InventoryError without a reason: whoever meets the freeze must learn why.
    """
    if not reason.strip():
        raise InventoryError("A freeze needs a reason: whoever meets it must learn why.")

    def change() -> Subnet:
        row = Subnet.objects.select_for_update().get(pk=subnet.pk)
        if row.frozen_at is not None:
            return row
        row.frozen_at, row.frozen_reason = timezone.now(), reason.strip()
        row.save(update_fields=["frozen_at", "frozen_reason"])
        record(action=Action.SUBNET_FREEZE, actor=actor, subject=subnet_subject(row), reason=reason.strip())
        return row

    return _refresh(subnet, settle(change))


def unfreeze(*, subnet: Subnet, actor: Actor, reason: str = "") -> Subnet:
    """Let rollouts start again in `subnet`; one that is not frozen stays as it is."""

    def change() -> Subnet:
        row = Subnet.objects.select_for_update().get(pk=subnet.pk)
        if row.frozen_at is None:
            return row
        before = {"frozen_reason": row.frozen_reason}
        row.frozen_at, row.frozen_reason = None, ""
        row.save(update_fields=["frozen_at", "frozen_reason"])
        record(action=Action.SUBNET_UNFREEZE, actor=actor, subject=subnet_subject(row), before=before, reason=reason)
        return row

    return _refresh(subnet, settle(change))


def _refresh(subnet: Subnet, row: Subnet) -> Subnet:
    """The caller's own object, brought up to what the transaction wrote."""
    subnet.mode = row.mode
    subnet.frozen_at, subnet.frozen_reason = row.frozen_at, row.frozen_reason
    return subnet
