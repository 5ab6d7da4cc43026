"""The last door before a number is stored: what came from two hosts must be whole, or it is a failed run. Pure.

`probes.session` has compared the evidence with the order and the physics already; this door looks only at what a row,
a chart and a judgement rest on, so that no mistake there can turn a gap into a number.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from probes.histogram import Histogram
from probes.terms import Kind, Mode, Order, Outcome, RunResult

# Of kvprobe 3.8; the rest of each of them is the session's business (probes.evidence).
NEEDED: Final = ("sender", "target", "checksum")
ENDS: Final = ("sender", "target")
LARGEST_EVIDENCE: Final = 600  # values, in all; a host cannot fill the database
LONGEST_REASON: Final = 2000  # characters
MOST_SAMPLES: Final = (1 << 31) - 1  # what the row's column takes
_LARGEST_FIGURE: Final = 1e300
_SOFTWARE: Final = ("rxe", "siw")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is stored beside the evidence of a run that measured."""

    gbps: float
    pct_line: float | None
    p50_ns: float | None
    p99_ns: float | None
    samples: int
    histogram: Histogram
    link_layer: str
    is_software: bool


def accept(result: RunResult, *, order: Order) -> tuple[RunResult, Numbers | None]:
    """The result as it may be stored, with its numbers if it has any.

    A measured result that lacks a part, is of another kind than was ordered, or holds what is no number, becomes
    REFUSED_EVIDENCE with the reason, and its figures are gone.
    """
    storable = replace(result, evidence=small(result.evidence), reason=plain(result.reason, LONGEST_REASON))
    if not result.is_measured:
        return replace(storable, figures={}), None
    try:
        numbers = _numbers(result, order)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        return (
            replace(
                storable,
                outcome=Outcome.REFUSED_EVIDENCE,
                reason=plain(f"The result is not whole: {error}.", LONGEST_REASON),
                advice="Nothing was stored as a number. Compare the on-host program's version on both hosts with ours.",
                figures={},
            ),
            None,
        )
    kept = {name: value for name, value in result.figures.items() if name == "histogram" or _is_figure(value)}
    return replace(storable, figures=kept), numbers


def _numbers(result: RunResult, order: Order) -> Numbers:
    wanted = Outcome.OK if order.kind is Kind.RDMA else Outcome.TCP_OK
    if result.kind is not order.kind or result.outcome is not wanted:
        raise ValueError(f"{order.kind} was ordered and {result.kind} came back as {result.outcome}")
    evidence, figures = result.evidence, result.figures
    missing = [name for name in NEEDED if not isinstance(evidence.get(name), dict) or not evidence[name]]
    missing += [f"the backend of the {end}" for end in ENDS if end not in missing and not evidence[end].get("backend")]
    if missing:
        raise ValueError(f"its evidence lacks {', '.join(missing)}")
    checksum = evidence["checksum"]
    if not checksum.get("sent") or checksum.get("sent") != checksum.get("held"):
        raise ValueError("the target's memory is not shown to hold what was sent")
    gbps = _positive(figures, "gbps") if "gbps" in figures else _positive(figures, "mb_s") * 8 / 1000
    histogram = Histogram.from_pairs(figures.get("histogram", []))
    samples = histogram.samples
    if order.kind is Kind.RDMA and samples == 0:
        raise ValueError("no completion was counted")
    if samples > MOST_SAMPLES:
        raise ValueError(f"{samples} samples are more than a run has time for")
    if order.profile.mode is Mode.LATENCY and samples < 2:
        raise ValueError(f"{samples} samples make no latency")
    software = any(_is_software(evidence.get(end)) for end in ENDS)
    pct_line = None
    if order.kind is Kind.RDMA and not software and figures.get("pct_line") is not None:
        pct_line = _positive(figures, "pct_line")
    sender = evidence.get("sender")
    return Numbers(
        gbps=gbps,
        pct_line=pct_line,
        p50_ns=histogram.percentile(50),
        p99_ns=histogram.percentile(99),
        samples=samples,
        histogram=histogram,
        link_layer=str(sender.get("link_layer", ""))[:12] if isinstance(sender, dict) else "",
        is_software=software,
    )


def _positive(figures: dict[str, Any], name: str) -> float:
    value = figures[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"the figure {name} is {str(value)[:40]!r}")
    return float(value)


def _is_figure(value: object) -> bool:
    """Whether JSON in a database can hold it as a number: it takes neither NaN nor an infinite one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -_LARGEST_FIGURE < value < _LARGEST_FIGURE  # type: ignore[operator]  # a number by now


def plain(text: str, most: int) -> str:
    """Text that every database takes: no NUL (PostgreSQL), no half of a surrogate pair (none), and not too long."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")[:most]


def _is_software(end: object) -> bool:
    """Whether a port is Soft-RoCE or Soft-iWARP, whose driver is named in the evidence or whose device says so."""
    if not isinstance(end, dict):
        return False
    driver, device = str(end.get("driver", "")).lower(), str(end.get("device", "")).lower()
    return end.get("is_software") is True or driver.startswith(_SOFTWARE) or device.startswith(_SOFTWARE)


def small(evidence: dict[str, Any], *, most: int = LARGEST_EVIDENCE) -> dict[str, Any]:
    """The evidence in texts that every database takes, with long ones cut and no more than a few keys."""
    left = [most]

    def cut(value: object, depth: int) -> object:
        left[0] -= 1
        if left[0] < 0 or depth > 6:
            return "…"
        if isinstance(value, dict):
            return {plain(str(key), 80): cut(item, depth + 1) for key, item in list(value.items())[:60]}
        if isinstance(value, list | tuple):
            return [cut(item, depth + 1) for item in list(value)[:60]]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if value is None or isinstance(value, bool | int | float):
            return value
        return plain(str(value), 500)

    small = cut(evidence, 0)
    assert isinstance(small, dict)  # noqa: S101  a dict becomes one
    return small
