"""Subnet management packets from a seat on the simulated fabric, for the lab's own looking and breaking.

`python -m lab.smp` reads one JSON request on stdin and prints one JSON answer. It runs as a process of its own because
the simulator's library must be preloaded. It is the lab's second pair of eyes: it shares no code with the reader that
proves rollouts.
"""

import ctypes
import json
import struct
import sys
import time
from typing import Any

NODE_INFO, PORT_INFO, P_KEY_TABLE, SM_INFO = 0x11, 0x15, 0x16, 0x20
BLOCK = 32
OWN_PORT = 0
STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE"}
PHYS_STATES = {1: "Sleep", 2: "Polling", 3: "Disabled", 4: "Training", 5: "LinkUp"}
SM_STATES = {0: "NOTACTIVE", 1: "DISCOVERING", 2: "STANDBY", 3: "MASTER"}
# One try with a long wait: the simulator loses nothing, and ten unanswered datagrams to a frozen SM would stop it.
_TIMEOUT_MS = 1000
_IS_SM = 1 << 1


class Seat:
    """An open port of libibmad."""

    def __init__(self) -> None:
        self._mad = ctypes.CDLL("libibmad.so.5")
        self._mad.mad_rpc_open_port.restype = ctypes.c_void_p
        self._mad.mad_rpc_close_port.argtypes = [ctypes.c_void_p]
        for function in (self._mad.smp_query_via, self._mad.smp_set_via):
            function.restype = ctypes.c_void_p
            function.argtypes = [
                ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p,
            ]  # fmt: skip
        classes = (ctypes.c_int * 2)(0x01, 0x81)
        self._port = self._mad.mad_rpc_open_port(None, 0, classes, 2)
        if not self._port:
            raise OSError("no seat on the simulated fabric: the simulator is gone or all its client slots are taken")

        self._mad.mad_rpc_set_retries(ctypes.c_void_p(self._port), 1)

    def close(self) -> None:
        """Give the seat back: the simulator has ten."""
        self._mad.mad_rpc_close_port(self._port)

    def get(
        self, to: int | tuple[int, ...], attribute: int, modifier: int = 0, *, timeout_ms: int = _TIMEOUT_MS
    ) -> bytes | None:
        """The 64 bytes of an attribute at a LID, or at the end of a directed route; None when nobody answers."""
        data = ctypes.create_string_buffer(64)
        address = self._to(to) if isinstance(to, int) else self._along(to)
        done = self._mad.smp_query_via(data, address, attribute, modifier, timeout_ms, self._port)
        return data.raw if done else None

    def set(self, lid: int, attribute: int, modifier: int, value: bytes) -> bool:
        """Write an attribute; False when the port does not answer."""
        data = ctypes.create_string_buffer(value, 64)
        return bool(self._mad.smp_set_via(data, self._to(lid), attribute, modifier, _TIMEOUT_MS, self._port))

    @staticmethod
    def _to(lid: int) -> "ctypes.Array[ctypes.c_char]":
        # ib_portid_t: LID, then a directed route (hop count, 64 hops, two LIDs). LID 0 and no hops: the own port.
        route = struct.pack("=ii64xHH", lid, 0, 0 if lid else 0xFFFF, 0 if lid else 0xFFFF)
        return ctypes.create_string_buffer(route, 256)

    @staticmethod
    def _along(ports: tuple[int, ...]) -> "ctypes.Array[ctypes.c_char]":
        """The address at the end of a directed route: out of each node by that port. It needs no LID and no SM."""
        route = struct.pack("=ii64sHH", 0, len(ports), bytes((0, *ports)), 0xFFFF, 0xFFFF)
        return ctypes.create_string_buffer(route, 256)


def read_port(seat: Seat, lid: int) -> dict[str, Any] | None:
    """LID, master LID, states, capacity and P_Keys by index of an HCA port; None when it does not answer."""
    node, port = seat.get(lid, NODE_INFO), seat.get(lid, PORT_INFO)
    if node is None or port is None:
        return None
    capacity = struct.unpack_from(">H", node, 28)[0]
    pkeys: dict[str, int] = {}
    for block in range(-(-capacity // BLOCK)):
        table = seat.get(lid, P_KEY_TABLE, block)
        if table is None:
            return None
        entries = struct.unpack(">32H", table)
        pkeys.update({str(block * BLOCK + place): entry for place, entry in enumerate(entries) if entry})
    return {
        "port_guid": f"0x{struct.unpack_from('>Q', node, 20)[0]:016x}",
        "lid": struct.unpack_from(">H", port, 16)[0],
        "sm_lid": struct.unpack_from(">H", port, 18)[0],
        "is_sm": bool(struct.unpack_from(">I", port, 20)[0] & _IS_SM),
        "state": STATES.get(port[32] & 0xF, "UNKNOWN"),
        "phys_state": PHYS_STATES.get(port[33] >> 4, "Unknown"),
        "capacity": capacity,
        "pkeys": pkeys,
    }


def read_sm(seat: Seat, lid: int) -> dict[str, Any] | None:
    """GUID, state, priority and activity count of the SM at `lid`; None when none answers."""
    information = seat.get(lid, SM_INFO)
    if information is None:
        return None
    guid, _key, activity = struct.unpack_from(">QQI", information)
    state = SM_STATES.get(information[20] & 0xF, "UNKNOWN")
    return {
        "port_guid": f"0x{guid:016x}", "lid": lid, "state": state, "priority": information[20] >> 4,
        "activity": activity,
    }  # fmt: skip


def is_sm(seat: Seat, lid: int) -> bool:
    """Whether the port says that an SM runs on it."""
    port = seat.get(lid, PORT_INFO)
    return port is not None and bool(struct.unpack_from(">I", port, 20)[0] & _IS_SM)


def write_pkey(seat: Seat, lid: int, index: int | None, entry: int) -> dict[str, Any]:
    """Put `entry` at `index` (None: the last one) of a port's P_Key table, behind every SM's back."""
    node = seat.get(lid, NODE_INFO)
    if node is None:
        raise OSError(f"LID {lid} does not answer")
    capacity = struct.unpack_from(">H", node, 28)[0]
    index = capacity - 1 if index is None else index
    if not 0 <= index < capacity:
        raise OSError(f"index {index} is outside the port's table of {capacity}")
    table = seat.get(lid, P_KEY_TABLE, index // BLOCK)
    if table is None:
        raise OSError(f"LID {lid} does not show its P_Key table")
    entries = list(struct.unpack(">32H", table))
    before, entries[index % BLOCK] = entries[index % BLOCK], entry
    if not seat.set(lid, P_KEY_TABLE, index // BLOCK, struct.pack(">32H", *entries)):
        raise OSError(f"LID {lid} refused the P_Key table")
    return {"index": index, "before": before, "after": entry}


def wait_for_own_sm(seat: Seat, within_s: float, state: str | None) -> bool:
    """Whether the SM on the seat's own port answers SMInfo within that time, and is in `state` if one is given.

    It answers as soon as it has found its own port.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        information = seat.get(OWN_PORT, SM_INFO, timeout_ms=50)
        if information is not None and state in (None, SM_STATES.get(information[20] & 0xF)):
            return True
        time.sleep(0.005)
    return False


def main() -> None:
    """Answer one request: `read` or `sms` with LIDs, `own_sm` with seconds, `write` with LID, index and entry."""
    request = json.load(sys.stdin)
    try:
        seat = Seat()
        try:
            if "read" in request:
                answer: Any = [read_port(seat, lid) for lid in request["read"]]
            elif "sms" in request:
                answer = [read_sm(seat, lid) for lid in request["sms"] if is_sm(seat, lid)]
            elif "own_sm" in request:
                answer = wait_for_own_sm(seat, request["own_sm"], request["state"])
            else:
                answer = write_pkey(seat, **request["write"])
        finally:
            seat.close()
    except OSError as problem:
        answer = {"problem": str(problem)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
