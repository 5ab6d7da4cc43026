"""Settings to paste for NCCL and UCX: pure, from the devices of one server and where its P_Key stands on each.

Sources. NCCL's environment variables: NCCL_IB_HCA takes `=device:port,…` for exactly these; NCCL_IB_PKEY is given to
the queue pair as it is (`pkey_index`, net_ib), so it is the *index* in the P_Key table, one for all devices, and 0 when
not set. UCX's configuration: UCX_NET_DEVICES takes device:port,…; UCX_IB_PKEY is the key's *value* without the
membership bit (0 to 0x7fff), and without it UCX takes the first key that it is a full member of.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

type Note = Literal["limited", "others_left_out", "not_read", "default_only"]


@dataclass(frozen=True, slots=True)
class Place:
    """A port of the server, and the index of the partition's key there; None while it was not read there."""

    device: str
    number: int
    index: int | None


@dataclass(frozen=True, slots=True)
class Paste:
    """What to paste, and words for what it does not say. `left_out` are `device:port` that NCCL cannot take along."""

    nccl: str
    ucx: str
    left_out: tuple[str, ...]
    is_limited: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to paste yet."""
        return not self.nccl


def settings_for(*, places: Collection[Place], pkey: str, is_limited: bool) -> Paste:
    """The settings for one server in one partition (`pkey` as 0x…); empty while no port was read with the key.

    NCCL knows one index for all its devices: the ports that share the index most of them have are named, and the others
    left out and told.
    """
    by_index: dict[int, list[str]] = defaultdict(list)
    for place in sorted(places, key=lambda one: (one.device, one.number)):
        if place.index is not None:
            by_index[place.index].append(f"{place.device}:{place.number}")
    if not by_index:
        return Paste("", "", (), is_limited)
    index = min(by_index, key=lambda one: (-len(by_index[one]), one))
    everywhere = sorted(name for names in by_index.values() for name in names)
    return Paste(
        nccl=f"NCCL_IB_HCA=={','.join(by_index[index])}\nNCCL_IB_PKEY={index}\n",
        ucx=f"UCX_NET_DEVICES={','.join(everywhere)}\nUCX_IB_PKEY={pkey}\n",
        left_out=tuple(name for name in everywhere if name not in by_index[index]),
        is_limited=is_limited,
    )
