"""Which actions of the trail a tenant is told of, and under which word. What is not named here it never sees.

What the provider stages, looks at and registers is not the tenant's: it would tell of servers that are not its own yet,
and of work for others. So some actions are told only when the tenant's own people did them.
"""

from enum import StrEnum
from typing import Final

from audit.actions import Action


class Kind(StrEnum):
    """What the filter *what* offers, and `kind` of the API."""

    MOVES = "moves"
    ROLLOUTS = "rollouts"
    PARTITIONS = "partitions"
    REQUESTS = "requests"
    PEOPLE = "people"
    TOKENS = "tokens"
    EVIDENCE = "evidence"
    WEBHOOKS = "webhooks"
    TERMS = "terms"


# Whoever did it.
ALWAYS: Final = {
    Kind.MOVES: frozenset({Action.HCA_REPLACE, Action.HCA_REPLACE_UNDO}),
    Kind.PARTITIONS: frozenset({
        Action.PARTITION_CREATE, Action.PARTITION_ADOPT, Action.PARTITION_RENAME, Action.PARTITION_RETIRE,
    }),
    Kind.REQUESTS: frozenset({
        Action.REQUEST_ASK, Action.REQUEST_COMMENT, Action.REQUEST_WITHDRAW, Action.REQUEST_APPROVE,
        Action.REQUEST_DECLINE, Action.REQUEST_REOPEN, Action.REQUEST_DONE,
    }),
    Kind.PEOPLE: frozenset({Action.ROLE_GIVE, Action.ROLE_TAKE}),
    Kind.EVIDENCE: frozenset({
        Action.EVIDENCE_ASK, Action.EVIDENCE_SIGN, Action.EVIDENCE_GIVE_UP, Action.TRAIL_EXPORT,
    }),
    Kind.WEBHOOKS: frozenset({
        Action.WEBHOOK_CREATE, Action.WEBHOOK_GIVE_UP, Action.WEBHOOK_OFF, Action.WEBHOOK_ON, Action.WEBHOOK_REMOVE,
        Action.WEBHOOK_SECRET, Action.WEBHOOK_TEST,
    }),
    Kind.TERMS: frozenset({
        Action.TENANT_CREATE, Action.TENANT_POLICY, Action.TENANT_SUSPEND, Action.TENANT_RESUME, Action.PROBE_CONSENT,
    }),
}  # fmt: skip
# When the tenant's own people did it.
OF_OWN: Final = {
    Kind.MOVES: frozenset({Action.MEMBER_STAGE, Action.MEMBER_DISCARD, Action.MEMBER_UNDO}),
    Kind.TOKENS: frozenset({Action.TOKEN_CREATE, Action.TOKEN_REVOKE}),
}
# Of a turn that did not go through; the others are told as the rollout that they are.
OF_TURNS: Final = frozenset({Action.TURN_END})
TURNS_TOLD: Final = ("OPERATOR", "FAILED")
# Of rollouts that were to change what is the tenant's (`RolloutPart`); their events name no tenant.
OF_ROLLOUTS: Final = frozenset({
    Action.ROLLOUT_START, Action.ROLLOUT_PROVEN, Action.ROLLOUT_REFUSED, Action.ROLLOUT_CANCELLED,
    Action.ROLLOUT_RESTORED, Action.ROLLOUT_UNPROVEN, Action.ROLLOUT_DEGRADED, Action.ROLLOUT_STUCK,
})  # fmt: skip

# What was written there was written to the tenant; any other reason of the provider's is its own business.
SAID_TO_TENANT: Final = ALWAYS[Kind.REQUESTS] | {Action.WEBHOOK_GIVE_UP, Action.WEBHOOK_OFF}

_KIND_OF: Final[dict[str, Kind]] = {
    action.value: kind
    for kinds in (ALWAYS, OF_OWN, {Kind.MOVES: OF_TURNS}, {Kind.ROLLOUTS: OF_ROLLOUTS})
    for kind, actions in kinds.items()
    for action in actions
}


def kind_of(action: str) -> Kind | None:
    """The kind of an action; None for one that is never told."""
    return _KIND_OF.get(action)


def actions_of(kind: Kind) -> list[str]:
    """The actions of a kind."""
    return sorted(action for action, one in _KIND_OF.items() if one is kind)


def every(kinds: dict[Kind, frozenset[Action]]) -> list[str]:
    """All actions of several kinds."""
    return sorted(action.value for actions in kinds.values() for action in actions)
