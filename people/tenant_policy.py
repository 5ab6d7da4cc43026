"""What a tenant's people may do by themselves, and how much of it: set by an operator, recorded, read by the portal."""

from django.db import transaction

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from people.actor import tenant_subject
from people.errors import BadPolicy
from people.models import Tenant

MOST = 10_000  # of anything: more is a slip of the hand


@transaction.atomic
def set_tenant_policy(
    *,
    tenant: Tenant,
    moves: str,
    most_servers: int | None,
    most_partitions: int,
    most_rollouts_per_hour: int,
    actor: Actor,
    reason: str = "",
) -> Tenant:
    """Set the policy of `tenant`. No change, no event.

    `moves` is of Tenant.Moves; `most_servers` None: as many as it asks for.

    What is staged already follows the new policy. Raises BadPolicy.
    """
    wanted = {
        "moves": moves,
        "most_servers": most_servers,
        "most_partitions": most_partitions,
        "most_rollouts_per_hour": most_rollouts_per_hour,
    }
    if moves not in Tenant.Moves.values:
        raise BadPolicy(f"“{moves[:20]}” is no policy for moves. Choose one of {', '.join(Tenant.Moves.values)}.")
    for name, number in wanted.items():
        if isinstance(number, int) and not 0 <= number <= MOST:
            raise BadPolicy(f"{name.replace('_', ' ').capitalize()} is {number}. Give a number from 0 to {MOST}.")
    held = Tenant.objects.select_for_update().get(pk=tenant.pk)
    before = {name: getattr(held, name) for name in wanted}
    if before == wanted:
        return held
    for name, value in wanted.items():
        setattr(held, name, value)
    held.save(update_fields=list(wanted))
    changed = [name for name in wanted if before[name] != wanted[name]]
    record(
        action=Action.TENANT_POLICY,
        actor=actor,
        subject=tenant_subject(held),
        before={name: before[name] for name in changed},
        after={name: wanted[name] for name in changed},
        reason=reason,
        tenant_key=held.public_id,
    )
    return held
