"""As of then, as page and JSON tell it: partitions, members and P_Key tables at a moment, and what differs now."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from audit.actions import Action
from audit.canonical import utc_text
from audit.models import Event
from console.lamps import Colour, Lamp
from deploy.as_of import AsOf, Certainty, PortThen, as_of
from deploy.models import Rollout
from inventory.models import Subnet
from partitions.as_of import PartitionThen, partitions_at
from subnet.change import Difference, difference
from subnet.guid import GUID
from subnet.pkey import entry_text
from subnet.table import PartitionTable

MOMENTS = 12  # newest changes offered as links
AHEAD = timedelta(seconds=60)  # a clock a little ahead is no question about the future

CERTAINTY: Mapping[Certainty, Lamp] = {
    Certainty.HELD: Lamp(Colour.GOOD, "circle-check", "read before and after"),
    Certainty.LAST_SEEN: Lamp(Colour.GOOD, "eye", "as last read"),
    Certainty.CHANGED: Lamp(Colour.WARN, "circle-half-2", "changed in between"),
    Certainty.UNREAD: Lamp(Colour.WARN, "help-circle", "did not answer"),
    Certainty.AWAY: Lamp(Colour.IDLE, "plug-connected-x", "away"),
    Certainty.UNKNOWN: Lamp(Colour.IDLE, "help-circle", "not read yet"),
}


@dataclass(frozen=True, slots=True)
class Members:
    """One partition then, with its members by server."""

    partition: PartitionThen
    servers: tuple[tuple[str, str, int], ...]  # label or GUID, membership, ports


@dataclass(frozen=True, slots=True)
class PortRow:
    """One port's table then, and now where it differs."""

    port: PortThen
    label: str
    then: str
    later: str
    now: str
    differs: bool
    lamp: Lamp


@dataclass(frozen=True, slots=True)
class Then:
    """Everything the page shows."""

    as_of: AsOf
    partitions: tuple[Members, ...]
    ports: tuple[PortRow, ...]
    difference: Difference | None  # from then to now; None when either is unknown
    labels: Mapping[GUID, str]
    now: AsOf

    @property
    def is_same(self) -> bool:
        """Whether the current revision says the same as that one."""
        found = self.difference
        return found is not None and found.reaches_nothing and not found.partitions

    @property
    def changed_ports(self) -> int:
        """How many ports were read with another table since."""
        return sum(1 for row in self.ports if row.differs)


def look_back(subnet: Subnet, at: datetime, *, now: datetime) -> Then:
    """What was at `at`, compared with what is at `now`."""
    then, today = as_of(subnet, at), as_of(subnet, now)
    before, after = _table(then), _table(today)
    labels: dict[GUID, str] = {}
    for table in (after, before):
        labels |= table.labels if table is not None else {}
    return Then(
        as_of=then,
        partitions=tuple(Members(one, _by_server(one, labels)) for one in partitions_at(subnet, at, before)),
        ports=tuple(_rows(then, today, labels)),
        difference=None if before is None or after is None else difference(before, after),
        labels=labels,
        now=today,
    )


def moments(subnet: Subnet, until: datetime) -> list[tuple[datetime, str]]:
    """The newest moments at which another revision became current, with its name: links for the page."""
    events = Event.objects.filter(action=Action.ROLLOUT_PROVEN, at__lte=until).order_by("-number")[: MOMENTS * 2]
    ours = set(
        Rollout.objects.filter(subnet=subnet, public_id__in=[event.subject_key for event in events]).values_list(
            "public_id", flat=True
        )
    )
    return [(event.at, event.subject_label) for event in events if event.subject_key in ours][:MOMENTS]


def to_json(then: Then) -> dict[str, Any]:
    """The page for programs.

    {"at", "revision": {"number", "digest", "since", "event", "vouched"} | null, "rollout": public id | null,
     "looked_before", "looked_after", "partitions": [{"pkey", "name", "tenant", "members": [[guid, membership]]}],
     "ports": [{"guid", "server", "pkeys": {index: entry} | null, "certainty", "later": {…} | null}],
     "difference": {"members": [{"pkey", "guid", "then", "now"}], "partitions": [{"pkey", "then", "now"}],
     "default": bool} | null}. `members` is from then to now.
    """
    found, current = then.as_of, then.as_of.current
    changes = then.difference
    return {
        "at": utc_text(found.at),
        "revision": None
        if current is None
        else {
            "number": current.revision.number,
            "digest": current.revision.digest,
            "since": utc_text(current.since),
            "event": current.event,
            "vouched": current.is_vouched,
        },
        "rollout": None if found.rollout is None else found.rollout.public_id,
        "looked_before": None if found.looked_before is None else utc_text(found.looked_before),
        "looked_after": None if found.looked_after is None else utc_text(found.looked_after),
        "partitions": [
            {
                "pkey": str(one.partition.pkey),
                "name": one.partition.name,
                "tenant": one.partition.tenant,
                "members": [[member.guid, member.membership.value] for member in one.partition.members],
            }
            for one in then.partitions
        ],
        "ports": [
            {
                "guid": row.port.guid,
                "server": row.label,
                "pkeys": _json(row.port.table),
                "certainty": row.port.certainty,
                "later": _json(row.port.later),
            }
            for row in then.ports
        ],
        "difference": None
        if changes is None
        else {
            "members": [
                {"pkey": str(one.pkey), "guid": one.guid, "then": one.from_membership, "now": one.to_membership}
                for one in changes.changes
            ],
            "partitions": [
                {"pkey": str(one.pkey), "then": one.name_before, "now": one.name_after} for one in changes.partitions
            ],
            "default": changes.default is not None and changes.default.reaches_ports,
        },
    }


def _table(found: AsOf) -> PartitionTable | None:
    return None if found.current is None else found.current.table


def _by_server(partition: PartitionThen, labels: Mapping[GUID, str]) -> tuple[tuple[str, str, int], ...]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for member in partition.members:
        counts[labels.get(member.guid, str(member.guid)), member.membership.value] += 1
    return tuple((label, kind, count) for (label, kind), count in sorted(counts.items()))


def _rows(then: AsOf, now: AsOf, labels: Mapping[GUID, str]) -> list[PortRow]:
    rows = []
    for guid, port in then.ports.items():
        today = now.ports.get(guid)
        table = None if today is None else today.table
        differs = port.table is not None and table is not None and dict(port.table) != dict(table)
        rows.append(
            PortRow(
                port=port,
                label=labels.get(guid, ""),
                then=_text(port.table),
                later=_text(port.later),
                now=_text(table),
                differs=differs,
                lamp=CERTAINTY[port.certainty],
            )
        )
    return rows


def _text(table: Mapping[int, int] | None) -> str:
    """“0: 0x7fff, 1: 0xac41”; empty for no table."""
    return "" if table is None else ", ".join(f"{index}: {entry_text(entry)}" for index, entry in sorted(table.items()))


def _json(table: Mapping[int, int] | None) -> dict[str, str] | None:
    return None if table is None else {str(index): entry_text(entry) for index, entry in sorted(table.items())}
