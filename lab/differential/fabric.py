"""The fabric of the differential: few ports, with GUIDs chosen so that a misread number hits one of them.

A GUID below 0x30 is also a short decimal or octal number, one near 2**64 a short negative one, and one is another's
first digits. There is a two-port HCA, a router, and two switches whose ports 0 hold only eight P_Keys.
"""

from subnet.guid import GUID

# HCA node GUID → its ports' cables as (leaf, leaf port); a port's GUID is the node's plus its number.
_HCAS: dict[int, list[tuple[int, int]]] = {
    0x0002C90300010000: [(0, 1)],
    0x10: [(0, 2), (1, 2)],
    0x20: [(0, 3)],
    0x2C8: [(1, 3)],
    0x0002C90300012340: [(1, 4)],
    0xFFFFFFFFFFFFFF00: [(1, 1)],
}
_ROUTER, _ROUTER_PORT = 0x3000, (0, 4)
_SWITCHES = (0x0002C903000E0000, 0x19)
_LINK = 8

SM_PORT = GUID("0x0002c90300010001")
HCA_PORTS = tuple(GUID(f"0x{node + port:016x}") for node, cables in _HCAS.items() for port in range(1, len(cables) + 1))
SWITCH_PORTS = tuple(GUID(f"0x{node:016x}") for node in _SWITCHES)
ROUTER_PORTS = (GUID(f"0x{_ROUTER + 1:016x}"),)
END_PORTS = HCA_PORTS + SWITCH_PORTS + ROUTER_PORTS
NODE_GUIDS = tuple(GUID(f"0x{node:016x}") for node in (*_HCAS, _ROUTER))


def net_text() -> str:
    """The fabric in the simulator's language."""
    lines: list[str] = []
    cables: list[dict[int, str]] = [{}, {}]
    for node, ends in _HCAS.items():
        lines += [f"caguid=0x{node:x}", f'Ca\t{len(ends)} "H-{node:016x}"\t\t# "host-{node:x} mlx5_0"']
        for port, (leaf, leaf_port) in enumerate(ends, start=1):
            lines.append(_end(port, node + port, f"S-{_SWITCHES[leaf]:016x}", leaf_port))
            cables[leaf][leaf_port] = f'"H-{node:016x}"[{port}]'
        lines.append("")
    leaf, leaf_port = _ROUTER_PORT
    lines += [f"rtguid=0x{_ROUTER:x}", f'Rt\t1 "R-{_ROUTER:016x}"\t\t# "router"']
    lines += [_end(1, _ROUTER + 1, f"S-{_SWITCHES[leaf]:016x}", leaf_port), ""]
    cables[leaf][leaf_port] = f'"R-{_ROUTER:016x}"[1]'
    for here, guid in enumerate(_SWITCHES):
        cables[here][_LINK] = f'"S-{_SWITCHES[1 - here]:016x}"[{_LINK}]'
        lines += [
            f"switchguid=0x{guid:x}",
            f'Switch\t8 "S-{guid:016x}"\t\t# "leaf{here + 1}" enhanced port 0 lid 0 lmc 0',
            *(f"[{port}]\t{other}\t\t# lid 0 4xHDR" for port, other in sorted(cables[here].items())),
            "",
        ]
    return "\n".join(lines)


def _end(port: int, guid: int, leaf: str, leaf_port: int) -> str:
    return f'[{port}]({guid:x})\t"{leaf}"[{leaf_port}]\t\t# lid 0 lmc 0 "leaf" lid 0 4xHDR'
