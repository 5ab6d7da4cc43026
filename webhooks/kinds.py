"""What a message can be about: which events of the trail are of which kind, and who may be told of it. Pure.

An operators' endpoint is told of everything; a tenant's only of what concerns that tenant, and then without names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext_lazy

from audit.actions import Action
from audit.models import Event


class Kind(StrEnum):
    """The words of the field `type` (docs/webhooks.md)."""

    TEST = "test"
    ROLLOUT = "rollout"
    INCIDENT = "incident"
    REQUEST = "request"
    LEAK = "leak"
    ROGUE_SM = "rogue_sm"
    ISOLATION_LOST = "isolation_lost"
    DRIFT = "drift"
    STUCK = "stuck"
    TRAIL = "trail"


WORDS: Final = {
    Kind.ROLLOUT: gettext_lazy("a rollout began or ended"),
    Kind.INCIDENT: gettext_lazy("a probe incident was opened"),
    Kind.REQUEST: gettext_lazy("a request was made or answered"),
    Kind.LEAK: gettext_lazy("tenants can reach each other"),
    Kind.ROGUE_SM: gettext_lazy("an unregistered subnet manager runs"),
    Kind.ISOLATION_LOST: gettext_lazy("the fabric lost its isolation"),
    Kind.DRIFT: gettext_lazy("something differs from the current revision"),
    Kind.STUCK: gettext_lazy("a rollout needs a person"),
    Kind.TRAIL: gettext_lazy("the audit trail is broken"),
}
OF_TENANTS: Final = (Kind.ROLLOUT, Kind.INCIDENT, Kind.REQUEST)
OF_OPERATORS: Final = tuple(WORDS)

# How grave it is: the severities of RFC 5424.
SEVERITY: Final = {
    Kind.LEAK: 1, Kind.ROGUE_SM: 1, Kind.ISOLATION_LOST: 1, Kind.TRAIL: 1, Kind.STUCK: 3, Kind.DRIFT: 4,
    Kind.INCIDENT: 4, Kind.REQUEST: 5, Kind.ROLLOUT: 6, Kind.TEST: 6,
}  # fmt: skip

_STEPS: Final = {"staging", "placing", "reloading", "reading-back", "restoring"}  # on the way, no news to a program
_BY_ACTION: Final = {
    Action.ISOLATION_LEAK: Kind.LEAK,
    Action.PROBE_INCIDENT_OPEN: Kind.INCIDENT,
    Action.TRAIL_BROKEN: Kind.TRAIL,
    Action.DRIFT_OPEN: Kind.DRIFT,
    Action.ROLLOUT_STUCK: Kind.STUCK,
}
_BY_DRIFT: Final = {"ROGUE_SM": Kind.ROGUE_SM, "ISOLATION_LOST": Kind.ISOLATION_LOST}
REQUESTS: Final = "portal:request:"  # the actions of requests, once there are such


def _kind_of_action(action: str) -> Kind | None:
    known = {one.value: kind for one, kind in _BY_ACTION.items()}.get(action)
    if known is not None:
        return known
    if action.startswith("deploy:rollout:") and action.rpartition(":")[2] not in _STEPS:
        return Kind.ROLLOUT
    return Kind.REQUEST if action.startswith(REQUESTS) else None


def kind_of(event: Event) -> Kind | None:
    """What `event` is a message about; None when it is none."""
    kind = _kind_of_action(event.action)
    if kind is Kind.DRIFT and isinstance(event.after, dict):
        return _BY_DRIFT.get(str(event.after.get("kind")), Kind.DRIFT)
    return kind


_SAID: Final = {action.value: action.words for action in Action}
FOLLOWED: Final = frozenset(action for action in Action if _kind_of_action(action.value) is not None)
TOLD_TO_SYSLOG: Final = FOLLOWED


@dataclass(frozen=True, slots=True)
class Message:
    """What one endpoint is told of one event."""

    kind: Kind
    said: dict[str, object]


# Subjects whose key is a random public id that their tenant sees elsewhere too; of others nothing is named.
_SHOWN_TO_TENANTS: Final = {"partition", "server", "request", "tenant"}


def message(event: Event, kind: Kind, *, is_for_tenant: bool) -> Message:
    """What is told of `event`. A tenant gets neither names nor numbers: whoever wants more asks the API."""
    subject: dict[str, str] = {"kind": event.subject_kind}
    if not is_for_tenant or event.subject_kind in _SHOWN_TO_TENANTS:
        subject["id"] = event.subject_key
    said: dict[str, object] = {
        "type": kind.value,
        "action": event.action,
        "at": event.at.isoformat(timespec="milliseconds"),
        "subject": subject,
    }
    if not is_for_tenant:
        subject["label"] = event.subject_label
        said |= {"event": event.number, "sentence": sentence(event), "rollout": event.rollout_key or None}
    return Message(kind, said)


def sentence(event: Event) -> str:
    """The event in words, for operators. What people typed as a reason stays out: it may hold anything."""
    return f"{event.actor_name} {_SAID.get(event.action, event.action)} {event.subject_label}"


def chosen(texts: Iterable[str], *, is_for_tenant: bool) -> list[str]:
    """Those of `texts` that are kinds an endpoint of this sort may ask for, in their order, each once."""
    offered = OF_TENANTS if is_for_tenant else OF_OPERATORS
    asked = set(texts)
    return [kind.value for kind in offered if kind.value in asked]
