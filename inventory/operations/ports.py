"""Ports: a person's word that one is what it says, and what our own reading of the fabric saw."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor
from inventory.errors import PortUnknown
from inventory.models import ManagerHost, Port, PortConflict, Subnet
from inventory.races import settle
from inventory.subjects import port_subject, subnet_subject
from subnet.guid import GUID

REJECTED = "rejected"  # the decision of a conflict: the claim is wrong, and not news when it is made again
_CHUNK = 500
_MOST_NAMED = 100  # GUIDs spelled out in one event; the count is always there


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
    def node_type(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def reading(self) -> str: ...
    @property
    def leaf(self) -> Leaf | None: ...


def confirm_port(*, port: Port, actor: Actor, reason: str = "") -> None:
    """Confirm that `port` is where its server says it is; it can be staged from then on. See `confirm_ports`."""
    confirm_ports(ports=[port], actor=actor, reason=reason)


def confirm_ports(*, ports: Sequence[Port], actor: Actor, reason: str = "") -> int:
    """Confirm all of `ports` or none; give how many were not confirmed before. One event for each.

    Raises PortUnknown for an Ethernet port, and for one that an SM is bound to: neither can be in a partition.
    """

    def change() -> int:
        rows = list(Port.objects.select_for_update().filter(pk__in=[port.pk for port in ports]).order_by("guid"))
        managers = {host.port_guid: host.name for host in ManagerHost.objects.all()}
        for row in rows:
            if row.link_layer != Port.LinkLayer.INFINIBAND:
                raise PortUnknown(f"Port {row.guid} speaks Ethernet; only InfiniBand ports can be in a partition.")
            if row.guid in managers:
                raise PortUnknown(f"Port {row.guid} runs the SM of {managers[row.guid]}; it belongs to Default alone.")
        new = [row for row in rows if row.confirmed_at is None]
        now = timezone.now()
        Port.objects.filter(pk__in=[row.pk for row in new]).update(confirmed_at=now, confirmed_how="person")
        for row in new:
            record(
                action=Action.PORT_CONFIRM,
                actor=actor,
                subject=port_subject(row),
                after={"confirmed_how": "person"},
                reason=reason,
            )
        return len(new)

    return settle(change)


def reject_claim(*, conflict: PortConflict, actor: Actor, reason: str = "") -> None:
    """Decide that the claim is wrong: the port stays where it is, may move again, and the same claim opens no more.

    Without this a tenant who is root could stop another's server by naming its GUID again and again. A conflict that
    is decided already stays as it is.
    """

    def change() -> None:
        rows = PortConflict.objects.select_related("port__hca__server", "claimed_by").select_for_update(of=("self",))
        row = rows.get(pk=conflict.pk)
        if row.closed_at is not None:
            return
        row.closed_at, row.decision = timezone.now(), REJECTED
        row.save(update_fields=["closed_at", "decision"])
        record(
            action=Action.PORT_CONFLICT_DECIDE,
            actor=actor,
            subject=port_subject(row.port),
            after={"decision": REJECTED, "claimed_by": row.claimed_by.public_id},
            reason=reason,
        )

    settle(change)


def record_seen(*, subnet: Subnet, readings: Iterable[Reading], at: datetime) -> int:
    """Note that the fabric showed each of `readings` at `at`; give how many ports nobody had known.

    Only HCA ports that answered count. An unknown one gets a Port row without an HCA: seen, never registered. The leaf
    switch and its port are kept with it. A port that is known in another subnet stays there: where it belongs is a
    person's decision. Costs about one query per 500 ports.
    """
    answered = {one.guid: one for one in readings if one.node_type == "CA" and one.reading == "read"}

    def change() -> int:
        known = {port.guid: port for port in Port.objects.filter(subnet=subnet)}
        strangers = sorted(set(answered) - set(known))
        elsewhere: set[GUID] = set()
        for chunk in _chunks(strangers):
            elsewhere.update(port.guid for port in Port.objects.filter(guid__in=chunk).only("guid"))
        new = [guid for guid in strangers if guid not in elsewhere]
        Port.objects.bulk_create(
            [_seen_port(subnet, answered[guid], at) for guid in new], batch_size=_CHUNK
        )  # a server that registers one of them at this moment makes us try again
        recabled = [port for guid, port in known.items() if guid in answered and _recable(port, answered[guid])]
        Port.objects.bulk_update(recabled, ["leaf_guid", "leaf_port"], batch_size=_CHUNK)
        for chunk in _chunks(sorted(set(answered) & set(known))):
            Port.objects.filter(guid__in=chunk).update(seen_at=at)
        if new or recabled:
            record(
                action=Action.PORT_SEEN,
                actor=SYSTEM,
                subject=subnet_subject(subnet),
                after={
                    "unregistered": {"count": len(new), "ports": [str(guid) for guid in new[:_MOST_NAMED]]},
                    "cabling": {
                        "count": len(recabled),
                        "ports": {
                            str(port.guid): f"{port.leaf_guid}/{port.leaf_port}" for port in recabled[:_MOST_NAMED]
                        },
                    },
                },
            )
        return len(new)

    return settle(change)


def _seen_port(subnet: Subnet, reading: Reading, at: datetime) -> Port:
    port = Port(subnet=subnet, guid=reading.guid, number=reading.number, seen_at=at)
    _recable(port, reading)
    return port


def _recable(port: Port, reading: Reading) -> bool:
    """Put the leaf of `reading` into `port`; whether that is news. A reading without a leaf says nothing."""
    if reading.leaf is None or (port.leaf_guid, port.leaf_port) == (reading.leaf.guid, reading.leaf.port):
        return False
    port.leaf_guid, port.leaf_port = reading.leaf.guid, reading.leaf.port
    return True


def _chunks(guids: list[GUID]) -> Iterable[list[GUID]]:
    return (guids[start : start + _CHUNK] for start in range(0, len(guids), _CHUNK))
