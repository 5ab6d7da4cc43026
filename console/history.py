"""Everything that ever touched a port or a P_Key: what people did, what revisions said, what the fabric showed.

Three sources are merged by time, newest first. Each is gone through a piece at a time; where a piece ends early the
page ends too and says how far back it came, so that nothing is left out between two pages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from audit import review
from audit.actions import Action
from audit.models import Event
from audit.review import Asked
from console.review import words
from deploy import table_history
from deploy.models import Revision, Rollout, TableChanges
from deploy.table_history import Seen
from inventory.models import Port, Server, Subnet
from partitions.models import Partition
from subnet.guid import GUID
from subnet.pkey import PKey

MOST_EVENTS: Final = 100
MOST_REVISIONS: Final = 60  # about 20 ms each with 40,000 members
MOST_LOOKS: Final = 200
NAMED: Final = 12  # ports by name in one line


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: when, an icon, a sentence with details, and where it leads. `event` is its number in the trail.

    The parts of `title` with blanks between are the sentence: a page says each in the reader's language.
    """

    at: datetime
    kind: str  # event | revision | rollout | fabric
    title: tuple[str, ...]
    detail: str = ""
    event: int | None = None
    rollout: str = ""  # public id

    @property
    def icon(self) -> str:
        """What the line is drawn with."""
        return {"event": "user", "revision": "file-diff", "rollout": "rocket", "fabric": "eye"}[self.kind]


@dataclass(frozen=True, slots=True)
class History:
    """Entries, newest first; `older` is the moment from which the next page goes on, None at the beginning."""

    entries: tuple[Entry, ...]
    older: datetime | None


def of_port(subnet: Subnet, guid: GUID, *, until: datetime | None = None) -> History:
    """What touched a port: events about it and the servers that had it, its memberships, its P_Key table."""
    made, revisions, labels = _revisions(subnet, until, lambda table: _port_in(table, guid))
    events, about = _events(_port_subjects(guid, labels), until)
    seen, looks = _looks(subnet, until, guid)
    return _merged([events, made, seen], [about, revisions, looks])


def of_pkey(subnet: Subnet, pkey: PKey, *, until: datetime | None = None) -> History:
    """What touched a P_Key: events about every partition that had it, who joined and left, which ports held it."""
    made, revisions, _ = _revisions(subnet, until, lambda table: _partition_in(table, pkey))
    rows = Partition.objects.filter(subnet=subnet, pkey=int(pkey)).values_list("public_id", flat=True)
    events, about = _events([f"partition:{public_id}" for public_id in rows], until)
    seen, looks = _held(subnet, until, pkey)
    return _merged([events, made, seen], [about, revisions, looks])


def _merged(sources: Iterable[list[Entry]], ends: Iterable[datetime | None]) -> History:
    """All entries down to where the first source stopped."""
    horizon = max((end for end in ends if end is not None), default=None)
    entries = [entry for source in sources for entry in source if horizon is None or entry.at >= horizon]
    entries.sort(key=lambda entry: entry.at, reverse=True)
    return History(tuple(entries), horizon)


# --- what people did ---------------------------------------------------------------------------------------------


def _port_subjects(guid: GUID, labels: set[str]) -> list[str]:
    """The port, and every server that has it or had it when a revision was made."""
    names = set(labels)
    port = Port.objects.filter(guid=guid).select_related("hca__server").first()
    if port is not None and port.hca is not None:
        names.add(port.hca.server.hostname)
    servers = Server.objects.filter(hostname__in=names).values_list("public_id", flat=True)
    return [f"port:{guid}", *(f"server:{public_id}" for public_id in servers)]


def _events(subjects: list[str], until: datetime | None) -> tuple[list[Entry], datetime | None]:
    if not subjects:
        return [], None
    found = review.page(Asked(subjects=tuple(subjects), until=until), size=MOST_EVENTS)
    end = found.events[-1].at if found.older else None
    told = [
        _entry(event) for event in found.events if event.action != Action.EVIDENCE_READ
    ]  # who looks touches nothing
    return told, end


def _entry(event: Event) -> Entry:
    told = [f"“{event.reason}”"] if event.reason else []
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict) and "partitions" in before and "partitions" in after:
        told.insert(0, f"from {_list(before['partitions'])} to {_list(after['partitions'])}")
    return Entry(
        at=event.at,
        kind="event",
        title=(event.actor_name, words(event.action), event.subject_label),
        detail=" · ".join(told),
        event=event.number,
        rollout=event.subject_key if event.subject_kind == "rollout" else "",
    )


def _list(items: Any) -> str:
    return ", ".join(map(str, items)) if items else "no partition"


# --- what revisions said -----------------------------------------------------------------------------------------

type Held = dict[str, str]  # for a port P_Key → membership, for a P_Key port → membership


def _port_in(table: Mapping[str, Any], guid: GUID) -> tuple[Held, dict[str, str]]:
    """What a stored table says of a port: memberships by partition, and the name of its server."""
    held = {
        f"{item['name']} ({item['pkey']})": kind
        for item in table["partitions"]
        for named, kind in item["members"]
        if named == guid
    }
    return held, {str(guid): table["labels"][guid]} if guid in table["labels"] else {}


def _partition_in(table: Mapping[str, Any], pkey: PKey) -> tuple[Held, dict[str, str]]:
    """What a stored table says of a P_Key: memberships by port, and the names of their servers."""
    key = str(pkey)
    held = {guid: kind for item in table["partitions"] if item["pkey"] == key for guid, kind in item["members"]}
    return held, {guid: table["labels"][guid] for guid in held if guid in table["labels"]}


def _revisions(subnet: Subnet, until: datetime | None, said: Any) -> tuple[list[Entry], datetime | None, set[str]]:
    """The revisions that changed what `said` reads in a table, each with how its rollouts ended."""
    rows = Revision.objects.filter(subnet=subnet).defer("data").order_by("-number")
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    revisions = list(rows[: MOST_REVISIONS + 1])
    read: dict[int, tuple[Held, dict[str, str]]] = {revision.pk: _said(said, revision.table) for revision in revisions}
    parents = {revision.parent_id for revision in revisions[:MOST_REVISIONS] if revision.parent_id} - read.keys()
    for parent in Revision.objects.filter(pk__in=parents).defer("data"):
        read[parent.pk] = _said(said, parent.table)
    changed: list[tuple[Revision, str]] = []
    labels: set[str] = set()
    for revision in revisions[:MOST_REVISIONS]:
        held, names = read[revision.pk]
        before, old_names = read.get(revision.parent_id or 0, ({}, {}))
        labels |= {*names.values(), *old_names.values()}
        if held != before:
            changed.append((revision, _difference(before, held, {**old_names, **names})))
    entries = [
        Entry(
            revision.created_at,
            "revision",
            (f"{revision.author_name} made revision {revision.number}",),
            detail=told + (f" · “{revision.reason}”" if revision.reason else ""),
        )
        for revision, told in changed
    ]
    entries += _rollouts([revision for revision, _ in changed], until)
    end = revisions[MOST_REVISIONS - 1].created_at if len(revisions) > MOST_REVISIONS else None
    return entries, end, labels


def _said(said: Any, table: Mapping[str, Any]) -> tuple[Held, dict[str, str]]:
    try:
        read: tuple[Held, dict[str, str]] = said(table)
    except (KeyError, TypeError, ValueError):
        return {}, {}  # what somebody altered so that it is no table; the pages of the moment say so
    return read


def _difference(before: Held, after: Held, names: Mapping[str, str]) -> str:
    """“joins training (0x2c41), full; leaves …”, or for a P_Key the ports with their servers."""
    joined = [_member(_name(key, names), after[key]) for key in after if key not in before]
    left = [_name(key, names) for key in before if key not in after]
    kept = [key for key in after if key in before and before[key] != after[key]]
    other = [_member(_name(key, names), after[key]) for key in kept]
    parts = [("joined", joined), ("left", left), ("another membership", other)]
    return "; ".join(f"{word}: {_some(items)}" for word, items in parts if items)


def _name(key: str, names: Mapping[str, str]) -> str:
    return f"{names[key]} {key}" if key in names else key


def _member(name: str, membership: str) -> str:
    return f"{name} (full)" if membership == "full" else f"{name} (limited)"


def _some(items: list[str]) -> str:
    items = sorted(items)
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(items[:NAMED]) + more


def _rollouts(revisions: list[Revision], until: datetime | None) -> list[Entry]:
    rows = Rollout.objects.filter(revision__in=revisions).select_related("revision")
    return [
        Entry(
            row.finished_at or row.requested_at,
            "rollout",
            (f"The rollout of {row.revision}, started by {row.started_by_name}, is {row.get_state_display()}",),
            detail=row.cause,
            rollout=row.public_id,
        )
        for row in rows
        if until is None or (row.finished_at or row.requested_at) < until
    ]


# --- what the fabric showed --------------------------------------------------------------------------------------


def _rows(subnet: Subnet, until: datetime | None) -> tuple[list[TableChanges], datetime | None]:
    """The looks of this page, oldest first, from one that holds every port on if there is one before; and its end."""
    rows = TableChanges.objects.filter(subnet=subnet).select_related("observation")
    if until is not None:
        rows = rows.filter(observation__read_at__lt=until)
    newest = list(rows.order_by("-id")[:MOST_LOOKS])
    if len(newest) < MOST_LOOKS:
        return newest[::-1], None
    end = newest[-1].observation.read_at
    base = rows.filter(is_base=True, pk__lt=newest[-1].pk).order_by("-id").values_list("pk", flat=True).first()
    earlier = rows.filter(pk__gte=base, pk__lt=newest[-1].pk).order_by("id") if base is not None else []
    return [*earlier, *newest[::-1]], end


def _looks(subnet: Subnet, until: datetime | None, guid: GUID) -> tuple[list[Entry], datetime | None]:
    """When a look found another table on the port than the look before."""
    rows, end = _rows(subnet, until)
    entries, last, is_first = [], None, True
    for row in rows:
        changes = table_history.unpacked(bytes(row.data))
        if guid not in changes and not row.is_base:
            continue
        seen: Seen = changes.get(guid)
        if (is_first or seen != last) and not (is_first and seen is None):
            at = row.observation.read_at
            if at is not None:
                entries.append(
                    Entry(at, "fabric", (f"The fabric showed {_table(seen)}",), f"look for a {row.observation.why}")
                )
        last, is_first = seen, False
    return entries, end


def _table(seen: Seen) -> str:
    if seen is None:
        return "that it was away"
    if seen == "unread":
        return "no answer of it"
    return ", ".join(f"{entry:#06x} at index {index}" for index, entry in sorted(seen.items(), key=lambda i: int(i[0])))


def _held(subnet: Subnet, until: datetime | None, pkey: PKey) -> tuple[list[Entry], datetime | None]:
    """When a look found ports that had begun or ceased to hold the P_Key, full or limited."""
    rows, end = _rows(subnet, until)
    holds: set[str] = set()
    entries = []
    for row in rows:
        began, ceased = [], []
        for guid, seen in table_history.unpacked(bytes(row.data)).items():
            if seen == "unread":
                continue
            does = seen is not None and any(entry & 0x7FFF == int(pkey) for entry in seen.values())
            if does and guid not in holds:
                began.append(guid)
                holds.add(guid)
            elif not does and guid in holds:
                ceased.append(guid)
                holds.discard(guid)
        told = [f"{word}: {_some(guids)}" for word, guids in (("held by", began), ("gone from", ceased)) if guids]
        at = row.observation.read_at
        if told and at is not None:
            entries.append(
                Entry(
                    at, "fabric", (f"The fabric showed {pkey} {'; '.join(told)}",), f"look for a {row.observation.why}"
                )
            )
    return entries, end
