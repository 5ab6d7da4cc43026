"""The filter of the inventory: words in the address become conditions, so that what one looks at can be sent to others.

    state:down tenant:acme guid:0210fa leaf:0x…10/4 trust:unconfirmed witness:disagrees partition:train rack:r12
    firmware:20.39 silent:48 name:srv-0 -state:up

Words without a colon look for a host name or a GUID, all words must hold, “-” in front turns one round.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from inventory import ownership
from inventory.models import Port, PortConflict, Server
from inventory.querysets import ServerQuerySet
from partitions.models import Membership
from subnet.errors import InvalidGUID
from subnet.guid import GUID
from subnet.witness import ABSENT, Verdict

MOST_WORDS: Final = 12
_GUID_DIGITS = frozenset("0123456789abcdefx:")


class BadWord(ValueError):
    """A word of the filter that means nothing; the text says which would."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What the address asks for: the condition, the words as they were understood, and those that were not."""

    condition: Q
    words: tuple[str, ...]
    problems: tuple[str, ...]


def parse(text: str, *, now: datetime) -> Filter:
    """The filter that `text` spells. A word that means nothing is left out and told; never raises."""
    condition = Q()
    words: list[str] = []
    problems: list[str] = []
    found = text.split()
    for word in found[:MOST_WORDS]:
        is_negated = word.startswith("-") and len(word) > 1
        name, colon, value = word.lstrip("-").partition(":") if is_negated else word.partition(":")
        try:
            if colon and name.lower() in _WORDS:
                one = _WORDS[name.lower()](value.lower(), now)
            elif colon and not _looks_like_guid(word):
                raise BadWord(f"“{name[:30]}:” is no filter. Known: {', '.join(sorted(_WORDS))}.")
            else:
                one = _anything(word.lstrip("-") if is_negated else word)
        except BadWord as problem:
            problems.append(str(problem))
            continue
        condition &= ~one if is_negated else one
        words.append(word)
    if len(found) > MOST_WORDS:
        problems.append(f"Only the first {MOST_WORDS} words count.")
    return Filter(condition, tuple(words), tuple(problems))


def filtered(servers: ServerQuerySet, found: Filter) -> ServerQuerySet:
    """Those of `servers` that the filter lets through."""
    return servers.filter(found.condition)


def _has(*conditions: Q, **fields: Any) -> Q:
    """Servers with an InfiniBand port like this; a subquery, so that no row is counted twice."""
    infiniband = Port.objects.filter(link_layer=Port.LinkLayer.INFINIBAND, hca__server=OuterRef("pk"))
    return Q(Exists(infiniband.filter(*conditions, **fields)))


def _state(value: str, now: datetime) -> Q:
    """By what the server says, and by what the fabric shows: a port that the last look missed is down."""
    gone = Q(seen_state=ABSENT)
    states: Mapping[str, Q] = {
        "up": Q(state="ACTIVE") & ~gone,
        "down": Q(state="DOWN") | gone,
        "init": Q(state__in=("INIT", "ARMED")),
        "absent": gone,
        "missing": Q(missing_since__isnull=False),
    }
    return _has(_one_of("state", value, states))


def _trust(value: str, now: datetime) -> Q:
    if value == "conflict":
        disputed = PortConflict.objects.filter(closed_at=None)
        return Q(Exists(disputed.filter(port__hca__server=OuterRef("pk")))) | Q(
            Exists(disputed.filter(claimed_by=OuterRef("pk")))
        )
    standing = {"confirmed": ownership.trusted(), "unconfirmed": ownership.untrusted()}
    standing |= {how: Q(confirmed_how=how) for how in (ownership.PERSON, ownership.WITNESSED, ownership.ENROLLED)}
    return _has(_one_of("trust", value, standing, also=("conflict",)))


def _witness(value: str, now: datetime) -> Q:
    verdicts = {one.value: Q(testimony=one.value) for one in Verdict if one is not Verdict.UNREGISTERED}
    return _has(_one_of("witness", value, verdicts))


def _guid(value: str, now: datetime) -> Q:
    part = _part_of_guid(value)
    mine = Q(guid__contains=part) | Q(hca__node_guid__contains=part) | Q(hca__system_image_guid__contains=part)
    return _has(mine)


def _leaf(value: str, now: datetime) -> Q:
    guid, _, port = value.partition("/")
    condition = Q(leaf_guid__contains=_part_of_guid(guid))
    if port:
        if not (port.isascii() and port.isdecimal() and len(port) <= 3):
            raise BadWord("Write leaf: with a switch's GUID or a part of it, and a port after “/”: leaf:0x…10/4.")
        condition &= Q(leaf_port=int(port))
    return _has(condition)


def _tenant(value: str, now: datetime) -> Q:
    """In a partition of the tenant now, or labelled as the tenant's; `none` is in nobody's."""
    held = Membership.objects.filter(port__hca__server=OuterRef("pk"), partition__tenant__isnull=False)
    if value == "none":
        return ~Q(Exists(held)) & Q(tenant=None)
    return Q(Exists(held.filter(partition__tenant__slug=value))) | Q(tenant__slug=value)


def _partition(value: str, now: datetime) -> Q:
    held = Membership.objects.filter(port__hca__server=OuterRef("pk"))
    return ~Q(Exists(held)) if value == "none" else Q(Exists(held.filter(partition__name__icontains=value)))


def _silent(value: str, now: datetime) -> Q:
    if not (value.isascii() and value.isdecimal() and 1 <= len(value) <= 5):
        raise BadWord("Write silent: with a number of hours: silent:24.")
    return Q(reported_at=None) | Q(reported_at__lt=now - timedelta(hours=int(value)))


def _label(name: str) -> Callable[[str, datetime], Q]:
    def condition(value: str, now: datetime) -> Q:
        return Q(**{name: ""}) if value == "none" else Q(**{f"{name}__icontains": value})

    return condition


def _anything(word: str) -> Q:
    named = Q(hostname__icontains=word)
    if not _looks_like_guid(word):
        return named
    try:
        part = _part_of_guid(word.lower())
    except BadWord:
        return named
    return named | _has(guid__contains=part)


def _part_of_guid(value: str) -> str:
    """The digits to look for: a whole GUID in any spelling, or a part of one."""
    try:
        return str(GUID(value))
    except InvalidGUID:
        part = value.removeprefix("0x").replace(":", "")
    if not part or set(part) - _GUID_DIGITS or len(part) > 16:
        raise BadWord(f"“{value[:30]}” is no part of a GUID.")
    return part


def _looks_like_guid(word: str) -> bool:
    return not set(word.lower()) - _GUID_DIGITS


def _one_of(name: str, value: str, known: Mapping[str, Q], also: tuple[str, ...] = ()) -> Q:
    if value not in known:
        raise BadWord(f"“{name}:{value[:30]}” is no filter. Write {name}: with {', '.join([*known, *also])}.")
    return known[value]


_WORDS: Final[Mapping[str, Callable[[str, datetime], Q]]] = {
    "state": _state,
    "trust": _trust,
    "witness": _witness,
    "guid": _guid,
    "leaf": _leaf,
    "tenant": _tenant,
    "partition": _partition,
    "silent": _silent,
    "name": lambda value, now: Q(hostname__icontains=value),
    "rack": _label("rack"),
    "unit": _label("unit"),
    "serial": _label("serial"),
    "firmware": lambda value, now: Q(Exists(Server.objects.filter(pk=OuterRef("pk"), hcas__firmware__icontains=value))),
}
