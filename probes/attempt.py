"""One write of 8 bytes between two hosts, and the check that is made of several: control, attempt, control.

The steps and their bounds are a Session's; nothing is measured and nothing stored. The attempt that must fail differs
from its controls only in the P_Keys that the two ends are given (kvprobe, 4.3).
"""

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from probes.crossing import CannotCross
from probes.session import _GRACE_S, SENDER, TARGET, Session, _Failed
from probes.terms import Mode, Order, Outcome, PortChoice, Profile, Verb
from probes.verdict import (
    NOT_ON_ETHERNET,
    RTS,
    SUCCESS,
    Attempt,
    Control,
    Counters,
    Isolation,
    Judged,
    judge_attempt,
    window,
)
from remote.probe_host import ProbeShell

# 8 bytes are written to the beginning of one piece; the rest of the buffer stays poisoned: the canary.
TRY: Final = Profile("isolation", Verb.WRITE, 4096, 1, Mode.CONTIGUOUS, 4096)
GUARD_S: Final = 10.0  # beyond the expected window, by the wall clock
ACK_TIMEOUT: Final = 14
RETRIES: Final = 1
CONTROL_RETRIES: Final = 7
NOT_COUNTED: Final = Counters()


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one write. `outcome` is OK when every step was taken, whatever the completion's status was."""

    outcome: Outcome
    attempt: Attempt
    counters: Counters = NOT_COUNTED
    reason: str = ""
    at: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def as_control(self) -> Control:
        """What it is worth as a positive control: it completed, and the bytes arrived."""
        is_good = self.outcome is Outcome.OK and self.attempt.status == SUCCESS
        return Control.SUCCEEDED if is_good and self.attempt.is_canary_intact is False else Control.FAILED


@dataclass(frozen=True, slots=True)
class End:
    """One end: the way to its host, its port, and the P_Key it is given there (None on Ethernet)."""

    shell: ProbeShell
    port: PortChoice
    pkey: int | None


@dataclass(frozen=True, slots=True)
class Check:
    """What is to be tried in one direction.

    `controls` are pairs that may talk, about both ports: the same two in a P_Key that both hold, or each with another
    member of its own partition. Without any the check is INCONCLUSIVE before anything is sent.
    """

    sender: End
    target: End
    controls: Sequence[tuple[End, End]]
    ack_timeout: int = ACK_TIMEOUT
    deadline_s: float = 60.0  # of each single try
    is_ethernet_allowed: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict and everything it rests on."""

    judged: Judged
    evidence: dict[str, Any]


def check(what: Check, *, before: Mapping[str, Any] | None = None) -> Checked:
    """Controls, the attempt that must fail, controls again. Never raises for what can be expected on a host.

    `before` maps "attempt" to a function that is called with each step of the attempt (tests break things there).
    """
    expected = window(ack_timeout=what.ack_timeout, retry_count=RETRIES)
    first = [_control(what, pair) for pair in what.controls]
    blocked = next((tried for tried in first if tried.reason == NOT_ON_ETHERNET), None)
    if blocked is not None:
        judged = Judged(Isolation.INCONCLUSIVE, False, NOT_ON_ETHERNET)
        return Checked(judged, {"applicable": False, "controls_before": [blocked.evidence]})
    if _worth(first) is not Control.SUCCEEDED:
        nothing = Attempt(None, None, None, None, None)
        judged = judge_attempt(before=_worth(first), attempt=nothing, after=Control.NOT_MADE, expected=expected)
        return Checked(_told(judged, first), {"controls_before": [_facts(tried) for tried in first]})
    order = _order(what, what.sender, what.target, retries=RETRIES, guard_s=expected.most_s + GUARD_S)
    order = replace(order, target_pkey=what.target.pkey)
    attempted = _try(what, what.sender, what.target, order, before=(before or {}).get("attempt"))
    last = [_control(what, pair) for pair in what.controls]
    judged = judge_attempt(
        before=_worth(first), attempt=attempted.attempt, after=_worth(last), expected=expected,
        counters=attempted.counters,
    )  # fmt: skip
    return Checked(
        _told(judged, [*first, attempted, *last]),
        {
            "expected_s": [expected.least_s, expected.most_s],
            "ack_timeout": what.ack_timeout,
            "retries": RETRIES,
            "controls_before": [_facts(tried) for tried in first],
            "attempt": _facts(attempted),
            "controls_after": [_facts(tried) for tried in last],
        },
    )


def _told(judged: Judged, tries: Sequence[Tried]) -> Judged:
    """Say beside an inconclusive verdict what the hosts said, for that is what a person has to mend."""
    reason = next((tried.reason for tried in tries if tried.reason), "")
    if judged.verdict is not Isolation.INCONCLUSIVE or not reason:
        return judged
    return replace(judged, sentence=f"{judged.sentence} Seen: {reason}.")


def _control(what: Check, pair: tuple[End, End]) -> Tried:
    sender, target = pair
    most_s = window(ack_timeout=what.ack_timeout, retry_count=CONTROL_RETRIES).most_s
    return _try(what, sender, target, _order(what, sender, target, retries=CONTROL_RETRIES, guard_s=most_s + GUARD_S))


def _order(what: Check, sender: End, target: End, *, retries: int, guard_s: float) -> Order:
    return Order(
        profile=TRY, seed=secrets.randbits(63), pkey=sender.pkey, sender=sender.port, target=target.port,
        ack_timeout=what.ack_timeout, retry_count=retries, transfer_timeout_s=guard_s,
    )  # fmt: skip


def _try(what: Check, sender: End, target: End, order: Order, *, before: Any = None) -> Tried:
    session = TrySession(sender=sender.shell, target=target.shell, order=order, deadline_s=what.deadline_s)
    session.is_ethernet_allowed = what.is_ethernet_allowed
    if before is not None:
        session._before = before
    return session.attempt()


def _worth(tries: Sequence[Tried]) -> Control:
    """The controls together: each must have succeeded."""
    if not tries:
        return Control.NOT_MADE
    return Control.SUCCEEDED if all(one.as_control is Control.SUCCEEDED for one in tries) else Control.FAILED


def _facts(tried: Tried) -> dict[str, Any]:
    """A try as it is stored."""
    attempt, counters = tried.attempt, tried.counters
    return {
        "outcome": tried.outcome.value, "reason": tried.reason, "at": tried.at, "status": attempt.status,
        "took_s": attempt.took_s, "target_alive": attempt.is_target_alive, "target_in_rts": attempt.is_target_ready,
        "canary_intact": attempt.is_canary_intact, "bad_pkey_rose_by": counters.bad_pkey,
        "constraint_errors_rose_by": counters.constraint_errors, "ends": tried.evidence,
    }  # fmt: skip


class TrySession(Session):
    """A session that makes one small write instead of a transfer, and asks the target how it stands afterwards."""

    is_ethernet_allowed = False

    def attempt(self) -> Tried:
        """Take all steps. Every failure is an outcome, none an exception."""
        self._seen: dict[str, Any] = {}
        try:
            self._steps()
        except _Failed as failed:
            return self._tried(failed.outcome, failed.reason, failed.at)
        except CannotCross as refused:
            return self._tried(refused.outcome, refused.reason)
        except (TypeError, ValueError, KeyError, AttributeError) as nonsense:
            return self._tried(Outcome.PROTOCOL, f"an answer makes no sense: {nonsense!r}")
        finally:
            for stream in self._streams.values():
                stream.close()
        return self._tried(Outcome.OK)

    def _steps(self) -> None:
        self._greet()
        self._set_up()
        layers = {str(said["port"]["link_layer"]) for said in self.setups.values()}
        if "Ethernet" in layers and not self.is_ethernet_allowed:
            raise _Failed(Outcome.UNSUPPORTED, NOT_ON_ETHERNET)
        self._connect()
        guard_s = self._order.transfer_timeout_s
        answer = self._ask({SENDER: {"do": "attempt", "timeout_s": guard_s}}, guard_s + _GRACE_S)[SENDER]
        self._seen |= {"status": int(answer["status"]), "took_s": int(answer["took_ns"]) / 1e9}
        later = self._ask_both("counters", 20.0)
        states = [int(state) for state in later[TARGET]["qp_states"]]
        self._seen |= {"is_target_alive": True, "is_target_ready": bool(states) and set(states) == {RTS}}
        for end, said in later.items():
            self._after[end] |= {"counters_after": said.get("counters"), "bad_pkey_after": said.get("bad_pkey")}
        self._after[TARGET]["qp_states"] = states
        held = self._ask({TARGET: {"do": "verify", "nonce": secrets.token_hex(16)}}, 90.0)[TARGET]
        self._seen["is_canary_intact"] = bool(held["is_untouched"])
        self._say_bye()

    def _tried(self, outcome: Outcome, reason: str = "", at: str = "") -> Tried:
        seen = self._seen
        is_alive = False if at == TARGET and outcome is Outcome.PEER_LOST else seen.get("is_target_alive")
        attempt = Attempt(
            status=seen.get("status"), took_s=seen.get("took_s"), is_target_alive=is_alive,
            is_target_ready=seen.get("is_target_ready"), is_canary_intact=seen.get("is_canary_intact"),
        )  # fmt: skip
        evidence: dict[str, Any] = {}
        with contextlib.suppress(TypeError, ValueError, KeyError, AttributeError):
            evidence = self._evidence()
        return Tried(outcome, attempt, self._counters(), reason, at, evidence)

    def _counters(self) -> Counters:
        """The target's P_Key violations; its 16-bit counter stands still when it is full."""
        before, after = (self._after[TARGET].get(name) for name in ("bad_pkey_before", "bad_pkey_after"))
        if not isinstance(before, int) or not isinstance(after, int) or after < before:
            return Counters()
        return Counters(bad_pkey=after - before)
