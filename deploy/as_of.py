"""As of then: which revision was current at a moment, and what each port's P_Key table held.

Which revision was current is told by the chained events; its bytes are vouched for by the digest in the event that
proposed it. What ports held is told by the looks around the moment (`deploy/table_history.py`): a look proves what
it read and nothing in between, so each port says how sure its table is. `told` reaches no database.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Q

from audit.actions import Action
from audit.models import Event
from deploy import table_history
from deploy.models import Revision, Rollout, TableChanges
from deploy.table_history import Seen
from inventory.models import Subnet
from subnet.errors import SubnetError
from subnet.guid import GUID
from subnet.partitions_conf import digest, table_digest
from subnet.table import PartitionTable

_CURRENT_AT_ONCE = (Action.REVISION_PROPOSE, Action.REVISION_ADOPT)


class Certainty(StrEnum):
    """How sure a port's table at a moment is."""

    HELD = "held"  # the looks before and after it read the same
    LAST_SEEN = "last seen"  # so the look before it read; nobody has looked since
    CHANGED = "changed"  # the looks before and after it differ: it changed some time in between
    UNREAD = "unread"  # it did not answer the look before; the table, if any, is of an earlier one
    AWAY = "away"  # it was not on the fabric, or its link was not armed
    UNKNOWN = "unknown"  # nobody had looked yet


@dataclass(frozen=True, slots=True)
class PortThen:
    """One port at a moment. `table` is index → 16-bit entry as the look before read it; None when it says nothing.

    `later` is what the look after it read, where that differs.
    """

    guid: GUID
    certainty: Certainty
    table: Mapping[int, int] | None
    later: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RevisionThen:
    """The revision that was current, since when, and the event that says so.

    `is_vouched`: the stored bytes and table are those whose digests stand in the event of its making.
    """

    revision: Revision
    since: datetime
    event: int
    is_vouched: bool
    table: PartitionTable | None  # None when what is stored can be no table: somebody altered it


@dataclass(frozen=True, slots=True)
class AsOf:
    """Everything that deploy knows of a subnet at a moment. The looks are given by when they ended."""

    at: datetime
    current: RevisionThen | None
    ports: Mapping[GUID, PortThen]
    looked_before: datetime | None
    looked_after: datetime | None
    rollout: Rollout | None  # that had begun and not ended: the fabric may have been between two revisions


def as_of(subnet: Subnet, at: datetime) -> AsOf:
    """What was at `at`. A dozen queries; some 100 ms for 4,000 ports, most of it for the revision's table."""
    before, changes, after = _around(subnet, at)
    rollout = (
        Rollout.objects.filter(subnet=subnet, requested_at__lte=at)
        .filter(Q(finished_at__isnull=True) | Q(finished_at__gt=at))
        .select_related("revision")
        .order_by("-id")
        .first()
    )
    return AsOf(
        at=at,
        current=current_at(subnet, at),
        ports=told(changes, None if after is None else (after.is_base, table_history.unpacked(bytes(after.data)))),
        looked_before=None if before is None else before.observation.finished_at,
        looked_after=None if after is None else after.observation.finished_at,
        rollout=rollout,
    )


def current_at(subnet: Subnet, at: datetime) -> RevisionThen | None:
    """The revision that was current at `at`, by the newest event before it that made one so."""
    proven = _newest_proven(subnet, at)
    first = _newest_at_once(subnet, at)
    found = max((pair for pair in (proven, first) if pair is not None), key=lambda pair: pair[0].number, default=None)
    if found is None:
        return None
    event, revision = found
    made = Event.objects.filter(
        subject_kind="revision", subject_key=revision.public_id, action__in=_CURRENT_AT_ONCE
    ).first()
    try:
        table = revision.partition_table()
    except (SubnetError, KeyError, TypeError, ValueError):
        table = None
    return RevisionThen(revision, event.at, event.number, _is_vouched(revision, table, made), table)


def told(changes: Iterable[Mapping[str, Seen]], after: tuple[bool, Mapping[str, Seen]] | None) -> dict[GUID, PortThen]:
    """Each port by the looks up to a moment (oldest first, from one that holds every port), and by the look after it.

    `after` is whether that look holds every port, and what it found (else only what it found changed).
    """
    state: dict[str, Seen] = {}
    known: dict[str, Mapping[int, int]] = {}  # the last table that was read, and not lost sight of since
    for look in changes:
        for guid, seen in look.items():
            state[guid] = seen
            if seen is None:
                known.pop(guid, None)
            elif seen != "unread":
                known[guid] = _table(seen)
    ports = {}
    for text in sorted({*state, *(after[1] if after else ())}):
        guid = GUID(text)
        ports[guid] = _port(guid, state.get(text), known.get(text), is_new=text not in state, later=_later(text, after))
    return ports


type _Later = tuple[bool, Seen]  # whether the look after says anything of the port, and what


def _later(text: str, after: tuple[bool, Mapping[str, Seen]] | None) -> _Later | None:
    if after is None:
        return None
    is_base, found = after
    return (is_base or text in found, found.get(text))


def _port(guid: GUID, seen: Seen, known: Mapping[int, int] | None, *, is_new: bool, later: _Later | None) -> PortThen:
    speaks, after = later if later is not None else (False, None)
    read_later = _table(after) if speaks and after is not None and after != "unread" else None
    if is_new:
        return PortThen(guid, Certainty.UNKNOWN, None, read_later)
    if seen == "unread":
        return PortThen(guid, Certainty.UNREAD, known, read_later)
    if seen is None:
        return PortThen(guid, Certainty.AWAY, None, read_later)
    if later is None:
        return PortThen(guid, Certainty.LAST_SEEN, known)
    if not speaks or read_later == known:
        return PortThen(guid, Certainty.HELD, known)
    if after == "unread":
        return PortThen(guid, Certainty.LAST_SEEN, known)
    return PortThen(guid, Certainty.CHANGED, known, read_later)


def _table(seen: Mapping[str, int]) -> dict[int, int]:
    return {int(index): entry for index, entry in sorted(seen.items(), key=lambda item: int(item[0]))}


def _around(subnet: Subnet, at: datetime) -> tuple[TableChanges | None, list[Mapping[str, Seen]], TableChanges | None]:
    """The last look that had ended by `at`, the changes of all looks up to it from its base on, and the look after."""
    rows = TableChanges.objects.filter(subnet=subnet).select_related("observation")
    before = rows.filter(observation__finished_at__lte=at).defer("data").order_by("-id").first()
    after = rows.filter(**({} if before is None else {"pk__gt": before.pk})).order_by("id").first()
    if before is None:
        return None, [], after
    base = rows.filter(is_base=True, pk__lte=before.pk).order_by("-id").values_list("pk", flat=True).first() or 0
    data = rows.filter(pk__gte=base, pk__lte=before.pk).order_by("id").values_list("data", flat=True)
    return before, [table_history.unpacked(bytes(one)) for one in data], after


def _newest_proven(subnet: Subnet, at: datetime) -> tuple[Event, Revision] | None:
    proven = Event.objects.filter(action=Action.ROLLOUT_PROVEN, at__lte=at).order_by("-number")
    for events in _pieces(proven.iterator(chunk_size=50)):
        rollouts = {
            rollout.public_id: rollout
            for rollout in Rollout.objects.filter(
                subnet=subnet, public_id__in=[event.subject_key for event in events]
            ).select_related("revision")
        }
        for event in events:
            if event.subject_key in rollouts:
                return event, rollouts[event.subject_key].revision
    return None


def _newest_at_once(subnet: Subnet, at: datetime) -> tuple[Event, Revision] | None:
    """Of the revisions that were current as soon as they were made (the first, and adopted ones) the newest by `at`."""
    at_once = Revision.objects.filter(Q(parent__isnull=True) | Q(adopted_files__isnull=False), subnet=subnet).distinct()
    revisions = {revision.public_id: revision for revision in at_once}
    event = (
        Event.objects.filter(
            subject_kind="revision", subject_key__in=revisions, action__in=_CURRENT_AT_ONCE, at__lte=at
        )
        .order_by("-number")
        .first()
    )
    return None if event is None else (event, revisions[event.subject_key])


def _pieces(events: Iterator[Event], size: int = 50) -> Iterator[list[Event]]:
    piece: list[Event] = []
    for event in events:
        piece.append(event)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece


def _is_vouched(revision: Revision, table: PartitionTable | None, made: Event | None) -> bool:
    """Whether bytes and table are those that the chained event of the revision's making names by digest."""
    if made is None or table is None or not isinstance(made.after, dict):
        return False
    return (digest(bytes(revision.data)), table_digest(table)) == (
        made.after.get("digest"),
        made.after.get("table_digest"),
    )
