"""One event as its tenant reads it: who, what, about which of its things. The provider's people have no names.

Made of what the tenant's own rows say, never of an event's raw values: those name partitions as the file does, people
of the provider, and revisions by their number. Sentences are in the language that is active; files take English.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext, ngettext

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from partitions.models import Partition
from people.models import Tenant
from portal import words
from portal.activity.found import FABRICUI, PROVIDER
from portal.activity.kinds import OF_ROLLOUTS, SAID_TO_TENANT, Kind, kind_of
from portal.models import RolloutPart
from subnet.pkey import PKey

_ACTIONS: Final = {action.value: action for action in Action}
_PKEY: Final = re.compile(r"\((0x[0-9a-f]{4})\)\Z")


@dataclass(frozen=True, slots=True)
class Who:
    """Who acted: `kind` is person, provider or fabricui; `id` a person's public id, else ""."""

    kind: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class About:
    """What it was done to: `id` is its public id, "" for what has none that the tenant knows."""

    kind: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the activity. `id` is the event's hash, by which the provider's trail names it too."""

    id: str
    at: datetime
    kind: Kind
    action: str
    who: Who
    words: str  # English; between who and about
    about: About
    details: tuple[str, ...]
    reason: str


def told(tenant: Tenant, events: Iterable[Event], *, people: Mapping[str, str]) -> list[Told]:
    """The events of `tenant` as lines; `people` are its own. What is never told makes no line. Two queries."""
    rows = [(event, kind) for event in events if (kind := kind_of(event.action)) is not None]
    book = _Book.of(tenant, [event for event, _ in rows], people)
    return [book.line(event, kind) for event, kind in rows]


@dataclass(frozen=True, slots=True)
class _Book:
    """What the tenant calls its things."""

    tenant: Tenant
    people: Mapping[str, str]
    by_id: Mapping[str, Partition]
    by_pkey: Mapping[str, str]  # what it calls the partitions that it has or shares
    parts: Mapping[str, RolloutPart]

    @classmethod
    def of(cls, tenant: Tenant, events: Sequence[Event], people: Mapping[str, str]) -> "_Book":
        own = list(Partition.objects.filter(tenant=tenant).order_by("pk").defer("flags", "keywords", "mgids"))
        rollouts = {event.rollout_key for event in events if event.action in OF_ROLLOUTS}
        found = RolloutPart.objects.filter(tenant=tenant, rollout__public_id__in=rollouts).select_related("rollout")
        parts = {part.rollout.public_id: part for part in found.defer("rollout__read_back")}
        return cls(
            tenant, people, {one.public_id: one for one in own}, {str(PKey(one.pkey)): one.called for one in own}, parts
        )

    def line(self, event: Event, kind: Kind) -> Told:
        action = _ACTIONS[event.action]
        who = self._who(event)
        is_said = who.kind != PROVIDER or action in SAID_TO_TENANT
        return Told(
            event.hash, event.at, kind, event.action, who, action.words, self._about(event),
            tuple(self._details(action, event)), event.reason if is_said else "",
        )  # fmt: skip

    def _who(self, event: Event) -> Who:
        if event.actor_key == SYSTEM.key:
            return Who(FABRICUI, "", SYSTEM.name)
        if event.actor_key in self.people:
            return Who("person", event.actor_key, event.actor_name)
        return Who(PROVIDER, "", gettext("the operator"))

    def _about(self, event: Event) -> About:
        if event.action in OF_ROLLOUTS:
            return About("rollout", "", gettext("the rollout of your changes"))
        kind, key, label = event.subject_kind, event.subject_key, event.subject_label
        if kind == "partition":
            row = self.by_id.get(key)
            return About(kind, key, self._called(label, row))
        if kind == "person":
            return About(kind, key, self.people.get(key) or gettext("somebody of your provider"))
        return About(kind, key, label)

    def _called(self, name: str, row: Partition | None) -> str:
        """What the tenant called a partition when the file called it `name`."""
        if row is not None and row.name == name:
            return row.called
        return name.removeprefix(f"{self.tenant.slug}.")

    def _details(self, action: Action, event: Event) -> Iterable[str]:
        before, after = _mapping(event.before), _mapping(event.after)
        if action in OF_ROLLOUTS:
            yield from self._changes(event.rollout_key)
        elif action is Action.MEMBER_STAGE:
            was, wanted = self._partitions(before), self._partitions(after)
            yield gettext("from %(before)s to %(after)s") % {"before": was, "after": wanted}
        elif action is Action.PARTITION_RENAME:
            row = self.by_id.get(event.subject_key)
            yield gettext("called %(name)s from then on") % {"name": self._called(str(after.get("name", "")), row)}
        elif action in (Action.ROLE_GIVE, Action.ROLE_TAKE):
            yield gettext("from %(before)s to %(after)s") % {
                "before": _role(before.get("role")), "after": _role(after.get("role")),
            }  # fmt: skip
        elif action is Action.TOKEN_CREATE:
            yield ", ".join(str(scope) for scope in after.get("scopes", ()))
        elif action is Action.WEBHOOK_CREATE:
            yield str(after.get("host", ""))
        elif action is Action.TURN_END:
            yield words.sentence(str(after.get("why", "")))
        elif action is Action.TENANT_POLICY:
            yield from (_term(name, before.get(name), value) for name, value in after.items())

    def _changes(self, rollout: str) -> Iterable[str]:
        """By partition, how many ports joined and left it."""
        part = self.parts.get(rollout)
        counts: dict[str, list[int]] = {}
        for change in part.changes if part is not None else ():
            count = counts.setdefault(str(change["name"]), [0, 0, 0])
            count[0 if change["before"] is None else 1 if change["after"] is None else 2] += 1
        for name, (joined, left, other) in counts.items():
            several = [
                ngettext("%(n)d port joined", "%(n)d ports joined", joined) % {"n": joined} if joined else "",
                ngettext("%(n)d port left", "%(n)d ports left", left) % {"n": left} if left else "",
                ngettext("%(n)d port with another membership", "%(n)d ports with another membership", other)
                % {"n": other} if other else "",
            ]  # fmt: skip
            yield f"{name}: {', '.join(one for one in several if one)}"

    def _partitions(self, values: Mapping[str, Any]) -> str:
        """Those of a list that the tenant has, under its own names."""
        found = (_PKEY.search(str(label)) for label in values.get("partitions", ()))
        names = [self.by_pkey[match[1]] for match in found if match is not None and match[1] in self.by_pkey]
        return ", ".join(names) or gettext("no partition of yours")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _role(role: object) -> str:
    return {"VIEWER": gettext("viewer"), "MEMBER": gettext("member"), "ADMIN": gettext("administrator")}.get(
        str(role), gettext("no role")
    )


def _term(name: str, before: object, after: object) -> str:
    called = {
        "moves": gettext("moves"), "most_servers": gettext("servers"), "most_partitions": gettext("partitions"),
        "most_rollouts_per_hour": gettext("rollouts in an hour"),
    }  # fmt: skip
    return gettext("%(what)s: from %(before)s to %(after)s") % {
        "what": called.get(name, name), "before": _value(before), "after": _value(after),
    }  # fmt: skip


def _value(value: object) -> str:
    moves = {"WAIT": gettext("wait for an operator"), "ALONE": gettext("roll out by themselves when the plan is safe")}
    return gettext("any number") if value is None else moves.get(str(value), str(value))
