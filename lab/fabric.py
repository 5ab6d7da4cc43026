"""The simulated fabric as a value: who is cabled to what, under which GUIDs.

A pure function makes a leaf/spine fabric from a few numbers, so that the same numbers always give the same GUIDs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from subnet.guid import GUID

# Every GUID of the lab is 0x0002c903 (a vendor prefix), then 16 bits for the box, then 16 bits inside the box.
_PREFIX = 0x0002C903 << 32
_SYSTEM = 0x8000
_MANAGER_BOX = 0xF000
_LEAF_BOX = 0xE000
_SPINE_BOX = 0xE800
_MAX_SERVERS = 0xDFFF
_MAX_HCAS = 64
# A switch has an 8-bit port number, and 0xff means “no port” in a forwarding table.
_MAX_SWITCH_PORTS = 254

WIDEST_SMALL_LEAF = 12
WIDE_LEAF = 32
SMALL_FABRIC_PORTS = 512
SALTS = _SYSTEM >> 4


@dataclass(frozen=True, slots=True)
class HCA:
    """One HCA with one port, and the leaf port its cable ends in."""

    device: str
    node_guid: GUID
    port_guid: GUID
    system_guid: GUID
    leaf_guid: GUID
    leaf_port: int
    description: str

    @property
    def node_id(self) -> str:
        """The node's name in the .net file, which is also what SIM_HOST takes."""
        return f"H-{self.node_guid[2:]}"


@dataclass(frozen=True, slots=True)
class Box:
    """A server or a manager host: a host name and the HCAs that share its system image GUID."""

    hostname: str
    system_guid: GUID
    hcas: tuple[HCA, ...]

    @property
    def port_guids(self) -> tuple[GUID, ...]:
        """The port GUIDs of all HCAs, in device order."""
        return tuple(hca.port_guid for hca in self.hcas)


@dataclass(frozen=True, slots=True)
class Switch:
    """A leaf or spine switch; `cables` maps its port number to the other end's (node id, port number)."""

    name: str
    guid: GUID
    ports: int
    cables: tuple[tuple[int, str, int], ...]

    @property
    def node_id(self) -> str:
        """The switch's name in the .net file, as the simulator's console takes it."""
        return f"S-{self.guid[2:]}"


@dataclass(frozen=True, slots=True)
class Fabric:
    """All servers, the two manager hosts and the switches, cabled as a leaf/spine fabric."""

    servers: tuple[Box, ...]
    managers: tuple[Box, ...]
    leaves: tuple[Switch, ...]
    spines: tuple[Switch, ...]

    @property
    def switches(self) -> tuple[Switch, ...]:
        """Leaves first, then spines."""
        return self.leaves + self.spines

    def hcas(self) -> Iterator[HCA]:
        """Every HCA of servers and manager hosts."""
        for box in self.servers + self.managers:
            yield from box.hcas

    @property
    def end_ports(self) -> int:
        """How many HCA ports there are; `ibnetdiscover` counts as many `Ca` nodes."""
        return sum(len(box.hcas) for box in self.servers + self.managers)

    def server(self, hostname: str) -> Box:
        """The server of that name; raise LookupError with the valid range otherwise."""
        for server in self.servers:
            if server.hostname == hostname:
                return server
        raise LookupError(
            f"The lab has no server “{hostname}”; it has {self.servers[0].hostname} to {self.servers[-1].hostname}."
        )

    def hca_of_port(self, port_guid: GUID) -> HCA:
        """The HCA with that port GUID; raise LookupError when no HCA of the lab has it."""
        for hca in self.hcas():
            if hca.port_guid == port_guid:
                return hca
        raise LookupError(f"No HCA of the lab has the port GUID {port_guid}.")


def generate(
    *, servers: int = 24, hcas: int = 2, leaf_width: int | None = None, spines: int = 2, salt: int = 0
) -> Fabric:
    """Cable `servers` boxes with `hcas` HCAs each and two manager hosts to leaves of `leaf_width` HCA ports.

    The HCAs are cabled rail by rail (all first HCAs, then all second ones), the first manager host to the first
    leaf and the second to the last, so that the managers never share a leaf. `salt` (below SALTS) goes into the
    managers' GUIDs, because a manager host finds its OpenSM by port GUID among all processes of the machine, those of
    other labs included. Raises ValueError for numbers that no
    fabric can have: a switch has at most 254 ports.
    """
    if not 1 <= servers <= _MAX_SERVERS or not 1 <= hcas <= _MAX_HCAS:
        raise ValueError(f"A lab has 1 to {_MAX_SERVERS} servers with 1 to {_MAX_HCAS} HCAs each.")
    total = servers * hcas + 2
    if leaf_width is None:
        leaf_width = min(WIDEST_SMALL_LEAF if total <= SMALL_FABRIC_PORTS else WIDE_LEAF, math.ceil(total / 2))
    leaf_count = math.ceil(total / leaf_width) if leaf_width > 0 else 0
    if leaf_count < 2:
        raise ValueError(f"{total} HCA ports fit on one leaf of {leaf_width}; the managers need two leaves.")
    if leaf_count > _MAX_SWITCH_PORTS or leaf_width + spines > _MAX_SWITCH_PORTS or spines < 1:
        raise ValueError(
            f"{leaf_count} leaves of {leaf_width} HCA ports and {spines} spines need a switch with more than "
            f"{_MAX_SWITCH_PORTS} ports. Choose another leaf width or number of spines."
        )
    seats = _seats(total, leaf_width)
    first = _box("sm-a", _MANAGER_BOX + 1, [next(seats)], first_hca=salt)
    of_server: list[list[tuple[int, int]]] = [[] for _ in range(servers)]
    for _ in range(hcas):
        for places in of_server:
            places.append(next(seats))
    last = _box("sm-b", _MANAGER_BOX + 2, [next(seats)], first_hca=salt)
    digits = max(3, len(str(servers)))
    boxes = tuple(_box(f"srv-{n:0{digits}d}", n, places) for n, places in enumerate(of_server, start=1))
    managers = (first, last)
    return Fabric(
        servers=boxes,
        managers=managers,
        leaves=_leaves(boxes + managers, leaf_count=leaf_count, leaf_width=leaf_width, spines=spines),
        spines=_spines(leaf_count=leaf_count, leaf_width=leaf_width, spines=spines),
    )


def _guid(box: int, inside: int) -> GUID:
    return GUID(f"0x{_PREFIX | box << 16 | inside:016x}")


def _seats(total: int, leaf_width: int) -> Iterator[tuple[int, int]]:
    """(leaf number, leaf port) of each HCA port in cabling order."""
    for position in range(total):
        yield position // leaf_width, position % leaf_width + 1


def _box(hostname: str, number: int, seats: list[tuple[int, int]], *, first_hca: int = 0) -> Box:
    system = _guid(number, _SYSTEM)
    return Box(
        hostname=hostname,
        system_guid=system,
        hcas=tuple(
            HCA(
                device=f"mlx5_{index}",
                node_guid=_guid(number, first_hca + index << 4),
                # ibsim gives a port the node GUID + the port number.
                port_guid=_guid(number, (first_hca + index << 4) + 1),
                system_guid=system,
                leaf_guid=_guid(_LEAF_BOX + leaf + 1, 0),
                leaf_port=port,
                description=f"{hostname} mlx5_{index}",
            )
            for index, (leaf, port) in enumerate(seats)
        ),
    )


def _leaves(boxes: tuple[Box, ...], *, leaf_count: int, leaf_width: int, spines: int) -> tuple[Switch, ...]:
    down: dict[GUID, list[tuple[int, str, int]]] = {}
    for box in boxes:
        for hca in box.hcas:
            down.setdefault(hca.leaf_guid, []).append((hca.leaf_port, hca.node_id, 1))
    leaves = []
    for leaf in range(leaf_count):
        guid = _guid(_LEAF_BOX + leaf + 1, 0)
        up = [
            (leaf_width + 1 + spine, f"S-{_guid(_SPINE_BOX + spine + 1, 0)[2:]}", leaf + 1) for spine in range(spines)
        ]
        leaves.append(Switch(f"leaf-{leaf + 1:02d}", guid, leaf_width + spines, tuple(sorted(down[guid]) + up)))
    return tuple(leaves)


def _spines(*, leaf_count: int, leaf_width: int, spines: int) -> tuple[Switch, ...]:
    return tuple(
        Switch(
            f"spine-{spine + 1:02d}",
            _guid(_SPINE_BOX + spine + 1, 0),
            leaf_count,
            tuple(
                (leaf + 1, f"S-{_guid(_LEAF_BOX + leaf + 1, 0)[2:]}", leaf_width + 1 + spine)
                for leaf in range(leaf_count)
            ),
        )
        for spine in range(spines)
    )


def net_text(fabric: Fabric) -> str:
    """The fabric in the simulator's language: the output format of `ibnetdiscover`, with GUIDs given up front."""
    hcas = {hca.node_id: hca for hca in fabric.hcas()}
    switches = {switch.node_id: switch for switch in fabric.switches}
    lines = []
    for switch in fabric.switches:
        lines += [
            "vendid=0x2c9",
            "devid=0xd2f0",
            f"switchguid={switch.guid}",
            f'Switch\t{switch.ports} "{switch.node_id}"\t\t# "{switch.name}" enhanced port 0 lid 0 lmc 0',
        ]
        for port, other, other_port in switch.cables:
            name = hcas[other].description if other in hcas else switches[other].name
            lines.append(f'[{port}]\t"{other}"[{other_port}]\t\t# "{name}" lid 0 4xHDR')
        lines.append("")
    leaf_names = {leaf.guid: (leaf.node_id, leaf.name) for leaf in fabric.leaves}
    for hca in hcas.values():
        leaf_id, leaf_name = leaf_names[hca.leaf_guid]
        lines += [
            "vendid=0x2c9",
            "devid=0x101b",
            f"sysimgguid={hca.system_guid}",
            f"caguid={hca.node_guid}",
            f'Ca\t1 "{hca.node_id}"\t\t# "{hca.description}"',
            f'[1]({hca.port_guid[2:]})\t"{leaf_id}"[{hca.leaf_port}]\t\t# lid 0 lmc 0 "{leaf_name}" lid 0 4xHDR',
            "",
        ]
    return "\n".join(lines) + "\n"


def simulator_limits(fabric: Fabric) -> list[str]:
    """The simulator's size arguments; its own defaults end at 2,048 nodes and 256 switches."""
    nodes = fabric.end_ports + len(fabric.switches)
    ports = fabric.end_ports + sum(switch.ports + 1 for switch in fabric.switches)
    return ["-N", str(nodes + 8), "-S", str(len(fabric.switches) + 2), "-P", str(ports + 64)]
