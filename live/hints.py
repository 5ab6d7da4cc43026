"""What an event of the trail hints at, and for whom. Pure: no database, no broker.

A hint is a kind of thing and at most its public id, empty for any of that kind; it never holds data. A page that
depends on the kind asks the server again and is shown what its person may see then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from audit.actions import Action
from audit.models import Event

PROVIDER: Final = "provider"  # the audience of operators and auditors
MOST_OF_A_KIND: Final = 20  # more things than that in one batch are told as “any of that kind”


def tenant_audience(public_id: str) -> str:
    """The audience of the people of the tenant with this public id."""
    return f"tenant:{public_id}"


class Kind(StrEnum):
    """What a page may depend on: the words of `data-live` (docs/live.md)."""

    STAGED = "staged"
    PARTITION = "partition"
    ROLLOUT = "rollout"
    DRIFT = "drift"
    MANAGER = "manager"
    SUBNET = "subnet"
    LOOK = "look"
    SERVER = "server"
    CONFLICT = "conflict"
    ENROLMENT = "enrolment"
    PROBE = "probe"
    INCIDENT = "incident"
    TRAIL = "trail"
    TENANT = "tenant"
    REQUEST = "request"
    EVIDENCE = "evidence"


@dataclass(frozen=True, slots=True, order=True)
class Hint:
    """Something of this kind changed: the thing with this public id, or any ("")."""

    kind: Kind
    public_id: str


type Batch = Mapping[str, frozenset[Hint]]  # audience → hints

# By the beginning of an action's name; the longest that fits counts. None: no page shows it live.
_KINDS: Final[dict[str, Kind | None]] = {
    "audit:": None,
    "audit:trail:": Kind.TRAIL,
    "audit:trail:export": None,
    "webhooks:": None,
    "people:": None,
    "people:tenant:": Kind.TENANT,
    "inventory:": Kind.SERVER,
    "inventory:subnet:": Kind.SUBNET,
    "inventory:manager-host:": Kind.MANAGER,
    "inventory:enrolment-token:": Kind.ENROLMENT,
    "inventory:server:report-refused": None,  # it changes nothing, and whoever sends it could keep every page busy
    "inventory:server:enrol-refused": None,
    "inventory:port:conflict": Kind.CONFLICT,
    "partitions:": Kind.STAGED,
    "partitions:partition:": Kind.PARTITION,
    "partitions:partition:empty": Kind.STAGED,
    "partitions:member:settle": Kind.PARTITION,
    "partitions:server:": Kind.SERVER,
    "portal:": None,
    "portal:request:": Kind.REQUEST,
    "portal:storage:": Kind.REQUEST,
    "portal:evidence:": Kind.EVIDENCE,
    "portal:turn:": Kind.STAGED,
    "deploy:": Kind.ROLLOUT,
    "deploy:drift:": Kind.DRIFT,
    "deploy:host-check:": Kind.MANAGER,
    "deploy:manager-key:": Kind.MANAGER,
    "deploy:observation:": Kind.LOOK,
    "deploy:qualification:": Kind.SUBNET,
    "probes:": Kind.PROBE,
    "probes:incident:": Kind.INCIDENT,
    "probes:isolation:leak": Kind.INCIDENT,
}

# A tenant learns that something of theirs changed. What the provider stages, looks at and rolls out is not theirs.
_OF_TENANTS: Final = frozenset({Kind.PARTITION, Kind.SERVER, Kind.PROBE, Kind.INCIDENT, Kind.REQUEST, Kind.EVIDENCE})


def kind_of(action: str) -> Kind | None:
    """What `action` is a change of; None when no page shows that live."""
    fitting = max((known for known in _KINDS if action.startswith(known)), key=len, default=None)
    return None if fitting is None else _KINDS[fitting]


# What the follower is handed.
FOLLOWED: Final = frozenset(action for action in Action if kind_of(action.value) is not None)


def hints_of(events: Iterable[Event]) -> Batch:
    """What `events` mean for each audience, each hint once; many of a kind melt into one without an id."""
    found: dict[str, set[Hint]] = defaultdict(set)
    for event in events:
        kind = kind_of(event.action)
        if kind is None:
            continue
        # Subjects of these names have a random public id; others are named by a GUID, a number or a name.
        hint = Hint(kind, event.subject_key if event.subject_kind == kind.value else "")
        found[PROVIDER].add(hint)
        if event.tenant_key and kind in _OF_TENANTS:
            found[tenant_audience(event.tenant_key)].add(hint)
    return {audience: _melted(hints) for audience, hints in found.items()}


def _melted(hints: set[Hint]) -> frozenset[Hint]:
    by_kind: dict[Kind, set[Hint]] = defaultdict(set)
    for hint in hints:
        by_kind[hint.kind].add(hint)
    return frozenset(
        hint for kind, same in by_kind.items() for hint in (same if len(same) <= MOST_OF_A_KIND else {Hint(kind, "")})
    )
