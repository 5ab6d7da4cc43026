"""Whether a finished run may be believed: all of kvprobe 3.8, and nothing faster than line or light. Pure.

Everything judged here was said by the two servers. It catches accidents and stand-ins, and one lying end that claims
bytes which did not arrive; times are the sender's word, and who has root on both servers can forge all of a run. The
page says so (`probes/forgeable.py`).
"""

import math
from collections.abc import Iterator
from typing import Any

from probes.crossing import Crossing
from probes.terms import Kind, Order, Outcome, Verb

LIGHT_M_PER_NS = 0.299792458
LEAST_MEDIAN_NS = 1000  # a completion is a round trip through two HCAs (kvprobe, 2.4)
LINE_TOLERANCE = 1.01
CLOCK_TOLERANCE = 1.02
SOFT_LABEL = "Soft-RoCE, software: shows the path, not the speed"
# With these evidence is judged; a run that lacks one of them is refused with its name.
_PORT_PARTS = ("device", "port", "link_layer", "rate", "node_guid", "port_guid")

Verdict = tuple[Outcome, str]


def assemble(order: Order, setups: dict[str, Any], crossing: Crossing | None, after: dict[str, Any]) -> dict[str, Any]:
    """The evidence block of a run. `setups` and `after` map "sender" and "target" to what the end said."""
    block: dict[str, Any] = {"kind": order.kind.value, "seed": str(order.seed), "profile": order.profile.name}
    for end in ("sender", "target"):
        said, later = setups.get(end, {}), after.get(end, {})
        kept = {k: said[k] for k in _EVIDENCE_OF_SETUP if k in said}
        block[end] = {**said.get("port", {}), **said.get("verbs", {}), **kept, **later}
    if crossing is not None:
        block["mtu"] = crossing.mtu_bytes
        block["mtu_active"] = [setups[end]["mtu"] for end in ("sender", "target")]
        for end, gid in (("sender", crossing.sender_gid), ("target", crossing.target_gid)):
            if gid is not None:
                block[end] |= {"gid": gid.address, "gid_index": gid.index, "interface": gid.interface}
    if any(block[end].get("is_software") for end in ("sender", "target")):
        block["label"] = SOFT_LABEL
    return block


_EVIDENCE_OF_SETUP = (
    "backend", "uverbs", "pkey_index", "pkey_entry", "lid", "qpns", "completions", "chain", "queue_depth", "interface",
    "address", "speed_mbit_s", "streams", "python", "load", "load_pct", "load_gbps", "load_s",
)  # fmt: skip


def judge(order: Order, evidence: dict[str, Any], result: dict[str, Any], *, seen_s: float) -> Verdict:
    """The outcome of a run that came to its end, with the reason when it is not believed.

    `seen_s` is how long the controller itself waited for the result, on its own monotonic clock.
    """
    checksum = evidence.get("checksum", {})
    if not checksum.get("sent") or not checksum.get("held"):
        return Outcome.REFUSED_EVIDENCE, "the checksum of the target's memory is missing"
    if checksum["sent"] != checksum["held"]:
        untouched = " (it was never written)" if checksum.get("is_untouched") else ""
        return Outcome.CORRUPT, f"the memory that was written does not hold what was sent{untouched}"
    if order.kind is Kind.TCP:
        missing = list(_missing_tcp(evidence, result))
    else:
        missing = [*_missing(evidence, result), *_wrong(order, evidence, result)]
    if missing:
        return Outcome.REFUSED_EVIDENCE, "; ".join(missing)
    implausible = list(_implausible(order, evidence, result, seen_s))
    if implausible:
        return Outcome.IMPLAUSIBLE, "; ".join(implausible)
    return (Outcome.TCP_OK if order.kind is Kind.TCP else Outcome.OK), ""


def _missing(evidence: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    for end in ("sender", "target"):
        parts = evidence.get(end, {})
        for name in (*_PORT_PARTS, "uverbs", "library", "qpns", "pkey_entry"):
            if not parts.get(name):
                yield f"{end}: {name} is missing"
        if rate_gbps(parts) is None:
            yield f"{end}: “{parts.get('rate', '')}” is no rate"
        if "pkey_index" not in parts:
            yield f"{end}: the P_Key's index is missing"
        if not (parts.get("lid") or parts.get("gid")):
            yield f"{end}: neither LID nor GID"
        if not parts.get("counters_before") or not parts.get("counters_after"):
            yield f"{end}: the port's counters are missing"
    if not evidence.get("mtu"):
        yield "the path MTU is missing"
    for name in ("bytes", "carried", "seconds", "samples", "p50_ns", "histogram"):
        if not result.get(name):
            yield f"the result has no {name}"


def _missing_tcp(evidence: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    for end in ("sender", "target"):
        for name in ("interface", "address", "counters_before", "counters_after"):
            if not evidence.get(end, {}).get(name):
                yield f"{end}: {name} is missing"
    for name in ("bytes", "seconds"):
        if not result.get(name):
            yield f"the result has no {name}"
    counted = (("sender", "tx_bytes"), ("target", "rx_bytes"))
    for end, name in counted:
        parts = evidence.get(end, {})
        moved = parts.get("counters_after", {}).get(name, 0) - parts.get("counters_before", {}).get(name, 0)
        if moved < int(result.get("carried") or 0):
            yield f"{end}: {name} of {parts.get('interface')} moved by {moved} bytes only"


def _wrong(order: Order, evidence: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    sender, target = evidence.get("sender", {}), evidence.get("target", {})
    if sender.get("node_guid") == target.get("node_guid"):
        yield "both ends are the same HCA"
    for end, choice in (("sender", order.sender), ("target", order.target)):
        parts = evidence.get(end, {})
        # The program was told which device to take; that it took it is looked at here as well.
        for name, registered in (("node_guid", choice.node_guid), ("port_guid", choice.port_guid)):
            if registered and parts.get(name) != registered:
                yield f"{end}: its {name} is {parts.get(name)}, registered is {registered}"
        if parts.get("pkey_after") != [parts.get("pkey_index"), parts.get("pkey_entry")]:
            yield f"{end}: the P_Key or its index changed during the run"
        if order.pkey is not None and (parts.get("pkey_entry") or 0) & 0x7FFF != order.pkey:
            yield f"{end}: another P_Key than the ordered one"
    wanted = order.profile.piece_bytes * order.profile.pieces
    if int(result.get("bytes") or 0) < wanted or int(result.get("carried") or 0) < int(result.get("bytes") or 0):
        yield "fewer bytes than the profile's buffer were moved"
    source, sink = (sender, target) if order.profile.verb is Verb.WRITE else (target, sender)
    names = ("sender", "target") if order.profile.verb is Verb.WRITE else ("target", "sender")
    for name, parts, data, packets in (
        (names[0], source, "port_xmit_data", "sent_pkts"),
        (names[1], sink, "port_rcv_data", "rcvd_pkts"),
    ):
        said = _too_few(parts, data, packets, int(result.get("carried") or 0), int(evidence.get("mtu") or 0))
        if said:
            yield f"{name}: {said}"


def _too_few(parts: dict[str, Any], data: str, packets: str, carried: int, mtu: int) -> str:
    """Why the counters do not bear out that the bytes went through this port; "" when they do.

    Data counters count 4 bytes each. Soft-RoCE has none; its packet counters must allow for the bytes.
    """
    before, after = parts.get("counters_before") or {}, parts.get("counters_after") or {}
    for name, unit in ((data, 4), (packets, mtu)):
        if name in before and name in after:
            moved = (after[name] - before[name]) * unit
            return "" if moved >= carried else f"{name} moved by {moved} bytes at most, {carried} were carried"
    return f"the port counts neither {data} nor {packets}"


def _implausible(order: Order, evidence: dict[str, Any], result: dict[str, Any], seen_s: float) -> Iterator[str]:
    seconds = float(result["seconds"])
    if not math.isfinite(seconds) or seconds <= 0:
        yield f"{seconds} seconds is no duration"
        return
    if seconds > seen_s * CLOCK_TOLERANCE + 0.05:
        yield f"the server measured {seconds:.3f} s where only {seen_s:.3f} s went by here: its clock runs fast"
    if order.kind is Kind.TCP:
        return
    line = line_gbps(evidence)
    rate = int(result["bytes"]) * 8 / seconds / 1e9
    if line is not None and rate > line * LINE_TOLERANCE:
        yield f"{rate:.1f} Gb/s is faster than the line ({line:g} Gb/s)"
    least = 2 * order.cable_m / LIGHT_M_PER_NS
    if int(result["min_ns"]) < least:
        yield f"{result['min_ns']} ns is faster than light through {order.cable_m:g} m and back"
    if int(result["p50_ns"]) < LEAST_MEDIAN_NS:
        yield f"a median of {result['p50_ns']} ns is below what two HCAs need"


def line_gbps(evidence: dict[str, Any]) -> float | None:
    """The slower port's own rate in Gb/s; None for software devices, whose rate is made up."""
    ends = [evidence.get(end, {}) for end in ("sender", "target")]
    rates = [rate_gbps(parts) for parts in ends]
    if any(parts.get("is_software") for parts in ends) or None in rates:
        return None
    return min(rate for rate in rates if rate is not None)


def rate_gbps(parts: dict[str, Any]) -> float | None:
    """The number in "400 Gb/sec (4X NDR)"; None when there is none."""
    try:
        rate = float(str(parts.get("rate", "")).split()[0])
    except (ValueError, IndexError):
        return None
    return rate if math.isfinite(rate) and rate > 0 else None
