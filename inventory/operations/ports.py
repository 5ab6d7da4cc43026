"""Ports: a person's word that one is where its server says it is."""

from collections.abc import Sequence

from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory import ownership
from inventory.errors import PortUnknown
from inventory.models import ManagerHost, Port
from inventory.races import settle
from inventory.subjects import port_subject
from subnet.witness import place_text


def confirm_port(*, port: Port, actor: Actor, reason: str = "") -> None:
    """Confirm that `port` is where its server says it is; it can be staged from then on. See `confirm_ports`."""
    confirm_ports(ports=[port], actor=actor, reason=reason)


def confirm_ports(*, ports: Sequence[Port], actor: Actor, reason: str = "") -> int:
    """Confirm all of `ports` or none, where they are cabled now; give for how many that was news. One event for each.

    A port that is confirmed already is confirmed anew when the site does not take how it was, or when its cable ends
    elsewhere by now. Raises PortUnknown for an Ethernet port, and for one that an SM is bound to: neither can be in a
    partition.
    """

    def change() -> int:
        rows = list(Port.objects.select_for_update().filter(pk__in=[port.pk for port in ports]).order_by("guid"))
        managers = {host.port_guid: host.name for host in ManagerHost.objects.all()}
        for row in rows:
            if row.link_layer != Port.LinkLayer.INFINIBAND:
                raise PortUnknown(f"Port {row.guid} speaks Ethernet; only InfiniBand ports can be in a partition.")
            if row.guid in managers:
                raise PortUnknown(f"Port {row.guid} runs the SM of {managers[row.guid]}; it belongs to Default alone.")
        new = [row for row in rows if not ownership.is_trusted(row) or _moved(row)]
        now = timezone.now()
        for row in new:
            before = _standing(row)
            row.confirmed_at, row.confirmed_how = now, ownership.PERSON
            row.home_leaf_guid, row.home_leaf_port = row.leaf_guid, row.leaf_port
            row.save(update_fields=["confirmed_at", "confirmed_how", "home_leaf_guid", "home_leaf_port"])
            record(
                action=Action.PORT_CONFIRM,
                actor=actor,
                subject=port_subject(row),
                before=before,
                after=_standing(row),
                reason=reason,
            )
        return len(new)

    return settle(change)


def _moved(port: Port) -> bool:
    """Whether its cable ends elsewhere than when it was confirmed."""
    home = (port.home_leaf_guid, port.home_leaf_port)
    return None not in home and home != (port.leaf_guid, port.leaf_port)


def _standing(port: Port) -> dict[str, str] | None:
    if port.confirmed_at is None:
        return None
    standing = {"confirmed_how": port.confirmed_how}
    if port.home_leaf_guid is not None and port.home_leaf_port is not None:
        standing["cable"] = place_text((port.home_leaf_guid, port.home_leaf_port))
    return standing
