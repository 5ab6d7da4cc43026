#!/usr/bin/python3
"""One end of one probe run, on the server itself: one file, the standard library and the host's own pyverbs.

The controller starts it through SSH (`fabricui-probe`, the forced command) and speaks JSON lines on stdin and stdout:
each {"do": …} is answered by one {"did": …}, or by {"failed": CODE, "reason": …} and the end. The controller relays
addresses, keys and queue pair numbers, so an RDMA run needs no connection between the servers. Codes are names of
`probes.terms.Outcome`. It never waits longer than it was told, ends when stdin ends, and starts no other program.

    hello → setup → connect → go (the initiator) → counters → verify → bye

Written for Python 3.6 and later: it runs under the server's distribution, whose pyverbs it needs (kvprobe, 3.1).
"""

import array
import ctypes
import errno
import fcntl
import gc
import hashlib
import importlib
import json
import math
import mmap
import os
import platform
import random
import re
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

PROTOCOL = 1
SYSFS = "/sys/class/infiniband"
VERBS_SYSFS = "/sys/class/infiniband_verbs"
NET_SYSFS = "/sys/class/net"
# Devices of stand-ins carry such a name, so that what comes from one is never taken for RDMA (kvprobe, 7).
RESERVED = re.compile(r"(?i)(stub|fake|mock|dummy|null|simulat)")
LINE_BYTES = 1 << 20
POISON = 0xA5
PATTERN_BYTES = 65537  # prime: two pieces at different places never hold the same bytes
MOST = {"piece_bytes": 1 << 30, "pieces": 1 << 17, "buffer_bytes": 4 << 30, "total_bytes": 1 << 37, "queue_pairs": 8}
WATCH_S = 0.5  # how often a waiting target looks whether its port is still there
LOOK_S = 0.05  # how often a busy loop looks at stdin and the clock
LOAD_S = 1.0  # over which the traffic of others is measured before a run
STATUS = {
    0: "SUCCESS", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 4: "LOC_PROT_ERR", 5: "WR_FLUSH_ERR", 9: "REM_INV_REQ_ERR",
    10: "REM_ACCESS_ERR", 11: "REM_OP_ERR", 12: "RETRY_EXC_ERR", 13: "RNR_RETRY_EXC_ERR", 21: "GENERAL_ERR",
}  # fmt: skip
MTU_BYTES = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
COUNTERS = (
    "port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "port_xmit_wait", "symbol_error",
    "link_downed", "port_rcv_errors", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
)  # fmt: skip
HW_COUNTERS = (
    "sent_pkts", "rcvd_pkts", "local_ack_timeout_err", "packet_seq_err", "out_of_sequence", "rnr_nak_retry_err",
    "roce_adp_retrans", "np_cnp_sent", "rp_cnp_handled", "out_of_seq_request", "duplicate_request",
    "retry_exceeded_err",
)  # fmt: skip


class Refusal(Exception):
    """The run ends here; `code` is a name of Outcome, `facts` go along with it."""

    def __init__(self, code: str, reason: str, **facts: Any) -> None:
        super().__init__(reason)
        self.code, self.reason, self.facts = code, reason, facts


class ControllerGone(Exception):
    """stdin ended: nobody is there to answer to."""


class Wire:
    """JSON lines from stdin to stdout, each wait bounded. Whatever else prints to stdout is sent to stderr."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._held = b""
        self._next_look = 0.0
        self.watch: Optional[Callable[[], None]] = None  # called while waiting, may raise Refusal

    def receive(self, timeout_s: float) -> Dict[str, Any]:
        """The next request. Raises ControllerGone at the end of stdin, Refusal when nothing comes."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._held:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Refusal("TIMED_OUT", "the controller asked for nothing for %g s" % timeout_s)
            self._fill(min(left, WATCH_S))
            if self.watch is not None:
                self.watch()
        line, _, self._held = self._held.partition(b"\n")
        try:
            request = json.loads(line.decode("utf-8"))
        except ValueError:
            raise Refusal("PROTOCOL", "a request is not JSON")
        if not isinstance(request, dict) or not isinstance(request.get("do"), str):
            raise Refusal("PROTOCOL", "a request does not say what to do")
        return request

    def _fill(self, timeout_s: float) -> None:
        if select.select([0], [], [], timeout_s)[0]:
            chunk = os.read(0, 65536)
            if not chunk:
                raise ControllerGone()
            self._held += chunk
            # Here, because busy loops take in as well what nobody reads before they are over.
            if len(self._held) > LINE_BYTES:
                raise Refusal("PROTOCOL", "requests of more than %d bytes came at once" % LINE_BYTES)

    def look(self, deadline: float) -> None:
        """For busy loops: end when the controller has gone or the time is up. Cheap when called often."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_S
        self._fill(0)
        if now > deadline:
            raise Refusal("TIMED_OUT", "the transfer was not over in its time")

    def pause_until(self, moment: float) -> None:
        """Wait until this time of the monotonic clock, unless the controller goes."""
        while True:
            left = moment - time.monotonic()
            if left <= 0:
                return
            self._fill(left)

    def send(self, answer: Dict[str, Any]) -> None:
        """Write one answer whole."""
        data = json.dumps(answer).encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._out, data) :]


nanoseconds = getattr(time, "perf_counter_ns", None) or (lambda: int(time.perf_counter() * 1e9))


# --- what the kernel shows --------------------------------------------------------------------------------------------


def read(*path: str) -> str:
    """A sysfs file's text; "" when it cannot be read."""
    try:
        with open(os.path.join(*path), encoding="ascii", errors="replace") as stream:
            return stream.read(4096).strip()
    except OSError:
        return ""


def listed(*path: str) -> List[str]:
    """The names in a sysfs folder, numbers in numeric order; none when it cannot be read."""
    try:
        names = os.listdir(os.path.join(*path))
    except OSError:
        return []
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def canonical(guid: Union[int, str]) -> str:
    """A GUID as 0x and 16 digits, from sysfs text or from the network-order integer that verbs gives."""
    if isinstance(guid, int):
        guid = struct.pack("=Q", guid).hex()
    digits = re.sub(r"[^0-9a-f]", "", str(guid).lower().replace("0x", ""))
    return "0x" + digits.rjust(16, "0")[-16:]


def port_guid(device: str, port: str) -> str:
    """The port GUID: the lower half of GID 0 (never by arithmetic)."""
    return canonical(read(SYSFS, device, "ports", port, "gids", "0").replace(":", "")[-16:])


def gids(device: str, port: str) -> List[List[Any]]:
    """The RoCE v2 addresses of a port as [index, address, family, interface]; the empty ones left out."""
    found = []
    for index in listed(SYSFS, device, "ports", port, "gids"):
        attributes = os.path.join(SYSFS, device, "ports", port, "gid_attrs")
        address = read(SYSFS, device, "ports", port, "gids", index)
        if not address.replace(":", "").strip("0") or read(attributes, "types", index) != "RoCE v2":
            continue
        plain = address.replace(":", "").lower()
        family = "ipv4" if plain.startswith("0" * 20 + "ffff") else "link" if plain.startswith("fe80") else "ipv6"
        found.append([int(index), address, family, read(attributes, "ndevs", index)])
        if len(found) >= 64:
            break
    return found


def port_facts(device: str, port: str) -> Dict[str, Any]:
    """What sysfs says of one port."""
    where = (SYSFS, device, "ports", port)
    return {
        "device": device,
        "port": int(port),
        "state": read(*where + ("state",)),
        "phys_state": read(*where + ("phys_state",)),
        "link_layer": read(*where + ("link_layer",)),
        "rate": read(*where + ("rate",)),
        "lid": int(read(*where + ("lid",)) or "0", 16),
        "sm_lid": int(read(*where + ("sm_lid",)) or "0", 16),
        "node_guid": canonical(read(SYSFS, device, "node_guid")),
        "port_guid": port_guid(device, port),
        "hca_type": read(SYSFS, device, "hca_type"),
        "fw_ver": read(SYSFS, device, "fw_ver"),
        "is_software": bool(read(SYSFS, device, "parent")),
        "numa_node": read(SYSFS, device, "device", "numa_node"),
    }


def all_ports() -> List[Dict[str, Any]]:
    """Every port of every device, at most 64."""
    return [port_facts(device, port) for device in listed(SYSFS) for port in listed(SYSFS, device, "ports")][:64]


def choose_port(wanted: Dict[str, Any]) -> Dict[str, Any]:
    """The facts of the ordered port, or of the first active one when nothing is ordered."""
    ports = all_ports()
    if not ports:
        raise Refusal("NO_DEVICE", "the kernel shows no RDMA device (%s is empty or absent)" % SYSFS)
    for facts in ports:
        if RESERVED.search(facts["device"]):
            raise Refusal("STUB_DEVICE", "device %s carries the name of a stand-in" % facts["device"])
    names = sorted({facts["device"] for facts in ports})
    device, number = wanted.get("device") or "", wanted.get("port") or 0
    fitting = [f for f in ports if device in ("", f["device"]) and number in (0, f["port"])]
    if not fitting:
        raise Refusal("NO_DEVICE", "there is no port %s/%s here, only devices %s" % (device, number, ", ".join(names)))
    for key in ("node_guid", "port_guid"):
        registered = wanted.get(key) or ""
        if registered:
            others = fitting
            fitting = [facts for facts in fitting if facts[key] == canonical(registered)]
            if not fitting:
                shown = ", ".join("%s %s" % (facts["device"], facts[key]) for facts in others)
                raise Refusal("WRONG_DEVICE", "registered is %s %s, but here is %s" % (key, registered, shown))
    if wanted.get("interface"):
        fitting = [f for f in fitting if any(g[3] == wanted["interface"] for g in gids(f["device"], str(f["port"])))]
        if not fitting:
            raise Refusal("NO_ADDRESS", "no RDMA port has a RoCE v2 address on interface %s" % wanted["interface"])
    active = [facts for facts in fitting if facts["state"].endswith("ACTIVE")]
    if not active:
        facts = fitting[0]
        shown = "%s/%d is %s, %s" % (facts["device"], facts["port"], facts["state"], facts["phys_state"])
        raise Refusal("PORT_DOWN", shown, port=facts)
    kind = read(SYSFS, active[0]["device"], "node_type")
    if kind and not kind.startswith("1:"):
        raise Refusal("UNSUPPORTED", "%s is no channel adapter but “%s”" % (active[0]["device"], kind))
    return active[0]


def pkey_entry(device: str, port: int, value: int) -> Tuple[int, int]:
    """(index, 16-bit entry) of a P_Key by its 15-bit value, the full one preferred (kvprobe, 3.4)."""
    found = []
    for index in listed(SYSFS, device, "ports", str(port), "pkeys"):
        entry = int(read(SYSFS, device, "ports", str(port), "pkeys", index) or "0", 16)
        if entry & 0x7FFF and entry & 0x7FFF == value & 0x7FFF:
            found.append((not entry & 0x8000, int(index), entry))
    if not found:
        raise Refusal("NO_COMMON_PKEY", "P_Key 0x%04x is not in the table of %s/%d" % (value & 0x7FFF, device, port))
    return min(found)[1:]


def counters(device: str, port: int) -> Dict[str, int]:
    """The counters that a run's evidence is made of; the kernel caches some for `lifespan` milliseconds."""
    where = (SYSFS, device, "ports", str(port))
    lifespan = read(*where + ("hw_counters", "lifespan"))
    if lifespan.isdigit():
        time.sleep(min(int(lifespan), 200) / 1000.0 + 0.001)
    found = {}
    for folder, names in (("counters", COUNTERS), ("hw_counters", HW_COUNTERS)):
        for name in names:
            text = read(*where + (folder, name))
            if text.isdigit():
                found[name] = int(text)
    return found


def interface_of(facts: Dict[str, Any]) -> str:
    """The network interface below an Ethernet port; "" where there is none."""
    if facts["link_layer"] != "Ethernet":
        return ""
    device, port = facts["device"], str(facts["port"])
    return read(SYSFS, device, "parent") or read(SYSFS, device, "ports", port, "gid_attrs", "ndevs", "0")


def interface_gbps(name: str) -> Optional[float]:
    """The speed of an interface; None when its driver knows none (a virtual card says -1)."""
    text = read(NET_SYSFS, name, "speed") if name else ""
    return int(text) / 1000.0 if text.isdigit() and int(text) else None


def port_gbps(facts: Dict[str, Any]) -> Optional[float]:
    """The negotiated rate of a port; of a software device that of the card below it, for its own is made up."""
    if facts["is_software"]:
        return interface_gbps(interface_of(facts))
    found = re.match(r"([0-9]+(?:\.[0-9]+)?) Gb/sec", facts["rate"])
    return float(found.group(1)) if found else None


class Load:
    """What others send through a port or an interface, measured before a run so that it is not made worse.

    On InfiniBand port_xmit_data and port_rcv_data count in units of four bytes. On Ethernet they count the RDMA traffic
    alone, if they are there, and the interface below counts the rest.
    """

    def __init__(self, facts: Optional[Dict[str, Any]] = None, interface: str = "") -> None:
        self.facts = facts
        self.interface = interface_of(facts) if facts else interface
        self.gbps = port_gbps(facts) if facts else interface_gbps(interface)
        self.at, self.before = time.monotonic(), self._bytes()

    def _bytes(self) -> List[Optional[int]]:
        """Bytes out and in; None where nothing counts them."""
        found: List[Optional[int]] = []
        for data, other in (("port_xmit_data", "tx_bytes"), ("port_rcv_data", "rx_bytes")):
            words = ""
            if self.facts:
                words = read(SYSFS, self.facts["device"], "ports", str(self.facts["port"]), "counters", data)
            rest = read(NET_SYSFS, self.interface, "statistics", other) if self.interface else ""
            counted = [factor * int(text) for factor, text in ((4, words), (1, rest)) if text.isdigit()]
            found.append(sum(counted) if counted else None)
        return found

    def measure(self, wire: Wire, most_pct: float) -> Dict[str, Any]:
        """The busier direction's share of the rate, in per cent. Raises Refusal above `most_pct`.

        Where rate or counters are not known it says so, and the run goes on.
        """
        where = self.interface
        if self.facts:
            where = "%s/%d" % (self.facts["device"], self.facts["port"])
        if self.gbps is None:
            return {"load": "not known: the rate of %s is not" % where}
        wire.pause_until(self.at + LOAD_S)
        after, seconds = self._bytes(), time.monotonic() - self.at
        moved = [b - a for a, b in zip(self.before, after) if a is not None and b is not None and b >= a]
        if not moved:
            return {"load": "not known: nothing counts the bytes of %s" % where}
        gbps = max(moved) * 8 / seconds / 1e9
        found = {"load_pct": round(100 * gbps / self.gbps, 2), "load_gbps": round(gbps, 6), "load_s": round(seconds, 3)}
        if found["load_pct"] > most_pct:
            why = "others send %.3g Gb/s through %s, %.0f %% of its %g Gb/s; a run waits above %g %%"
            raise Refusal(
                "BUSY", why % (gbps, where, found["load_pct"], self.gbps, most_pct), limit_pct=most_pct, **found
            )
        return found


def pin(facts: Dict[str, Any]) -> str:
    """Stay on the CPUs next to the port, before memory is touched; returns the list, "" when there is none."""
    cpus: Set[int] = set()
    text = read(SYSFS, facts["device"], "device", "local_cpulist")
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            cpus.update(range(int(first), int(last or first) + 1))
    try:
        allowed = cpus & os.sched_getaffinity(0)
        if allowed:
            os.sched_setaffinity(0, allowed)
            return text
    except OSError:
        pass
    return ""


# --- memory -----------------------------------------------------------------------------------------------------------


class Buffer:
    """The bytes that are moved from or to: the pattern of a seed at the source, poison at the sink."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.memory = mmap.mmap(-1, size)
        if hasattr(self.memory, "madvise") and hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                self.memory.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def fill(self, block: bytes) -> None:
        """Write `block` again and again; every page is touched."""
        run = block * max(1, (1 << 22) // len(block))
        for start in range(0, self.size, len(run)):
            end = min(self.size, start + len(run))
            self.memory[start:end] = run[: end - start]

    def digest(self, nonce: bytes, piece_bytes: int, order: Optional[List[int]]) -> str:
        """SHA-256 over the nonce and the pieces in this order, so that no digest can be known beforehand."""
        sha = hashlib.sha256(nonce)
        view = memoryview(self.memory)
        try:
            if order is None:
                for start in range(0, self.size, 1 << 22):
                    sha.update(view[start : start + (1 << 22)])
            else:
                for piece in order:
                    sha.update(view[piece * piece_bytes : (piece + 1) * piece_bytes])
        finally:
            view.release()
        return sha.hexdigest()


def pattern(seed: int) -> bytes:
    """The seed's block of pseudo-random bytes."""
    return hashlib.shake_128(b"fabricui probe %d" % seed).digest(PATTERN_BYTES)


def shuffled(count: int, seed: int, what: str) -> List[int]:
    """The numbers below `count` in an order that the seed gives at both ends, on any version of Python."""
    rng = random.Random("%d %s" % (seed, what))  # noqa: S311  an order, not a secret
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


class Layout:
    """Which piece of the source goes where at the sink, and the order of posting."""

    def __init__(self, work: Dict[str, Any]) -> None:
        count, scatter = work["pieces"], work["mode"] == "scatter"
        self.posting = shuffled(count, work["order"], "posting") if scatter else list(range(count))
        self.slot_of = shuffled(count, work["order"], "slots") if scatter else list(range(count))

    def sources_by_slot(self) -> List[int]:
        """The source's pieces in the order of the sink's slots."""
        order = [0] * len(self.slot_of)
        for piece, slot in enumerate(self.slot_of):
            order[slot] = piece
        return order


def checked_work(request: Dict[str, Any]) -> Dict[str, Any]:
    """The numbers of a request's work, within what this program takes on."""
    work = dict(request.get("work") or {})
    for key in ("piece_bytes", "pieces", "total_bytes", "queue_pairs"):
        if not isinstance(work.get(key), int) or not 0 < work[key] <= MOST[key]:
            raise Refusal("PROTOCOL", "%s is %r, not 1 to %d" % (key, work.get(key), MOST[key]))
    if work["piece_bytes"] * work["pieces"] > MOST["buffer_bytes"]:
        raise Refusal("PROTOCOL", "the buffer would be larger than %d bytes" % MOST["buffer_bytes"])
    for key in ("seed", "order"):
        if not isinstance(work.get(key, 0), int):
            raise Refusal("PROTOCOL", "%s is no number" % key)
    if work.get("verb") not in ("WRITE", "READ") or work.get("mode") not in ("contiguous", "scatter", "latency"):
        raise Refusal("PROTOCOL", "verb %r or mode %r is not known" % (work.get("verb"), work.get("mode")))
    work["queue_pairs"] = min(work["queue_pairs"], work["pieces"])
    # A whole number of passes over the buffer, so that every piece is moved.
    buffer_bytes = work["piece_bytes"] * work["pieces"]
    work["passes"] = max(1, -(-work["total_bytes"] // buffer_bytes))
    return work


# --- RDMA -------------------------------------------------------------------------------------------------------------


class Verbs:
    """The host's pyverbs, whichever of its versions it is (v34 to v59 differ in the name of the enums' module)."""

    device: Any
    pd: Any
    mr: Any
    cq: Any
    qp: Any
    wr: Any
    addr: Any
    pyverbs_error: Any

    def __init__(self) -> None:
        names = ("device", "pd", "mr", "cq", "qp", "wr", "addr", "pyverbs_error")
        try:
            for name in names:
                setattr(self, name, importlib.import_module("pyverbs." + name))
            try:
                self.e = importlib.import_module("pyverbs.enums")
            except ImportError:
                self.e = importlib.import_module("pyverbs.libibverbs_enums")
        except Exception as error:  # an ImportError, or whatever a stand-in in its place raises
            raise Refusal("NO_RDMA", "%s cannot import pyverbs: %s" % (sys.executable, error))
        self.Error = self.pyverbs_error.PyverbsError
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            library = re.search(r"libibverbs\.so\.[0-9.]+", maps.read())
        self.facts = {
            "backend": "pyverbs", "enums": self.e.__name__, "python": platform.python_version(),
            "library": library.group(0) if library else "", "pyverbs": str(getattr(self.device, "__file__", "")),
        }  # fmt: skip


def code_of(error: Any) -> int:
    """The errno of a pyverbs error, 0 when it is lost."""
    return abs(int(getattr(error, "error_code", 0) or 0))


class RDMAEnd:
    """This end's protection domain, memory and queue pairs on one port."""

    kind = "RDMA"

    def __init__(self, request: Dict[str, Any], wire: Wire) -> None:
        self.wire = wire
        self.work = work = checked_work(request)
        self.is_initiator = request.get("role") == "initiator"
        self.is_source = self.is_initiator == (work["verb"] == "WRITE")
        self.port = choose_port(request.get("choice") or {})
        device, number = self.port["device"], self.port["port"]
        self._lock = self._claim(device, number)
        load = Load(self.port)
        self.port["pinned"] = pin(self.port)
        self.verbs = verbs = Verbs()
        self.context = self._open(device)
        self.attributes = self.context.query_device()
        self.before = verbs_port = self.context.query_port(number)
        self._check_against_kernel(device)
        pkey = request.get("pkey")
        is_ethernet = self.port["link_layer"] == "Ethernet"
        if is_ethernet:
            pkey = 0x7FFF  # the one entry that such a port has
        elif pkey is None:
            raise Refusal("UNSUPPORTED", "%s/%d is an InfiniBand port, and no P_Key was ordered" % (device, number))
        self.pkey_index, self.pkey_entry = pkey_entry(device, number, pkey)
        self.limits = request.get("limits") or {}
        self.buffer = Buffer(work["piece_bytes"] * work["pieces"])
        self.layout: Any = Layout(work) if "order" in work else None
        self.buffer.fill(pattern(work["seed"]) if self.is_source else bytes([POISON]) * PATTERN_BYTES)
        self.pd = verbs.pd.PD(self.context)
        self.mr = self._register()
        self._make_queue_pairs()
        self.psn = [random.SystemRandom().getrandbits(24) for _ in self.qps]
        self.setup = {
            "port": self.port, "verbs": verbs.facts, "uverbs": self.uverbs, "pkey_index": self.pkey_index,
            "pkey_entry": self.pkey_entry, "mtu": verbs_port.active_mtu, "lid": verbs_port.lid,
            "gids": gids(device, str(number)) if is_ethernet else [], "qpns": [qp.qp_num for qp in self.qps],
            "psns": self.psn, "rkey": self.mr.rkey, "memory": self.buffer.address, "bytes": self.buffer.size,
            "completions": "CQEX" if self.extended else "CQ", "rd_atomic": self.attributes.max_qp_rd_atom,
            "queue_depth": self.depth, "chain": self.chain,
        }  # fmt: skip
        if request.get("busy_above_pct") is not None:
            self.setup.update(load.measure(wire, float(request["busy_above_pct"])))

    def _claim(self, device: str, number: int) -> int:
        """Hold the port's folder locked until this process ends: two schedules cannot overlap, and nothing is left."""
        descriptor = os.open(os.path.join(SYSFS, device, "ports", str(number)), os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refusal("BUSY", "another probe uses %s/%d" % (device, number))
        return descriptor

    def _open(self, device: str) -> Any:
        try:
            return self.verbs.device.Context(name=device)
        except self.verbs.Error as error:
            nodes = ", ".join(node for node in listed(VERBS_SYSFS) if read(VERBS_SYSFS, node, "ibdev") == device)
            why = "verbs cannot open %s (/dev/infiniband/%s): %s" % (device, nodes or "?", error)
            raise Refusal("NO_RDMA", why)

    def _check_against_kernel(self, device: str) -> None:
        """Refuse what the kernel does not know: the open file must be the device's own, and both show one GUID."""
        self.uverbs = ""
        for descriptor in listed("/proc/self/fd"):
            try:
                target = os.readlink("/proc/self/fd/" + descriptor)
            except OSError:
                continue
            node = os.path.basename(target)
            if target.startswith("/dev/infiniband/uverbs") and read(VERBS_SYSFS, node, "ibdev") == device:
                number = os.fstat(int(descriptor)).st_rdev
                if read(VERBS_SYSFS, node, "dev") == "%d:%d" % (os.major(number), os.minor(number)):
                    self.uverbs = "%s %d:%d" % (target, os.major(number), os.minor(number))
        if not self.uverbs:
            raise Refusal("STUB_DEVICE", "verbs opened %s, but not through a device file of the kernel" % device)
        shown = canonical(self.attributes.node_guid)
        if shown != self.port["node_guid"]:
            why = "verbs shows node GUID %s for %s, the kernel %s" % (shown, device, self.port["node_guid"])
            raise Refusal("STUB_DEVICE", why)

    def _register(self) -> Any:
        e = self.verbs.e
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
        relaxed = access | getattr(e, "IBV_ACCESS_RELAXED_ORDERING", 0)
        failure = None
        for flags in (relaxed, access):
            try:
                return self.verbs.mr.MR(self.pd, self.buffer.size, flags, address=self.buffer.address)
            except self.verbs.Error as error:
                failure = error
        soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
        said = "%d bytes cannot be pinned: %s (ulimit -l is %s bytes)" % (
            self.buffer.size, failure, "unlimited" if soft == resource.RLIM_INFINITY else soft,
        )  # fmt: skip
        if soft != resource.RLIM_INFINITY and code_of(failure) in (0, errno.ENOMEM, errno.EPERM, errno.EAGAIN):
            raise Refusal("MEMLOCK", said, memlock=soft)
        raise Refusal("HOST_ERROR", said)

    def _make_queue_pairs(self) -> None:
        verbs, work, e = self.verbs, self.work, self.verbs.e
        count = work["queue_pairs"]
        fitting = 256 if work["piece_bytes"] <= 4096 else 64 if work["piece_bytes"] < 1 << 16 else 16
        chain = work.get("chain") or (fitting if work["piece_bytes"] < 1 << 20 else 1)
        # At least four chains a queue pair, so that one can be on its way while another is posted.
        self.chain = 1 if work["mode"] == "latency" else max(1, min(int(chain), work["pieces"] // count // 4, 1024))
        self.depth = 1 if work["mode"] == "latency" else 8
        most = max(1, self.attributes.max_qp_wr - 1)
        self.chain = min(self.chain, most)
        self.depth = max(1, min(self.depth, most // self.chain))
        wrs = self.chain * self.depth
        entries = min(count * (wrs + 1) + 1, self.attributes.max_cqe)
        self.extended = True
        try:
            self.cq = verbs.cq.CQEX(self.context, verbs.cq.CqInitAttrEx(cqe=entries))
            self.poll_attributes = verbs.cq.PollCqAttr()
        except (verbs.Error, AttributeError):
            self.extended = False
            self.cq = verbs.cq.CQ(self.context, entries)
        small = work["piece_bytes"] if work["piece_bytes"] <= 220 and work["mode"] == "latency" else 0
        self.inline = bool(small) and work["verb"] == "WRITE" and self.is_initiator
        self.qps: List[Any] = []
        while len(self.qps) < count:
            cap = verbs.qp.QPCap(max_send_wr=wrs + 1, max_recv_wr=1, max_inline_data=small if self.inline else 0)
            # sq_sig_all is 1 unless told: then every piece would complete.
            made = verbs.qp.QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=0)
            first = verbs.qp.QPAttr(port_num=self.port["port"])
            first.pkey_index = self.pkey_index
            first.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
            try:
                self.qps.append(verbs.qp.QP(self.pd, made, first))
            except verbs.Error as error:
                if self.inline and not self.qps:
                    self.inline = False
                    continue
                if code_of(error) in (errno.EOPNOTSUPP, errno.ENOSYS):
                    raise Refusal("UNSUPPORTED", "the device makes no reliable connections: %s" % error)
                raise Refusal("HOST_ERROR", "no queue pair could be made: %s" % error)

    def connect(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Bring every queue pair to RTS towards the peer's."""
        verbs, peer = self.verbs, request["peer"]
        mtu = int(request["mtu"])
        for number, qp in enumerate(self.qps):
            attr = verbs.qp.QPAttr(port_num=self.port["port"])
            attr.dest_qp_num, attr.rq_psn, attr.sq_psn = peer["qpns"][number], peer["psns"][number], self.psn[number]
            attr.path_mtu = mtu
            attr.max_dest_rd_atomic = attr.max_rd_atomic = max(1, min(16, int(request["rd_atomic"])))
            attr.min_rnr_timer, attr.rnr_retry = 12, 7
            attr.timeout, attr.retry_cnt = int(self.limits.get("timeout", 14)), int(self.limits.get("retry_cnt", 7))
            if request.get("gid_index") is None:
                attr.ah_attr = verbs.addr.AHAttr(
                    dlid=peer["lid"], sl=int(request.get("sl", 0)), port_num=self.port["port"], is_global=0
                )
            else:
                route = verbs.addr.GlobalRoute(
                    dgid=verbs.addr.GID(request["peer_gid"]), sgid_index=request["gid_index"], hop_limit=64,
                    traffic_class=int(request.get("traffic_class", 0)),
                )  # fmt: skip
                attr.ah_attr = verbs.addr.AHAttr(
                    gr=route, is_global=1, port_num=self.port["port"], sl=int(request.get("sl", 0))
                )
            try:
                qp.to_rtr(attr)
                qp.to_rts(attr)
            except verbs.Error as error:
                is_refused = code_of(error) == errno.EINVAL and mtu != self.before.active_mtu
                code = "MTU_MISMATCH" if is_refused else "HOST_ERROR"
                raise Refusal(code, "the queue pair does not connect at MTU %d: %s" % (MTU_BYTES.get(mtu, mtu), error))
        self.peer = peer
        self.counters_before = counters(self.port["device"], self.port["port"])
        if not self.is_initiator:
            self.wire.watch = self._require_port
        return {"counters": self.counters_before, "bad_pkey": self.before.bad_pkey_cntr}

    def _require_port(self) -> None:
        """Refuse to go on when the port went away: the initiator would only see that nothing answers."""
        state = read(SYSFS, self.port["device"], "ports", str(self.port["port"]), "state")
        if not state:
            raise Refusal("NO_DEVICE", "device %s went away during the run" % self.port["device"])
        if not state.endswith("ACTIVE"):
            raise Refusal("PORT_DOWN", "the port went to “%s” during the run" % state)

    # The initiator

    def _write_request(self, number: int, piece: int, wr_id: int, next_wr: Any, length: Optional[int] = None) -> Any:
        verbs, e, size = self.verbs, self.verbs.e, self.work["piece_bytes"]
        slot = self.layout.slot_of[piece]
        here, there = (piece, slot) if self.work["verb"] == "WRITE" else (slot, piece)
        flags = 0 if next_wr is not None else e.IBV_SEND_SIGNALED
        if self.inline:
            flags |= e.IBV_SEND_INLINE
        opcode = e.IBV_WR_RDMA_WRITE if self.work["verb"] == "WRITE" else e.IBV_WR_RDMA_READ
        sge = verbs.wr.SGE(self.buffer.address + here * size, length or size, self.mr.lkey)
        wr = verbs.wr.SendWR(wr_id=wr_id, opcode=opcode, num_sge=1, sg=[sge], send_flags=flags, next_wr=next_wr)
        wr.set_wr_rdma(self.peer["rkey"], self.peer["memory"] + there * size)
        self.kept += [sge, wr]  # next_wr holds no reference: the chain dangles without this list
        return wr

    def _build(self) -> List[List[Tuple[int, Any]]]:
        """The chains of each queue pair, built once: (wr_id, first request) in posting order."""
        self.kept: List[Any] = []
        chains: List[List[Tuple[int, Any]]] = [[] for _ in self.qps]
        wr_id = 0
        share = -(-self.work["pieces"] // len(self.qps))
        for number in range(len(self.qps)):
            mine = self.layout.posting[number * share : (number + 1) * share]
            for start in range(0, len(mine), self.chain):
                head = None
                for piece in reversed(mine[start : start + self.chain]):
                    head = self._write_request(number, piece, wr_id, head)
                chains[number].append((wr_id, head))
                wr_id += 1
        return chains

    def _completion(self) -> Optional[Tuple[int, int, int]]:
        """(wr_id, status, vendor error) of the next completion, None while there is none."""
        if self.extended:
            if self.cq.start_poll(self.poll_attributes):
                return None
            found = self.cq.wr_id, self.cq.status, self.cq.read_vendor_err() if self.cq.status else 0
            self.cq.end_poll()  # only after a start that found something
            return found
        count, completions = self.cq.poll(1)
        return (completions[0].wr_id, completions[0].status, completions[0].vendor_err) if count else None

    def attempt(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """One request of at most 8 bytes on the first queue pair: its status and how long it took."""
        deadline = time.monotonic() + float(request["timeout_s"])
        self.kept = []
        piece = self.layout.posting[0]
        wr = self._write_request(0, piece, 1 << 32, None, length=min(8, self.work["piece_bytes"]))
        begun = nanoseconds()
        self.qps[0].post_send(wr)
        while True:
            found = self._completion()
            if found is not None:
                return {"status": found[1], "status_name": STATUS.get(found[1], "?"), "vendor_err": found[2],
                        "took_ns": nanoseconds() - begun}  # fmt: skip
            self.wire.look(deadline)

    def go(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Move everything and time it. A first tiny request tells a dead way from one that takes small packets only."""
        deadline = time.monotonic() + float(request["timeout_s"])
        first = self.attempt(request)
        if first["status"]:
            reason = "the first 8 bytes ended with %s" % first["status_name"]
            raise Refusal("TRANSFER_FAILED", reason, is_first=True, **first)
        begun = nanoseconds()
        chains = self._build()
        built = nanoseconds() - begun
        gc.disable()
        self._run(chains, 1, deadline)
        seconds, posting, samples = self._run(chains, self.work["passes"], deadline)
        gc.enable()
        moved = self.buffer.size * self.work["passes"]
        pieces = self.work["pieces"] * self.work["passes"]
        result = {
            "bytes": moved, "carried": moved + self.buffer.size, "pieces": pieces, "chains": len(samples),
            "chain": self.chain, "seconds": seconds, "post_ns": posting / max(1, len(samples)),
            "post_share": posting / 1e9 / seconds if seconds else 1.0, "build_ns": built / self.work["pieces"],
            "first_ns": first["took_ns"],
        }  # fmt: skip
        result.update(statistics_of(samples))
        return result

    def _run(
        self, chains: List[List[Tuple[int, Any]]], passes: int, deadline: float
    ) -> Tuple[float, int, Sequence[int]]:
        """Post every chain `passes` times; (seconds, nanoseconds inside post, nanoseconds of each chain)."""
        quota = [len(mine) * passes for mine in chains]
        posted, outstanding = [0] * len(chains), [0] * len(chains)
        owner = {wr_id: number for number, mine in enumerate(chains) for wr_id, _ in mine}
        room = [min(self.depth, len(mine)) for mine in chains]
        posts = [qp.post_send for qp in self.qps]
        started = array.array("q", [0]) * len(owner)
        samples, posting, left = array.array("q"), 0, sum(quota)
        completion, look = self._completion, self.wire.look
        idle = 0
        begun = nanoseconds()
        while left:
            for number, mine in enumerate(chains):
                while outstanding[number] < room[number] and posted[number] < quota[number]:
                    wr_id, head = mine[posted[number] % len(mine)]
                    at = nanoseconds()
                    posts[number](head)
                    posting += nanoseconds() - at
                    started[wr_id] = at
                    posted[number] += 1
                    outstanding[number] += 1
            found = completion()
            if found is None:
                idle += 1
                if not idle & 63:
                    look(deadline)
                continue
            at = nanoseconds()
            wr_id, status, vendor_err = found
            if status:
                self._failed(status, vendor_err, (at - begun) / 1e9, len(samples))
            samples.append(at - started[wr_id])
            outstanding[owner[wr_id]] -= 1
            left -= 1
            if not left & 255:
                look(deadline)
        return (nanoseconds() - begun) / 1e9, posting, samples

    def _failed(self, status: int, vendor_err: int, after_s: float, completed: int) -> None:
        name = STATUS.get(status, str(status))
        reason = "a completion came with %s (vendor error 0x%x) after %.3f s" % (name, vendor_err, after_s)
        facts = {"status": status, "status_name": name, "vendor_err": vendor_err, "completed": completed}
        raise Refusal("TRANSFER_FAILED", reason, **facts)

    # Both ends

    def count(self) -> Dict[str, Any]:
        """The counters after the run, and whether the P_Key still stands at its index."""
        device, number = self.port["device"], self.port["port"]
        entry = pkey_entry(device, number, self.pkey_entry)
        return {
            "counters": counters(device, number), "bad_pkey": self.context.query_port(number).bad_pkey_cntr,
            "pkey_index": entry[0], "pkey_entry": entry[1],
            "qp_states": [int(qp.query(self.verbs.e.IBV_QP_STATE)[0].qp_state) for qp in self.qps],
        }  # fmt: skip

    def verify(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """The digest of what the sink holds, or, at the source, of what it must hold."""
        return verified(self, request)


def verified(end: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    """See RDMAEnd.verify; the nonce comes only now, so nothing could be prepared."""
    nonce = bytes.fromhex(request["nonce"])
    order = end.layout.sources_by_slot() if end.is_source and end.layout and end.work["mode"] == "scatter" else None
    head = bytes(end.buffer.memory[:64])
    return {
        "digest": end.buffer.digest(nonce, end.work["piece_bytes"], order), "is_source": end.is_source,
        "is_untouched": not end.is_source and head == bytes([POISON]) * len(head),
    }  # fmt: skip


def bucket_of(value: int) -> int:
    """8 buckets per power of two (the same as probes.histogram)."""
    if value < 8:
        return value
    exponent = value.bit_length() - 1
    return (exponent - 2) * 8 + ((value >> (exponent - 3)) & 7)


def statistics_of(samples: Sequence[int]) -> Dict[str, Any]:
    """Nearest-rank percentiles and the histogram of nanoseconds."""
    ordered = sorted(samples)
    if not ordered:
        return {"samples": 0}
    found: Dict[str, Any] = {"samples": len(ordered), "min_ns": ordered[0], "max_ns": ordered[-1]}
    for name, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        found[name] = ordered[max(0, math.ceil(share * len(ordered)) - 1)]
    counts: Dict[int, int] = {}
    for value in ordered:
        bucket = bucket_of(value)
        counts[bucket] = counts.get(bucket, 0) + 1
    found["histogram"] = sorted(counts.items())
    return found


# --- TCP, for a baseline with its own name ----------------------------------------------------------------------------


class TCPEnd:
    """This end of a TCP baseline over a named interface. It says what that interface does, nothing about RDMA."""

    kind = "TCP"
    TOKEN_BYTES = 16

    def __init__(self, request: Dict[str, Any], wire: Wire) -> None:
        self.wire = wire
        self.work = checked_work(request)
        self.is_initiator = self.is_source = request.get("role") == "initiator"
        self.layout = None
        self.interface = (request.get("choice") or {}).get("interface") or ""
        if not self.interface:
            raise Refusal("PROTOCOL", "a TCP baseline needs a named interface")
        self.address = self._address()
        load = Load(interface=self.interface)
        self.buffer = Buffer(self.work["piece_bytes"] * self.work["pieces"])
        self.buffer.fill(pattern(self.work["seed"]) if self.is_source else bytes([POISON]) * PATTERN_BYTES)
        self.token = bytes.fromhex(request["token"])
        self.setup = {
            "interface": self.interface, "address": self.address, "speed_mbit_s": self._speed(),
            "bytes": self.buffer.size, "backend": "TCP sockets", "python": platform.python_version(),
        }  # fmt: skip
        if not self.is_initiator:
            self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((self.address, int(request.get("tcp_port") or 0)))
            self.listener.listen(8)
            self.setup["tcp_port"] = self.listener.getsockname()[1]
        if request.get("busy_above_pct") is not None:
            self.setup.update(load.measure(wire, float(request["busy_above_pct"])))

    def _address(self) -> str:
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            name = struct.pack("256s", self.interface.encode("ascii", "replace")[:15])
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, name)[20:24])  # SIOCGIFADDR
        except OSError as error:
            raise Refusal("NO_DEVICE", "interface %s has no IPv4 address here: %s" % (self.interface, error.strerror))
        finally:
            probe.close()

    def _speed(self) -> Optional[int]:
        text = read(NET_SYSFS, self.interface, "speed")
        return int(text) if text.isdigit() else None

    def _counters(self) -> Dict[str, int]:
        where = (NET_SYSFS, self.interface, "statistics")
        return {name: int(read(*where + (name,)) or "0") for name in ("tx_bytes", "rx_bytes")}

    def connect(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Open the connections; the target does so in `go`, while the initiator comes."""
        before = self._counters()
        self.streams = []
        try:
            for _ in range(self.work["queue_pairs"] if self.is_initiator else 0):
                peer = (request["peer"]["address"], request["peer"]["tcp_port"])
                stream = socket.create_connection(peer, timeout=5, source_address=(self.address, 0))
                stream.sendall(self.token)
                self.streams.append(stream)
        except OSError as error:
            raise Refusal("UNREACHABLE", "no TCP connection from %s to %s: %s" % (self.address, peer[0], error))
        return {"counters": before}

    def go(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Send the buffer again and again, or take it in; both until each connection has carried its share."""
        deadline = time.monotonic() + float(request["timeout_s"])
        if self.is_initiator:
            self._require_peer(deadline)
        else:
            self._accept(deadline)
        share = -(-self.buffer.size // len(self.streams))
        view = memoryview(self.buffer.memory)
        parts = [view[start : start + share] for start in range(0, self.buffer.size, share)]
        todo = {stream: [len(part) * self.work["passes"], part, 0] for stream, part in zip(self.streams, parts)}
        for stream in self.streams:
            stream.setblocking(False)
        begun = nanoseconds()
        while todo:
            self.wire.look(deadline)
            ready = select.select(
                [] if self.is_initiator else list(todo), list(todo) if self.is_initiator else [], [], LOOK_S
            )
            for stream in ready[0] + ready[1]:
                self._move(stream, todo)
        seconds = (nanoseconds() - begun) / 1e9
        for stream in self.streams:  # one byte back tells that all has arrived, and ends the time
            stream.settimeout(max(0.1, deadline - time.monotonic()))
            if self.is_initiator:
                if stream.recv(1) != b"!":
                    raise Refusal("PEER_LOST", "the TCP connection ended before all had arrived")
                seconds = (nanoseconds() - begun) / 1e9
            else:
                stream.sendall(b"!")
        moved = self.buffer.size * self.work["passes"]
        pieces = self.work["pieces"] * self.work["passes"]
        return {"bytes": moved, "carried": moved, "pieces": pieces, "seconds": seconds, "streams": len(self.streams)}

    def _require_peer(self, deadline: float) -> None:
        """Wait for the token on each connection: the address was the peer's word, and may be a third machine's."""
        for stream in self.streams:
            while not select.select([stream], [], [], LOOK_S)[0]:
                self.wire.look(deadline)
            if stream.recv(self.TOKEN_BYTES, socket.MSG_WAITALL) != self.token:
                raise Refusal("PROTOCOL", "another program than the peer's answers at its address")

    def _accept(self, deadline: float) -> None:
        self.listener.setblocking(False)
        while len(self.streams) < self.work["queue_pairs"]:
            self.wire.look(deadline)
            if not select.select([self.listener], [], [], LOOK_S)[0]:
                continue
            stream = self.listener.accept()[0]
            stream.settimeout(2)
            try:
                is_ours = stream.recv(self.TOKEN_BYTES, socket.MSG_WAITALL) == self.token
            except OSError:
                is_ours = False
            if is_ours:
                stream.sendall(self.token)
                self.streams.append(stream)
            else:
                stream.close()

    def _move(self, stream: socket.socket, todo: Dict[socket.socket, List[Any]]) -> None:
        left, part, at = todo[stream]
        try:
            count = stream.send(part[at:]) if self.is_initiator else stream.recv_into(part[at:])
        except BlockingIOError:
            return
        except OSError as error:
            raise Refusal("PEER_LOST", "the TCP connection broke: %s" % error)
        if not count:
            raise Refusal("PEER_LOST", "the TCP connection ended early")
        todo[stream] = [left - count, part, (at + count) % len(part)]
        if left <= count:
            del todo[stream]

    def count(self) -> Dict[str, Any]:
        """The interface's own byte counters after the run."""
        return {"counters": self._counters()}

    def verify(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """See RDMAEnd.verify."""
        return verified(self, request)


# --- the conversation -------------------------------------------------------------------------------------------------


def hello() -> Dict[str, Any]:
    """What this host is and has; nothing is opened."""
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return {
        "did": "hello", "protocol": PROTOCOL, "host": platform.node()[:64], "kernel": platform.release(),
        "python": platform.python_version(), "pid": os.getpid(),
        "memlock": None if soft == resource.RLIM_INFINITY else soft, "ports": all_ports(),
    }  # fmt: skip


def converse(wire: Wire) -> None:
    """Answer requests until `bye`."""
    end = None
    patience_s = 30.0
    while True:
        request = wire.receive(patience_s)
        what = request["do"]
        if what == "hello":
            answer = hello()
        elif what == "bye":
            wire.send({"did": "bye"})
            return
        elif what == "setup" and end is None:
            patience_s = min(600.0, float(request.get("patience_s", 30.0)))
            end = (TCPEnd if request.get("kind") == "TCP" else RDMAEnd)(request, wire)
            answer = end.setup
        elif what in ("connect", "go", "attempt", "verify") and end is not None:
            answer = getattr(end, what)(request)
        elif what == "counters" and end is not None:
            answer = end.count()
        else:
            raise Refusal("PROTOCOL", "“%s” cannot be done now".encode("ascii", "replace").decode() % what[:40])
        answer["did"] = what
        wire.send(answer)


def main(arguments: List[str]) -> int:
    """Run until `bye`, the end of stdin, a refusal, or the seconds given as the only argument."""
    bound_s = float(arguments[0]) if arguments else 120.0
    # Not even a call that never returns outlives this: the default action of SIGALRM ends the process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, bound_s))
    wire = Wire()
    try:
        converse(wire)
    except ControllerGone:
        return 0
    except Refusal as refusal:
        wire.send(dict(refusal.facts, failed=refusal.code, reason=refusal.reason[:1000]))
        return 1
    except MemoryError:
        wire.send({"failed": "HOST_ERROR", "reason": "the host has too little memory for the buffer"})
        return 1
    except BrokenPipeError:
        return 0
    except Exception as error:  # whatever it was, the controller hears its name
        wire.send({"failed": "HOST_ERROR", "reason": ("%s: %s" % (type(error).__name__, error))[:1000]})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
