"""What a probe moves: the fixed profiles of kvprobe 1.4, and `model:<name>@<tokens>` worked out from a model's layout.

A profile is a name in the settings of a partition or probe set; here it becomes sizes. Both ends pin `buffer_bytes`;
`total_bytes` says how much is moved through it in one run and is capped, so that a probe stays polite.
"""

import re
from collections.abc import Iterable
from typing import Final

from probes.kv_models import BY_NAME, transfer
from probes.terms import Mode, Profile, Verb

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

TENSOR_PARALLEL: Final = 8  # how a model of this size is served: eight ranks, one HCA port each
BLOCK_TOKENS: Final = 16  # vLLM's default, and the hardest case
LEAST_LATENCY_SAMPLES: Final = 10_000  # p99.9 needs as many (probes.histogram.LEAST_SAMPLES)
MOST_TOKENS: Final = 1_048_576
DEFAULT_BYTES: Final = 1 * GIB  # 21 ms at 400 Gb/s (kvprobe 1.4)
LARGEST_BUFFER: Final = 256 * MIB  # pinned at each end (kvprobe 3.5)
MOST_PIECES: Final = 65_536  # work requests built once; more are the same ones posted again

_MODEL = re.compile(r"\Amodel:(?P<name>[a-z0-9.-]{1,40})@(?P<tokens>[1-9][0-9]{0,6})\Z", re.ASCII)

# name → verb, bytes of a piece, mode, what it is for
_FIXED: Final[dict[str, tuple[Verb, int, Mode, str]]] = {
    "link": (Verb.WRITE, MIB, Mode.CONTIGUOUS, "1 MiB pieces in order: how near the line the link comes"),
    "kv-scatter-4k": (Verb.WRITE, 4 * KIB, Mode.SCATTER, "4 KiB pieces scattered: GQA, eight ranks, 16-token blocks"),
    "kv-scatter-16k": (Verb.WRITE, 16 * KIB, Mode.SCATTER, "16 KiB pieces scattered: MLA, or two to four ranks"),
    "kv-64k": (Verb.WRITE, 64 * KIB, Mode.SCATTER, "64 KiB pieces scattered: a slice of Mooncake"),
    "kv-block": (Verb.WRITE, MIB, Mode.SCATTER, "1 MiB pieces scattered: blocks contiguous over all layers"),
    "kv-pull": (Verb.READ, 16 * KIB, Mode.SCATTER, "16 KiB pieces pulled with READ: vLLM's default way"),
    "lat": (Verb.WRITE, 8, Mode.LATENCY, "8 bytes, one at a time: write completion, which is a round trip"),
}
NAMES: Final = tuple(_FIXED)
DEFAULT: Final = ("link", "kv-scatter-16k", "lat")
CONTIGUOUS, SCATTERED = "link", "kv-scatter-16k"  # whose ratio is the scatter penalty (kvprobe 2.3)


class UnknownProfile(ValueError):
    """A name that is no profile; the text says which there are."""


def words_for(name: str) -> str:
    """One line about a profile for people; raises UnknownProfile."""
    if name in _FIXED:
        return _FIXED[name][3]
    model, tokens = _model_of(name)
    return (
        f"{tokens:,} tokens of {BY_NAME[model].title}, one of {TENSOR_PARALLEL} ranks, blocks of {BLOCK_TOKENS} tokens"
    )


def profile(
    name: str, *, most_bytes: int = DEFAULT_BYTES, queue_pairs: int = 0, samples: int = LEAST_LATENCY_SAMPLES
) -> Profile:
    """The sizes of the profile `name`; a run moves at most about `most_bytes`, and at least one piece.

    `queue_pairs` 0 chooses: 2 for pieces up to 64 KiB, whose message rate one queue pair limits (kvprobe 3.5), else 1.
    `samples` are those of a latency profile. Raises UnknownProfile.
    """
    if most_bytes < 1:
        raise ValueError(f"A run of {most_bytes} bytes moves nothing.")
    if name in _FIXED:
        verb, piece, mode, _ = _FIXED[name]
        if mode is Mode.LATENCY:
            return Profile(name, verb, piece, 1, mode, piece * samples)
        wanted = max(1, most_bytes // piece)
    else:
        model_name, tokens = _model_of(name)
        moved = transfer(BY_NAME[model_name], tokens=tokens, tensor_parallel=TENSOR_PARALLEL, block_tokens=BLOCK_TOKENS)
        verb, piece, mode = Verb.WRITE, moved.piece_bytes, Mode.SCATTER
        wanted = max(1, min(moved.pieces, most_bytes // piece))
    pieces = max(1, min(wanted, LARGEST_BUFFER // piece, MOST_PIECES))
    chosen = queue_pairs or (2 if piece <= 64 * KIB else 1)
    return Profile(name, verb, piece, pieces, mode, piece * wanted, queue_pairs=min(chosen, pieces))


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once and in order, or UnknownProfile; at least one is needed."""
    checked = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not checked:
        raise UnknownProfile("Name at least one profile, for example link.")
    for name in checked:
        words_for(name)
    return checked


def is_latency(name: str) -> bool:
    """Whether a profile measures completion latency and not a rate."""
    return name == "lat"


def _model_of(name: str) -> tuple[str, int]:
    match = _MODEL.match(name)
    if match is None:
        known = ", ".join(NAMES)
        raise UnknownProfile(f"“{name[:60]}” is no profile. There are {known} and model:NAME@TOKENS.")
    model, tokens = match["name"], int(match["tokens"])
    if model not in BY_NAME:
        raise UnknownProfile(f"No model “{model}” is known. There are {', '.join(BY_NAME)}.")
    if tokens > MOST_TOKENS:
        raise UnknownProfile(f"{tokens:,} tokens are more than any model takes; the most is {MOST_TOKENS:,}.")
    return model, tokens
