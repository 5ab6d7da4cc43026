"""What a prompt of a model would cost on a pair: its bytes at the rate of the profile with the nearest pieces. Pure.

A profile that was not measured gives no number: a rate at 1 MiB says nothing about pieces of 4 KiB (kvprobe 0.5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from probes.kv_models import MODELS, KVModel, cost_ms, transfer, wire_floor_ms
from probes.profiles import BLOCK_TOKENS, KIB, MIB

# Largest piece → the profiles whose rate holds for it, best first.
_SIZES: Final[tuple[tuple[int, tuple[str, ...]], ...]] = (
    (6 * KIB, ("kv-scatter-4k",)),
    (24 * KIB, ("kv-scatter-16k", "kv-pull")),
    (96 * KIB, ("kv-64k",)),
    (2 * MIB, ("kv-block",)),
)
TOKENS: Final = (8_192, 32_768, 131_072)
RANKS: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Cost:
    """One model on one pair. `ms` and `share` are None without a measurement at its piece size."""

    model: KVModel
    total_bytes: int
    piece_bytes: int
    pieces: int
    profile: str  # whose rate was used, or which should be measured
    gbps: float | None
    ms: float | None
    share: float | None  # per cent of the TTFT budget
    floor_ms: float | None  # on the negotiated line


def costs(
    rates: Mapping[str, float], *, tokens: int, ranks: int, ttft_ms: float, line_gbps: float | None
) -> Sequence[Cost]:
    """The cost of every model; `rates` are the newest measured Gb/s by profile."""
    return [_cost(model, rates, tokens, ranks, ttft_ms, line_gbps) for model in MODELS]


def _cost(
    model: KVModel, rates: Mapping[str, float], tokens: int, ranks: int, ttft_ms: float, line_gbps: float | None
) -> Cost:
    moved = transfer(model, tokens=tokens, tensor_parallel=ranks, block_tokens=BLOCK_TOKENS)
    names = next(names for largest, names in _SIZES if moved.piece_bytes <= largest)
    names = (f"model:{model.name}@{tokens}", *names) if ranks == 8 else names
    measured = next((name for name in names if name in rates), None)
    gbps = rates[measured] if measured is not None else None
    ms = None if gbps is None else cost_ms(total_bytes=moved.total_bytes, pieces=moved.pieces, gbps=gbps)
    return Cost(
        model=model,
        total_bytes=moved.total_bytes,
        piece_bytes=moved.piece_bytes,
        pieces=moved.pieces,
        profile=measured or names[-1],
        gbps=gbps,
        ms=ms,
        share=None if ms is None else 100 * ms / ttft_ms,
        floor_ms=None if line_gbps is None else wire_floor_ms(total_bytes=moved.total_bytes, line_gbps=line_gbps),
    )
