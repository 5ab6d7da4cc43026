"""What one end is told about the other: path MTU, addresses, P_Keys. Pure; refuses pairs that cannot be connected."""

from dataclasses import dataclass
from typing import Any

from probes.terms import Order, Outcome

MTU_BYTES = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
_FULL = 0x8000
_FAMILIES = ("ipv4", "ipv6", "link")  # in the order of preference


class CannotCross(Exception):
    """The two ends cannot be connected; `outcome` is the run's."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


@dataclass(frozen=True, slots=True)
class Gid:
    """One RoCE v2 address of a port: its index there, text, family and interface."""

    index: int
    address: str
    family: str
    interface: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """The `connect` requests of both ends, and what of them belongs into the evidence."""

    sender: dict[str, Any]
    target: dict[str, Any]
    mtu_bytes: int
    sender_gid: Gid | None
    target_gid: Gid | None


def cross(order: Order, sender: dict[str, Any], target: dict[str, Any]) -> Crossing:
    """Cross the answers to `setup` of an RDMA run. Raises CannotCross, KeyError or TypeError for nonsense."""
    layers = sender["port"]["link_layer"], target["port"]["link_layer"]
    if layers[0] != layers[1]:
        raise CannotCross(Outcome.UNSUPPORTED, f"the sender's port is {layers[0]}, the target's {layers[1]}")
    is_ethernet = layers[0] == "Ethernet"
    if is_ethernet and order.pkey is not None:
        raise CannotCross(Outcome.UNSUPPORTED, "P_Keys do not apply on the link layer Ethernet, and one was ordered")
    _refuse_loopback(sender, target)
    if order.target_pkey is None:  # else it must fail, and the ends are told different ones on purpose
        _require_common_pkey(sender, target)
    sender_gid = target_gid = None
    if is_ethernet:
        sender_gid, target_gid = choose_gids(sender["gids"], target["gids"], order)
    elif not (sender["lid"] and target["lid"]):
        raise CannotCross(Outcome.NO_ADDRESS, "a port has no LID: the subnet manager has not brought it up")
    mtu = min(int(sender["mtu"]), int(target["mtu"]))
    common = {
        "do": "connect",
        "mtu": mtu,
        "sl": order.sl,
        "traffic_class": order.traffic_class,
        "rd_atomic": min(int(sender["rd_atomic"]), int(target["rd_atomic"])),
    }

    def request(own: Gid | None, peer: Gid | None, setup: dict[str, Any]) -> dict[str, Any]:
        facts = {name: setup[name] for name in ("qpns", "psns", "rkey", "memory", "lid")}
        gid = {"gid_index": own.index, "peer_gid": peer.address} if own and peer else {"gid_index": None}
        return {**common, **gid, "peer": facts}

    return Crossing(
        sender=request(sender_gid, target_gid, target),
        target=request(target_gid, sender_gid, sender),
        mtu_bytes=MTU_BYTES.get(mtu, 0),
        sender_gid=sender_gid,
        target_gid=target_gid,
    )


def _refuse_loopback(sender: dict[str, Any], target: dict[str, Any]) -> None:
    """A transfer inside one HCA never sees the fabric."""
    guids = sender["port"]["node_guid"], target["port"]["node_guid"]
    if guids[0] == guids[1]:
        raise CannotCross(Outcome.REFUSED_EVIDENCE, f"both ends are the same HCA (node GUID {guids[0]})")


def _require_common_pkey(sender: dict[str, Any], target: dict[str, Any]) -> None:
    """Two limited members cannot talk (kvprobe, 3.4)."""
    entries = int(sender["pkey_entry"]), int(target["pkey_entry"])
    if (entries[0] ^ entries[1]) & 0x7FFF:
        raise CannotCross(
            Outcome.NO_COMMON_PKEY, f"the ends use different P_Keys: 0x{entries[0]:04x}, 0x{entries[1]:04x}"
        )
    if not (entries[0] | entries[1]) & _FULL:
        raise CannotCross(Outcome.NO_COMMON_PKEY, f"both ends are limited members of P_Key 0x{entries[0] & 0x7FFF:04x}")


def choose_gids(sender: list[Any], target: list[Any], order: Order) -> tuple[Gid, Gid]:
    """The two RoCE v2 addresses to use: of one family, the ordered interface's, and as near to each other as there are.

    The indexes may differ between the ends. Raises CannotCross.
    """
    ours = _usable(sender, order.sender.interface)
    theirs = _usable(target, order.target.interface)
    for family in _FAMILIES:
        pairs = [(a, b) for a in ours for b in theirs if a.family == b.family == family]
        if pairs:
            return max(pairs, key=lambda pair: (_common_bits(*pair), -pair[0].index, -pair[1].index))
    seen = [", ".join(sorted({gid.family for gid in gids})) or "none" for gids in (ours, theirs)]
    raise CannotCross(
        Outcome.NO_ADDRESS, f"no RoCE v2 addresses of one family: the sender has {seen[0]}, the target {seen[1]}"
    )


def _usable(gids: list[Any], interface: str) -> list[Gid]:
    found = [Gid(int(index), str(address), str(family), str(ndev)) for index, address, family, ndev in gids]
    return [gid for gid in found if interface in ("", gid.interface)]


def _common_bits(one: Gid, other: Gid) -> int:
    """How many leading bits two addresses share."""
    values = [int(gid.address.replace(":", ""), 16) for gid in (one, other)]
    return 128 - (values[0] ^ values[1]).bit_length()
