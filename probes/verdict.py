"""What an attempt that must fail has shown. Pure: no Django, no I/O, no clock (kvprobe, 4.2 and 4.3).

A write into another partition and a write to a dead server end in the same way, status 12. So ISOLATED needs more than
a failure: controls that succeed before and after, the usual time, and a target that was there all along. Whatever is
missing makes it INCONCLUSIVE; only bytes or a path that came through make it a LEAK, and nothing takes that back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

RETRY_EXCEEDED: Final = 12  # IBV_WC_RETRY_EXC_ERR
SUCCESS: Final = 0
RTS: Final = 3  # enum ibv_qp_state
# Firmware may wait this long for an acknowledgement although the queue pair asks for less (kvprobe, 4.2).
FIRMWARE_WAIT_S: Final = 0.27
NOT_ON_ETHERNET: Final = (
    "P_Key isolation is not applicable on the link layer Ethernet: such a port has the one P_Key 0xffff, and VLANs, "
    "VRFs or ACLs of the switches keep tenants apart."
)  # fmt: skip


class Isolation(StrEnum):
    """The verdict of one check."""

    ISOLATED = "ISOLATED"
    LEAK = "LEAK"
    INCONCLUSIVE = "INCONCLUSIVE"


class Control(StrEnum):
    """How an attempt ended that must succeed: the same ports, in a partition in which they may talk."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    NOT_MADE = "NOT_MADE"


class Path(StrEnum):
    """What the SA answered to a query for a PathRecord."""

    FOUND = "FOUND"
    REFUSED = "REFUSED"  # it has no such record
    UNANSWERED = "UNANSWERED"  # no answer, or another error


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds within which an unanswered write ends with status 12."""

    least_s: float
    most_s: float

    def __contains__(self, seconds: float) -> bool:
        return self.least_s <= seconds <= self.most_s


@dataclass(frozen=True, slots=True)
class Attempt:
    """The one write of 8 bytes that must fail, as both ends saw it. None is: not known.

    `status` is the completion's (None: none came), `took_s` from post to completion, `is_target_alive` and
    `is_target_ready` that the target's program answered afterwards and its queue pair stood in RTS, `is_canary_intact`
    that the target's memory holds what was written there before.
    """

    status: int | None
    took_s: float | None
    is_target_alive: bool | None
    is_target_ready: bool | None
    is_canary_intact: bool | None


@dataclass(frozen=True, slots=True)
class Counters:
    """By how much counters rose that tell of a packet with a wrong P_Key. None is: cannot be read there."""

    bad_pkey: int | None = None  # of the target's port
    constraint_errors: int | None = None  # of the leaf switch ports, in or out


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, whether a counter confirms it, and what it rests on in a sentence for a person."""

    verdict: Isolation
    is_confirmed: bool
    sentence: str


def window(*, ack_timeout: int, retry_count: int) -> Window:
    """How long an unanswered write may take: (retries + 1) × T, up to four times that (kvprobe, 4.2).

    T is 4.096 µs × 2^`ack_timeout`; 0 would never end and is refused with ValueError.
    """
    if not 1 <= ack_timeout <= 31 or not 0 <= retry_count <= 7:
        raise ValueError(f"ACK timeout {ack_timeout} with {retry_count} retries never ends, or is none.")
    tries, one_s = retry_count + 1, 4.096e-6 * 2**ack_timeout
    return Window(tries * one_s, 4 * tries * max(one_s, FIRMWARE_WAIT_S))


def judge_attempt(
    *, before: Control, attempt: Attempt, after: Control, expected: Window, counters: Counters = Counters()
) -> Judged:
    """The verdict on a write between two ports that share no P_Key."""
    if attempt.status == SUCCESS:
        return _leak("A write between the two completed: the target acknowledged it.", counters)
    if attempt.is_canary_intact is False:
        return _leak("The target’s memory was changed by a write that must not arrive.", counters)
    missing = _missing(before, attempt, after, expected)
    if missing:
        return Judged(Isolation.INCONCLUSIVE, False, missing)
    confirming = _confirming(counters)
    return Judged(
        Isolation.ISOLATED,
        bool(confirming),
        f"The write was dropped and ended with status {RETRY_EXCEEDED} after {attempt.took_s:.3f} s; the same ports "
        "could talk before and after, and the target stood ready and unchanged."
        + (f" Confirmed: {confirming}." if confirming else " No counter confirms it."),
    )


def judge_path(
    *,
    asked: Path,
    before: Sequence[Path],
    after: Sequence[Path],
    is_asker_full: bool | None,
    is_sm_known: bool = True,
    pkey: str = "",
) -> Judged:
    """The verdict on a query for a path between two ports that share no P_Key.

    `before` and `after` are what the same asker was answered for paths that exist, about both ports. `is_sm_known` says
    that the SA was a registered manager host's; `pkey` is that of the path, if one was found. Never confirmed: all of
    it is the view of one SM.
    """
    if asked is Path.FOUND:
        through = f" in P_Key {pkey}" if pkey else ""
        return Judged(Isolation.LEAK, False, f"The SA gives a path between the two{through}.")
    if not is_asker_full:
        what = "is not known to be" if is_asker_full is None else "is not"
        sentence = f"The asking manager host {what} a full member of Default: the SA hides paths from it that exist."
        return Judged(Isolation.INCONCLUSIVE, False, sentence)
    if not is_sm_known:
        return Judged(Isolation.INCONCLUSIVE, False, "The SA that answered is not a registered manager host’s.")
    for answers, when in ((before, "before"), (after, "after")):
        if not answers or any(answer is not Path.FOUND for answer in answers):
            what = "was made" if not answers else "succeeded"
            sentence = f"No positive control {what} {when} it: the SA might refuse any path now."
            return Judged(Isolation.INCONCLUSIVE, False, sentence)
    if asked is not Path.REFUSED:
        return Judged(Isolation.INCONCLUSIVE, False, "The SA did not answer the query about the two.")
    return Judged(
        Isolation.ISOLATED,
        False,
        "The SA refuses a path between the two, and gave the same asker paths to both before and after. "
        "This is the SM’s view only.",
    )


def _missing(before: Control, attempt: Attempt, after: Control, expected: Window) -> str:
    """Why a failed attempt proves nothing; empty when it does."""
    for control, when in ((before, "before"), (after, "after")):
        if control is Control.NOT_MADE:
            return f"No positive control was made {when} the attempt: nothing shows that the two ports work."
        if control is Control.FAILED:
            return f"The positive control {when} the attempt failed: the two ports cannot be relied on now."
    if not attempt.is_target_alive:
        return "The target’s program did not answer after the attempt: a dead target looks the same."
    if attempt.status is None or attempt.took_s is None:
        return "The write came to no end: neither success nor failure was reported."
    if attempt.status != RETRY_EXCEEDED:
        return f"The write ended with status {attempt.status}, not with {RETRY_EXCEEDED} as a dropped one does."
    if attempt.took_s not in expected:
        return (
            f"The write ended after {attempt.took_s:.3f} s; a dropped one takes {expected.least_s:.3f} to "
            f"{expected.most_s:.3f} s."
        )
    if not attempt.is_target_ready:
        return "The target’s queue pair did not stand in RTS after the attempt: it might have dropped anything."
    if attempt.is_canary_intact is None:
        return "Whether the target’s memory stayed as it was could not be read."
    return ""


def _leak(sentence: str, counters: Counters) -> Judged:
    seen = _confirming(counters)
    return Judged(Isolation.LEAK, False, sentence + (f" Still, {seen}." if seen else ""))


def _confirming(counters: Counters) -> str:
    found = []
    if counters.bad_pkey:
        found.append(f"the target’s port counted {counters.bad_pkey} packets with a wrong P_Key")
    if counters.constraint_errors:
        found.append(f"the leaf switch ports counted {counters.constraint_errors} constraint errors")
    return ", ".join(found)
