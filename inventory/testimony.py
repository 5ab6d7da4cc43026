"""Both witnesses on a port's row: what it holds of each goes to `subnet.witness`, the answer into two columns."""

from collections.abc import Collection, Mapping
from datetime import datetime

from inventory.models import Port, Server, Subnet
from subnet import witness
from subnet.guid import GUID
from subnet.witness import ABSENT, Claim, Sighting, Surroundings, Testimony

COLUMNS = ("testimony", "points")
_MOST_WORDS = 500


def heard(
    port: Port,
    *,
    server: Server | None,
    subnet: Subnet,
    looked_at: datetime | None,
    names: str = "",
    port_of_node: GUID | None = None,
    shares_place_with: GUID | None = None,
) -> Testimony | None:
    """What both witnesses say of `port`; None while neither has spoken. No query.

    `names` is the registered server that its node description names; see `Surroundings` for the rest.
    """
    claim = None if server is None or server.reported_at is None else _claim(port, server, subnet)
    sighting = None if port.seen_at is None else _sighting(port, names)
    if claim is None and sighting is None:
        return None
    around = Surroundings(
        looked_at=None if looked_at is None else looked_at.timestamp(),
        home=None
        if port.home_leaf_guid is None or port.home_leaf_port is None
        else (port.home_leaf_guid, port.home_leaf_port),
        port_of_node=port_of_node,
        shares_place_with=shares_place_with,
    )
    return witness.compare(claim, sighting, around)


def write_down(port: Port, said: Testimony | None) -> bool:
    """Put `said` into the row's columns; whether that is news. The caller saves COLUMNS."""
    verdict = "" if said is None else said.verdict.value
    points = [] if said is None else [point.to_json() for point in said.points]
    if (port.testimony, port.points) == (verdict, points):
        return False
    port.testimony, port.points = verdict, points
    return True


def named_host(description: str, hostnames: Collection[str]) -> str:
    """The registered host that a node description names, or nothing: hosts write “srv-001 mlx5_0” and the like."""
    for word in description.replace(",", " ").split():
        if word.lower() in hostnames:
            return word.lower()
    return ""


def hosts_named(subnet: Subnet, descriptions: Collection[str]) -> Mapping[str, str]:
    """For each description the registered host that it names. One query, none without any word."""
    words = {word.lower() for text in descriptions for word in text.replace(",", " ").split()}
    if not words:
        return {}
    servers = Server.objects.filter(subnet=subnet)
    if len(words) <= _MOST_WORDS:  # a look at a whole fabric brings more words than a statement takes
        servers = servers.filter(hostname__in=words)
    known = set(servers.values_list("hostname", flat=True))
    return {text: named_host(text, known) for text in descriptions}


def keep_home(port: Port) -> bool:
    """Remember where a confirmed port is cabled, the first time that is known; whether that is news."""
    if port.confirmed_at is None or port.leaf_guid is None or port.home_leaf_guid is not None:
        return False
    if port.seen_state == ABSENT:
        return False
    port.home_leaf_guid, port.home_leaf_port = port.leaf_guid, port.leaf_port
    return True


def _claim(port: Port, server: Server, subnet: Subnet) -> Claim:
    return Claim(
        guid=port.guid,
        node_guid=None if port.hca is None else port.hca.node_guid,
        state=port.state,
        lid=port.lid,
        sm_lid=port.sm_lid,
        prefix=port.subnet_prefix,
        subnet=subnet.prefix,
        hostname=server.hostname,
        at=None if server.reported_at is None else server.reported_at.timestamp(),
    )


def _sighting(port: Port, names: str) -> Sighting:
    assert port.seen_at is not None  # noqa: S101  the caller looked
    return Sighting(
        node_guid=port.seen_node_guid,
        state=port.seen_state,
        lid=port.seen_lid,
        sm_lid=port.seen_sm_lid,
        leaf=None if port.leaf_guid is None or port.leaf_port is None else (port.leaf_guid, port.leaf_port),
        names=names,
        at=port.seen_at.timestamp(),
    )
