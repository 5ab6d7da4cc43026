"""record_seen: what our own reading of the fabric saw, beside what servers say. Neither overwrites the other."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.conf import settings
from django.db.models import Q

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM
from inventory import history, ownership
from inventory.history import Kind, Witness
from inventory.models import HistoryEntry, ManagerHost, Port, PortConflict, Subnet
from inventory.races import settle
from inventory.subjects import subnet_subject
from inventory.testimony import COLUMNS, heard, hosts_named, keep_home, write_down
from subnet.guid import GUID
from subnet.witness import ABSENT, place_text

_CHUNK = 500
_MOST_NAMED = 100  # GUIDs spelled out in one event; the count is always there
_SEEN = (
    "seen_node_guid", "seen_lid", "seen_sm_lid", "seen_state", "seen_description", "home_leaf_guid", "home_leaf_port",
    *COLUMNS,
)  # fmt: skip
_TOLD = ("leaf_guid", "leaf_port", "confirmed_at", "confirmed_how")  # what the trail is told of as well


class Leaf(Protocol):
    """The end of the cable at the switch."""

    @property
    def guid(self) -> GUID: ...
    @property
    def port(self) -> int: ...


class Reading(Protocol):
    """What this room needs of a `subnet.observed.PortReading`."""

    @property
    def guid(self) -> GUID: ...
    @property
    def node_guid(self) -> GUID: ...
    @property
    def node_type(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def lid(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def master_sm_lid(self) -> int: ...
    @property
    def description(self) -> str: ...
    @property
    def reading(self) -> str: ...
    @property
    def leaf(self) -> Leaf | None: ...


@dataclass(slots=True)
class _News:
    """What one look brings: rows to write, history, ports that were confirmed by it."""

    rows: dict[GUID, Port] = field(default_factory=dict)
    entries: list[HistoryEntry] = field(default_factory=list)
    recabled: list[Port] = field(default_factory=list)
    witnessed: list[Port] = field(default_factory=list)


def record_seen(*, subnet: Subnet, readings: Iterable[Reading], at: datetime, is_complete: bool = False) -> int:
    """Note that the fabric showed each of `readings` at `at`; give how many ports nobody had known.

    Only HCA ports that answered count. An unknown one gets a Port row without an HCA: seen, never registered. The leaf
    switch and its port are kept with it. `is_complete` says that the whole fabric was read: a known port that is not
    among the readings is then ABSENT, unless its leaf switch is not among them either and nothing can be said of what
    hangs on it. A port that is known in another subnet stays there: where it belongs is a person's decision. Where the
    site trusts both witnesses together, ports on which they agree are confirmed by it. Costs about one query per 500
    ports.
    """
    everything = list(readings)
    there = {one.guid: one for one in everything if one.node_type == "CA"}
    reached = {one.node_guid for one in everything if one.node_type == "SW"} if is_complete else None
    return settle(lambda: _record(subnet, there, reached, at))


def _record(subnet: Subnet, there: Mapping[GUID, Reading], reached: Set[GUID] | None, at: datetime) -> int:
    """`reached` are the switches of a complete look, None for a partial one."""
    answered = {guid: one for guid, one in there.items() if one.reading == "read"}
    known = {port.guid: port for port in Port.objects.filter(subnet=subnet).select_related("hca__server")}
    strangers = sorted(set(answered) - set(known))
    elsewhere: set[GUID] = set()
    for chunk in _chunks(strangers):
        elsewhere.update(port.guid for port in Port.objects.filter(guid__in=chunk).only("guid"))
    new = [guid for guid in strangers if guid not in elsewhere]
    news = _News()
    for port in known.values():
        is_gone = (
            reached is not None and port.guid not in there and (port.leaf_guid is None or port.leaf_guid in reached)
        )
        _see(port, answered.get(port.guid), news, at, is_gone=is_gone)
    created = [_seen_port(subnet, answered[guid], at) for guid in new]
    looked_at = at if reached is not None and (subnet.looked_at is None or subnet.looked_at < at) else subnet.looked_at
    _compare([*known.values(), *created], subnet, answered, looked_at, news)
    _confirm(subnet, list(known.values()), news, at)
    Port.objects.bulk_create(created, batch_size=_CHUNK)  # a server that registers one now makes us try again
    Port.objects.bulk_update(list(news.rows.values()), list(_SEEN), batch_size=_CHUNK // 5)
    Port.objects.bulk_update({*news.recabled, *news.witnessed}, list(_TOLD), batch_size=_CHUNK // 5)
    for chunk in _chunks(sorted(set(answered) & set(known))):
        Port.objects.filter(Q(seen_at=None) | Q(seen_at__lt=at), guid__in=chunk).update(seen_at=at)
    if looked_at != subnet.looked_at:
        Subnet.objects.filter(pk=subnet.pk).update(looked_at=looked_at)
        subnet.looked_at = looked_at
    history.keep(news.entries)
    _tell(subnet, new, news)
    return len(new)


def _see(port: Port, reading: Reading | None, news: _News, at: datetime, *, is_gone: bool) -> None:
    """Put what the look shows of a known port into its row, and remember what is news."""
    if port.seen_at is not None and port.seen_at > at:
        return  # a newer look has been here already
    before = port.seen_state
    if reading is None:
        if is_gone and port.seen_at is not None and port.seen_state != ABSENT:
            port.seen_state = ABSENT
            news.rows[port.guid] = port
            news.entries.append(_entry(Kind.LINK, port, before=_at(before, port), after="not there", at=at))
        return
    cable = _cable(port)
    if _recable(port, reading):
        news.recabled.append(port)
        news.rows[port.guid] = port
        if cable:
            news.entries.append(_entry(Kind.CABLE, port, before=cable, after=_cable(port), at=at))
    values = _seen_values(reading)
    if any(getattr(port, name) != value for name, value in values.items()):
        news.rows[port.guid] = port
        if before and before != values["seen_state"]:
            was = "not there" if before == ABSENT else before
            news.entries.append(_entry(Kind.LINK, port, before=was, after=_at(values["seen_state"], port), at=at))
        for name, value in values.items():
            setattr(port, name, value)
    port.seen_at = at  # written for all of them at once


def _compare(
    ports: list[Port], subnet: Subnet, answered: Mapping[GUID, Reading], looked_at: datetime | None, news: _News
) -> None:
    """Bring what both witnesses say up to date. One query, none when no port has a description."""
    named = hosts_named(subnet, {port.seen_description for port in ports if port.hca is not None})
    nodes = {reading.node_guid: guid for guid, reading in answered.items() if reading.node_guid != guid}
    shared = _shared_places(answered)
    for port in ports:
        said = heard(
            port,
            server=port.server,
            subnet=subnet,
            looked_at=looked_at,
            names=named.get(port.seen_description, ""),
            port_of_node=nodes.get(port.guid),
            shares_place_with=shared.get(port.guid),
        )
        is_news = write_down(port, said)
        if (is_news | keep_home(port)) and port.pk is not None:
            news.rows[port.guid] = port


def _confirm(subnet: Subnet, ports: list[Port], news: _News, at: datetime) -> None:
    """Where the site takes the passive proof, confirm what it proves now. Two queries, none without any."""
    proven = [port for port in ports if port.confirmed_at is None and port.testimony == "agrees"]
    if settings.REGISTRATION_TRUST == ownership.PERSON or not proven:
        return
    managers = set(ManagerHost.objects.filter(subnet=subnet).values_list("port_guid", flat=True))
    disputed = set(PortConflict.objects.filter(closed_at=None, port__subnet=subnet).values_list("port_id", flat=True))
    for port in proven:
        if port.guid in managers or port.pk in disputed or port.link_layer != Port.LinkLayer.INFINIBAND:
            continue
        port.confirmed_at, port.confirmed_how = at, ownership.WITNESSED
        keep_home(port)
        news.rows[port.guid] = port
        news.witnessed.append(port)


def _tell(subnet: Subnet, new: list[GUID], news: _News) -> None:
    """One event for what the look saw, and one for what it confirmed."""
    if new or news.recabled:
        cables = {str(port.guid): f"{port.leaf_guid}/{port.leaf_port}" for port in news.recabled[:_MOST_NAMED]}
        record(
            action=Action.PORT_SEEN,
            actor=SYSTEM,
            subject=subnet_subject(subnet),
            after={
                "unregistered": {"count": len(new), "ports": [str(guid) for guid in new[:_MOST_NAMED]]},
                "cabling": {"count": len(news.recabled), "ports": cables},
            },
        )
    if news.witnessed:
        record(
            action=Action.PORT_WITNESS,
            actor=SYSTEM,
            subject=subnet_subject(subnet),
            after={
                "confirmed_how": ownership.WITNESSED,
                "count": len(news.witnessed),
                "ports": [str(port.guid) for port in news.witnessed[:_MOST_NAMED]],
            },
        )


def _seen_port(subnet: Subnet, reading: Reading, at: datetime) -> Port:
    port = Port(subnet=subnet, guid=reading.guid, number=reading.number, seen_at=at, **_seen_values(reading))
    _recable(port, reading)
    return port


def _seen_values(reading: Reading) -> dict[str, Any]:
    text = "".join(letter for letter in reading.description if letter.isprintable())
    return {
        "seen_node_guid": reading.node_guid,
        "seen_lid": reading.lid or None,
        "seen_sm_lid": reading.master_sm_lid or None,
        "seen_state": reading.state[:20],
        "seen_description": text[:64],
    }


def _recable(port: Port, reading: Reading) -> bool:
    """Put the leaf of `reading` into `port`; whether that is news. A reading without a leaf says nothing."""
    if reading.leaf is None or (port.leaf_guid, port.leaf_port) == (reading.leaf.guid, reading.leaf.port):
        return False
    port.leaf_guid, port.leaf_port = reading.leaf.guid, reading.leaf.port
    return True


def _shared_places(answered: Mapping[GUID, Reading]) -> dict[GUID, GUID]:
    """Ports that one look saw at the same switch port, each with another one: the fabric changed while it was read."""
    first: dict[tuple[GUID, int], GUID] = {}
    shared: dict[GUID, GUID] = {}
    for guid, reading in answered.items():
        if reading.leaf is not None:
            other = first.setdefault((reading.leaf.guid, reading.leaf.port), guid)
            if other != guid:
                shared[guid], shared[other] = other, guid
    return shared


def _entry(kind: Kind, port: Port, *, before: str, after: str, at: datetime) -> HistoryEntry:
    return history.entry(
        kind, Witness.FABRIC, what=port.guid, before=before, after=after, at=at, server=port.server, port=port
    )


def _at(state: str, port: Port) -> str:
    cable = _cable(port)
    return f"{state} at {cable}" if cable and state else state


def _cable(port: Port) -> str:
    return "" if port.leaf_guid is None or port.leaf_port is None else place_text((port.leaf_guid, port.leaf_port))


def _chunks(guids: list[GUID]) -> Iterable[list[GUID]]:
    return (guids[start : start + _CHUNK] for start in range(0, len(guids), _CHUNK))
