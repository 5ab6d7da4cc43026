"""Is a measured run good? Three rules together, because each alone is blind: a slow fabric passes every comparison with
its peers, one slow cable passes a low absolute bound, and a link that always was slow passes its own history.

Pure. Thresholds: kvprobe 2.3. What is compared is of one series or of one kind: same profile, mode, backend.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from statistics import median
from typing import Any, Final, Self

HISTORY: Final = 14  # runs that a pair is compared with
LEAST_HISTORY: Final = 5  # fewer make no habit
LEAST_PEERS: Final = 3
BAD_OF_LAST: Final = (2, 3)  # so many of the last so many bad ones open an incident
_MAD_TO_SIGMA: Final = 1.4826  # of a normal distribution


class Verdict(StrEnum):
    """How a run is judged. NONE: it measured nothing that could be."""

    GOOD = "GOOD"
    WARN = "WARN"
    BAD = "BAD"
    NONE = "NONE"


class Rule(StrEnum):
    """Which rule found something."""

    LINE = "line"  # below a share of the negotiated rate
    PEERS = "peers"  # below a share of the best of its peers, or slower than the quickest
    HISTORY = "history"  # below its own median by more than its own noise
    FAILED = "failed"  # the run failed


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a partition or probe set asks for; percentages, and factors for latency. Stored as JSON."""

    line_bad_pct: float = 90.0  # of the negotiated rate, profile link (ngc_multinode_perf)
    peers_warn_pct: float = 93.0  # of the best peer (ClusterKit)
    peers_latency_factor: float = 2.1  # times the quickest peer (ClusterKit)
    history_warn_pct: float = 7.0  # below the pair's own median
    history_bad_pct: float = 20.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
                raise ValueError(f"{item.name} is {value!r}; it is a number from 0 to 1000.")
        if self.history_bad_pct < self.history_warn_pct:
            raise ValueError("A drop that is bad cannot be smaller than one that only warns.")

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Read what `to_json` wrote; what is not named keeps its default. Raises ValueError or TypeError."""
        return cls(**stored)

    def to_json(self) -> dict[str, float]:
        """As it is stored."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule's finding; the sentence stands on the page and in the incident."""

    rule: Rule
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The worst verdict of all rules, and every finding that is not good."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What is judged: a rate (10^9 bit/s, more is better) or a latency (ns, less is better), never both."""

    gbps: float | None = None
    p50_ns: float | None = None
    pct_line: float | None = None  # None: no negotiated rate that means anything (software, TCP)


def judge(
    measured: Measured,
    *,
    thresholds: Thresholds,
    is_link_profile: bool,
    peers: Sequence[float] = (),
    history: Sequence[float] = (),
) -> Judgement:
    """Judge one run that ended OK. `peers` are the newest values of the other pairs, `history` this pair's last ones.

    Both are in the unit of the value (gbps, or ns for a latency), in any order; too few of them are not compared with.
    """
    found: list[Reason] = []
    if is_link_profile and measured.pct_line is not None and measured.pct_line < thresholds.line_bad_pct:
        found.append(
            Reason(
                Rule.LINE,
                Verdict.BAD,
                f"It reached {measured.pct_line:.1f} % of the negotiated rate; "
                f"at least {thresholds.line_bad_pct:g} % is asked for.",
            )
        )
    value, is_latency = (measured.p50_ns, True) if measured.p50_ns is not None else (measured.gbps, False)
    if value is None:
        return Judgement(Verdict.NONE)
    beside = _beside_peers(value, peers=peers, is_latency=is_latency, thresholds=thresholds)
    before = _beside_history(value, history=history, is_latency=is_latency, thresholds=thresholds)
    found += [reason for reason in (beside, before) if reason is not None]
    return Judgement(worst(reason.verdict for reason in found), tuple(found))


def failed(outcome: str, sentence: str) -> Judgement:
    """The judgement of a run that ended in a failure: bad, because nothing says that the pair can move data."""
    return Judgement(Verdict.BAD, (Reason(Rule.FAILED, Verdict.BAD, f"{outcome}: {sentence}"),))


def worst(verdicts: Any) -> Verdict:
    """The worst of them; GOOD without any."""
    order = (Verdict.GOOD, Verdict.WARN, Verdict.BAD)
    return order[max((order.index(verdict) for verdict in verdicts), default=0)]


def opens_incident(newest_first: Sequence[Verdict]) -> bool:
    """Whether a pair's last verdicts are bad often enough that a person should look: 2 of the last 3."""
    enough, of_last = BAD_OF_LAST
    return sum(verdict is Verdict.BAD for verdict in newest_first[:of_last]) >= enough


def median_and_mad(values: Sequence[float]) -> tuple[float, float] | None:
    """The median and the median absolute deviation from it; None for too few values."""
    if len(values) < LEAST_HISTORY:
        return None
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)


def _beside_peers(value: float, *, peers: Sequence[float], is_latency: bool, thresholds: Thresholds) -> Reason | None:
    if len(peers) < LEAST_PEERS:
        return None
    if is_latency:
        best = min(peers)
        if best > 0 and value > thresholds.peers_latency_factor * best:
            return Reason(
                Rule.PEERS,
                Verdict.WARN,
                f"Its median completion took {value / 1e3:.2f} µs, {value / best:.1f} times that of the quickest of "
                f"{len(peers)} peers; {thresholds.peers_latency_factor:g} times is the most.",
            )
        return None
    best = max(peers)
    if best > 0 and value < thresholds.peers_warn_pct / 100 * best:
        return Reason(
            Rule.PEERS,
            Verdict.WARN,
            f"It reached {value:.3g} Gb/s, {value / best * 100:.0f} % of the best of {len(peers)} peers; "
            f"{thresholds.peers_warn_pct:g} % is the least.",
        )
    return None


def _beside_history(
    value: float, *, history: Sequence[float], is_latency: bool, thresholds: Thresholds
) -> Reason | None:
    habit = median_and_mad(history)
    if habit is None:
        return None
    middle, mad = habit
    if middle <= 0:
        return None
    worse = value - middle if is_latency else middle - value
    # Within its own noise nothing has changed, however strict the percentages are.
    if worse <= 3 * _MAD_TO_SIGMA * mad:
        return None
    drop_pct = worse / middle * 100
    if drop_pct < thresholds.history_warn_pct:
        return None
    verdict = Verdict.BAD if drop_pct >= thresholds.history_bad_pct else Verdict.WARN
    was = f"{middle / 1e3:.2f} µs" if is_latency else f"{middle:.3g} Gb/s"
    return Reason(
        Rule.HISTORY,
        verdict,
        f"It is {drop_pct:.0f} % worse than its own median of {was} over {len(history)} runs, "
        f"and that is more than its usual noise.",
    )
