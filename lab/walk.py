"""A walk over the simulated fabric by directed routes, and every end port's P_Key table from it.

It speaks the simulator's own datagrams, so it needs no process, no library and nothing that OpenSM has set up: neither
LIDs nor forwarding tables. It shares no code with the reader that proves rollouts.
"""

import os
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import LabError
from lab.simulator import abstract_address, datagram_socket, leave_seat, take_seat

NODE_INFO, P_KEY_TABLE = 0x11, 0x16
SWITCH = 2
NODE_TYPES = {1: "CA", SWITCH: "SW", 3: "RT"}
BLOCK = 32
MOST_HOPS = 62
Route = tuple[int, ...]
# ibsim.h, struct sim_request: two LIDs, two QPs, a status, the MAD's length in network order, the MAD.
_REQUEST = struct.Struct("=IIIII4x8s256s")
# A directed SubnGet: hop count, transaction, attribute, modifier, no M_Key, two permissive LIDs, the initial path.
_SMP = struct.Struct(">BBBBHBBQHHI8xHH28x64x64s64x")
_LENGTH = struct.pack(">Q", 256)


@dataclass(frozen=True, slots=True)
class Found:
    """An end port, the way to it, and how many P_Keys its table holds."""

    port_guid: int
    node_type: str
    capacity: int
    route: Route


class Walker:
    """A client of one simulator, seated at a node; a context manager that gives its seat back."""

    def __init__(self, *, socket_name: str, node_id: str) -> None:
        self._name, self._node_id = socket_name, node_id
        self._transaction = 0

    def __enter__(self) -> "Walker":
        number = os.getpid()
        self._control = datagram_socket(f"{self._name}:walk{number}")
        self._data = datagram_socket(f"{self._name}:in{number}")
        try:
            self._control.connect(abstract_address(f"{self._name}:ctl"))
            self._slot = take_seat(self._control, client=number, node_id=self._node_id)
            self._data.connect(abstract_address(f"{self._name}:out{self._slot}"))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            leave_seat(self._control, slot=self._slot)
        finally:
            self._close()

    def _close(self) -> None:
        self._control.close()
        self._data.close()

    def get(self, route: Route, attribute: int, modifier: int = 0) -> bytes | None:
        """The 64 bytes of an attribute at the end of a route; None when the route leads nowhere."""
        self._transaction += 1
        path = bytes((0, *route))
        smp = _SMP.pack(
            1, 0x81, 1, 1, 0, 0, len(route), self._transaction, attribute, 0, modifier, 0xFFFF, 0xFFFF, path
        )
        self._data.send(_REQUEST.pack(0xFFFF, 0xFFFF, 0, 0, 0, _LENGTH, smp))
        try:
            answer = self._data.recv(_REQUEST.size)
        except TimeoutError:
            raise LabError("The simulator does not answer an SMP.") from None
        status, mad = _REQUEST.unpack(answer)[4], answer[-256:]
        # The simulator writes its client's slot into the upper 16 bits of the transaction.
        if struct.unpack_from(">Q", mad, 8)[0] & 0xFFFFFFFF != self._transaction:
            raise LabError("The simulator answered something that was not asked.")
        if status or struct.unpack_from(">H", mad, 4)[0] & 0x7FFF:
            return None
        return mad[64:128]

    def end_ports(self) -> dict[int, Found]:
        """Every end port that cables lead to, by port GUID: HCA ports, switch port 0, router ports."""
        found: dict[int, Found] = {}
        waiting: deque[Route] = deque([()])
        while waiting:
            route = waiting.popleft()
            node = self.get(route, NODE_INFO)
            if node is None:
                continue
            here = _end_port(node, route)
            if here.port_guid in found:
                continue
            found[here.port_guid] = here
            if len(route) < MOST_HOPS:
                # Through a switch by every port; out of the node we sit at by the port we sit on.
                ways = range(1, node[3] + 1) if node[2] == SWITCH else [node[36]] if not route else []
                waiting.extend((*route, port) for port in ways)
        return found

    def tables(self, ports: Mapping[int, Found]) -> dict[int, dict[int, int]]:
        """Each port's table as index → entry, empty entries left out; raise LabError unless all can be read."""
        return {guid: self._table(port) for guid, port in ports.items()}

    def _table(self, port: Found) -> dict[int, int]:
        node = self.get(port.route, NODE_INFO)
        if node is None or _end_port(node, port.route) != port:
            raise LabError(f"The way to port 0x{port.port_guid:016x} does not lead there any more.")
        table = {}
        for block in range(-(-port.capacity // BLOCK)):
            entries = self.get(port.route, P_KEY_TABLE, block)
            if entries is None:
                raise LabError(f"Port 0x{port.port_guid:016x} does not show block {block} of its P_Key table.")
            for place, entry in enumerate(struct.unpack(">32H", entries)):
                if entry:
                    table[block * BLOCK + place] = entry
        return table


def _end_port(node: bytes, route: Route) -> Found:
    guid, capacity = struct.unpack_from(">QH", node, 20)
    return Found(port_guid=guid, node_type=NODE_TYPES.get(node[2], "?"), capacity=capacity, route=route)
