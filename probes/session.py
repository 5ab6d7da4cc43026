"""One run: the controller between the two ends. It relays the rendezvous and bounds every wait; it writes no row.

Each server is reached over its own SSH channel; the servers need no connection to each other, except for a TCP
baseline. Whatever happens, both conversations are ended here, and each program ends with its stdin or its own clock.
"""

import contextlib
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from probes import evidence
from probes.advice import advice_for
from probes.crossing import CannotCross, Crossing, cross
from probes.terms import Kind, Order, Outcome, RunResult, Verb
from remote.errors import (
    AccessRefused,
    CallTimedOut,
    HostKeyMismatch,
    NotUnderstood,
    RemoteError,
    StreamEnded,
    StreamOverflow,
    Unreachable,
    VerbFailed,
    WrapperMismatch,
)
from remote.probe_host import ProbeShell, ProbeStream

SENDER, TARGET = "sender", "target"
PROTOCOL = 1
# What each step may take, in seconds, on slow hosts; the order's own time-out bounds the transfer.
_OPEN_S, _HELLO_S, _SETUP_S, _CONNECT_S, _COUNTERS_S, _VERIFY_S, _BYE_S = 45.0, 30.0, 90.0, 30.0, 20.0, 90.0, 3.0
_GRACE_S = 5.0
_POLL_S = 0.02
_AFTER_LOSS_S = 3.0  # an end that fails because its peer died hears of it first
_RETRY_EXCEEDED = 12

# The wrapper's exit statuses (head of remote/host/fabricui-probe).
_BY_STATUS = {
    64: Outcome.PROGRAM_MISMATCH,
    65: Outcome.PROGRAM_MISMATCH,
    69: Outcome.NO_RDMA,
    78: Outcome.PROGRAM_MISMATCH,
    124: Outcome.TIMED_OUT,
}


class _Failed(Exception):
    """The run ends without a number."""

    def __init__(self, outcome: Outcome, reason: str, *, at: str = "", facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.outcome, self.reason, self.at, self.facts = outcome, reason, at, dict(facts or {})


def run_pair(*, sender: ProbeShell, target: ProbeShell, order: Order, deadline_s: float) -> RunResult:
    """Do one run and say what came of it, within `deadline_s` and a few seconds of cleaning up.

    Every failure is an outcome, none an exception. Give each run another seed.
    """
    session = Session(sender=sender, target=target, order=order, deadline_s=deadline_s)
    return session.run()


class Session:
    """The state of one run. `before` is called with the name of each step before it is taken (tests break things)."""

    def __init__(
        self,
        *,
        sender: ProbeShell,
        target: ProbeShell,
        order: Order,
        deadline_s: float,
        before: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._shells = {SENDER: sender, TARGET: target}
        self._order = order
        self._deadline_s = deadline_s
        self._deadline = time.monotonic() + deadline_s
        self._before = before
        self._streams: dict[str, ProbeStream] = {}
        self._crossing: Crossing | None = None
        self.setups: dict[str, dict[str, Any]] = {}
        self._after: dict[str, dict[str, Any]] = {SENDER: {}, TARGET: {}}

    def run(self) -> RunResult:
        """See `run_pair`."""
        try:
            return self._run()
        except _Failed as failed:
            return self._result(failed.outcome, failed.reason, at=failed.at, facts=failed.facts)
        except CannotCross as refused:
            return self._result(refused.outcome, refused.reason)
        finally:
            for stream in self._streams.values():
                stream.close()

    def _run(self) -> RunResult:
        self._greet()
        self._set_up()
        self._connect()
        result, seen_s = self._transfer()
        self._count()
        checksum = self._verify()
        self._say_bye()
        try:
            block = {**self._evidence(), "checksum": checksum, "carried": result.get("carried")}
            outcome, reason = evidence.judge(self._order, block, result, seen_s=seen_s)
            is_believed = outcome in (Outcome.OK, Outcome.TCP_OK)
            figures = figures_of(result, evidence.line_gbps(block)) if is_believed else {}
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as nonsense:
            raise _Failed(Outcome.PROTOCOL, f"the evidence makes no sense: {nonsense!r}") from nonsense
        if is_believed:
            return RunResult(outcome, self._order.kind, evidence=block, figures=figures)
        return RunResult(outcome, self._order.kind, reason=reason, advice=advice_for(outcome), evidence=block)

    # The steps

    def _greet(self) -> None:
        self._open()
        for end, hello in self._ask_both("hello", _HELLO_S).items():
            if hello.get("protocol") != PROTOCOL:
                raise self._failed(Outcome.PROTOCOL, end, f"it speaks protocol {hello.get('protocol')!r}")
            self._after[end]["host"] = {k: hello.get(k) for k in ("host", "kernel", "python", "memlock")}

    def _open(self) -> None:
        for end, shell in self._shells.items():
            self._before("open " + end)
            try:
                # The program outlives the controller's own bound by little, should nobody be there to end it.
                bound = min(600.0, self._deadline_s + _GRACE_S)
                self._streams[end] = shell.open(seconds=bound, timeout_s=self._bounded(_OPEN_S))
            except RemoteError as error:
                raise self._failed(_outcome_of(error, has_begun=False), end, str(error)) from error

    def _set_up(self) -> None:
        order, token = self._order, secrets.token_hex(16)
        is_read = order.profile.verb is Verb.READ and order.kind is Kind.RDMA
        order_seed = int.from_bytes(hashlib.sha256(f"order {order.seed}".encode()).digest()[:7])
        requests: dict[str, dict[str, Any]] = {}
        for end, role in ((SENDER, "initiator"), (TARGET, "passive")):
            profile = asdict(order.profile)
            work = {k: profile[k] for k in ("piece_bytes", "pieces", "total_bytes", "queue_pairs", "chain")}
            work |= {"verb": order.profile.verb.value, "mode": order.profile.mode.value}
            # Who only takes bytes in must not know them; the initiator needs the order of the pieces all the same.
            is_source = (end == TARGET) == is_read
            if is_source:
                work["seed"] = order.seed
            if is_source or end == SENDER:
                work["order"] = order_seed
            choice = asdict(order.sender if end == SENDER else order.target)
            pkey = order.pkey if end == SENDER or order.target_pkey is None else order.target_pkey
            requests[end] = {
                "do": "setup", "kind": order.kind.value, "role": role, "work": work, "choice": choice,
                "pkey": pkey, "token": token, "patience_s": self._deadline_s, "tcp_port": order.tcp_port,
                "limits": {"timeout": order.ack_timeout, "retry_cnt": order.retry_count},
                "busy_above_pct": order.busy_above_pct,
            }  # fmt: skip
        self.setups = self._ask_both(requests, _SETUP_S)

    def _connect(self) -> None:
        if self._order.kind is Kind.TCP:
            target = self.setups[TARGET]
            peer = {"address": target.get("address"), "tcp_port": target.get("tcp_port")}
            requests: dict[str, dict[str, Any]] = {SENDER: {"do": "connect", "peer": peer}, TARGET: {"do": "connect"}}
        else:
            try:
                self._crossing = cross(self._order, self.setups[SENDER], self.setups[TARGET])
            except (KeyError, TypeError, ValueError) as nonsense:
                raise _Failed(Outcome.PROTOCOL, f"a set-up makes no sense: {nonsense!r}") from nonsense
            requests = {SENDER: self._crossing.sender, TARGET: self._crossing.target}
        for end, answer in self._ask_both(requests, _CONNECT_S).items():
            self._after[end]["counters_before"] = answer.get("counters")
            self._after[end]["bad_pkey_before"] = answer.get("bad_pkey")

    def _transfer(self) -> tuple[dict[str, Any], float]:
        """The sender's result, and the seconds it took as seen from here."""
        timeout_s = self._order.transfer_timeout_s
        request = {"do": "go", "timeout_s": timeout_s}
        ends = (SENDER, TARGET) if self._order.kind is Kind.TCP else (SENDER,)
        begun = time.monotonic()
        try:
            results = self._ask(dict.fromkeys(ends, request), timeout_s + _GRACE_S)
        except _Failed as failed:
            raise self._explained(failed) from failed
        return results[SENDER], time.monotonic() - begun

    def _explained(self, failed: _Failed) -> _Failed:
        """Tell a transfer that failed for its peer's death, or for the size of its packets, from other failures."""
        if failed.outcome is not Outcome.TRANSFER_FAILED or failed.at != SENDER:
            return failed
        try:
            self._ask({TARGET: {"do": "counters"}}, _AFTER_LOSS_S, others=False)
        except _Failed as other:
            if other.outcome in (Outcome.PEER_LOST, Outcome.TIMED_OUT):
                return _Failed(Outcome.PEER_LOST, other.reason, at=TARGET, facts=failed.facts)
        is_retry = failed.facts.get("status") == _RETRY_EXCEEDED
        if is_retry and not failed.facts.get("is_first") and not failed.facts.get("completed"):
            mtu = self._crossing.mtu_bytes if self._crossing else 0
            reason = f"{failed.reason}; 8 bytes had gone through, packets of {mtu} bytes did not"
            return _Failed(Outcome.MTU_MISMATCH, reason, facts=failed.facts)
        return failed

    def _count(self) -> None:
        for end, answer in self._ask_both("counters", _COUNTERS_S).items():
            self._after[end] |= {
                "counters_after": answer.get("counters"),
                "bad_pkey_after": answer.get("bad_pkey"),
                "pkey_after": [answer.get("pkey_index"), answer.get("pkey_entry")],
            }

    def _verify(self) -> dict[str, Any]:
        nonce = secrets.token_hex(16)
        request = {"do": "verify", "nonce": nonce}
        answers = self._ask(dict.fromkeys((SENDER, TARGET), request), _VERIFY_S)
        is_read = self._order.profile.verb is Verb.READ and self._order.kind is Kind.RDMA
        source, sink = (TARGET, SENDER) if is_read else (SENDER, TARGET)
        return {
            "algorithm": "SHA-256 over a nonce and the buffer",
            "nonce": nonce,
            "sent": answers[source].get("digest"),
            "held": answers[sink].get("digest"),
            "held_by": sink,
            "is_untouched": answers[sink].get("is_untouched"),
        }

    def _say_bye(self) -> None:
        with contextlib.suppress(_Failed):
            self._ask_both("bye", _BYE_S)

    # Talking

    def _ask_both(self, what: "str | Mapping[str, Mapping[str, Any]]", timeout_s: float) -> dict[str, dict[str, Any]]:
        if isinstance(what, str):
            request = {"do": what}
            return self._ask(dict.fromkeys((SENDER, TARGET), request), timeout_s)
        return self._ask(what, timeout_s)

    def _ask(
        self, requests: Mapping[str, Mapping[str, Any]], timeout_s: float, *, others: bool = True
    ) -> dict[str, dict[str, Any]]:
        """Send the requests and wait for all answers, while watching the `others` as well.

        Raises _Failed as soon as an end fails, ends, or is too late.
        """
        step = next(iter(requests.values()))["do"]
        self._before(step)
        limit_s = self._bounded(timeout_s)
        deadline = time.monotonic() + limit_s
        for end, request in requests.items():
            with self._naming(end):
                self._streams[end].send(request)
        answers: dict[str, dict[str, Any]] = {}
        watched = tuple(self._streams) if others else tuple(requests)
        while len(answers) < len(requests):
            for end in watched:
                with self._naming(end):
                    answer = self._streams[end].poll(_POLL_S)
                if answer is not None:
                    answers[end] = self._accepted(end, answer, step, is_asked=end in requests and end not in answers)
            if len(answers) < len(requests) and time.monotonic() > deadline:
                late = _listed([end for end in requests if end not in answers])
                raise _Failed(Outcome.TIMED_OUT, f"{late} did not answer “{step}” within {limit_s:.0f} s", at=late)
        return answers

    @contextlib.contextmanager
    def _naming(self, end: str) -> Iterator[None]:
        """Turn what goes wrong in a conversation into the run's outcome, with the end's name."""
        try:
            yield
        except RemoteError as error:
            raise self._failed(_outcome_of(error, has_begun=True), end, str(error)) from error

    def _accepted(self, end: str, answer: dict[str, Any], step: str, *, is_asked: bool) -> dict[str, Any]:
        if "failed" in answer:
            code, reason = str(answer["failed"]), str(answer.get("reason", ""))[:1000]
            facts = {k: v for k, v in answer.items() if k not in ("failed", "reason")}
            if code not in Outcome.__members__ or code in ("OK", "TCP_OK"):
                raise self._failed(Outcome.PROTOCOL, end, f"it failed with the unknown code “{code[:40]}”: {reason}")
            raise self._failed(Outcome[code], end, reason, facts)
        if not is_asked or answer.get("did") != step:
            raise self._failed(Outcome.PROTOCOL, end, f"it answered “{str(answer.get('did'))[:40]}” to “{step}”")
        return answer

    def _failed(self, outcome: Outcome, end: str, why: str, facts: Mapping[str, Any] | None = None) -> _Failed:
        return _Failed(outcome, f"{end} {self._shells[end].name}: {why}", at=end, facts=facts)

    def _bounded(self, timeout_s: float) -> float:
        """This step's time, within what is left of the whole. Raises _Failed when nothing is left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _Failed(Outcome.TIMED_OUT, f"the run was not over within {self._deadline_s:.0f} s")
        return min(timeout_s, left)

    def _evidence(self) -> dict[str, Any]:
        return evidence.assemble(self._order, self.setups, self._crossing, self._after)

    def _result(
        self, outcome: Outcome, reason: str, *, at: str = "", facts: Mapping[str, Any] | None = None
    ) -> RunResult:
        block: dict[str, Any] = {}
        with contextlib.suppress(TypeError, KeyError, ValueError, AttributeError):
            block = self._evidence()
        result = RunResult(outcome, self._order.kind, reason=reason, advice=advice_for(outcome), at=at, evidence=block)
        return replace(result, evidence={**block, "failure": dict(facts)}) if facts else result


def figures_of(result: Mapping[str, Any], line_gbps: float | None) -> dict[str, Any]:
    """The figures of RunResult from what the sender measured; rates are computed here from bytes and seconds."""
    seconds, moved, pieces = float(result["seconds"]), int(result["bytes"]), int(result["pieces"])
    found: dict[str, Any] = {
        "mb_s": moved / seconds / 1e6,
        "gbps": moved * 8 / seconds / 1e9,
        "seconds": seconds,
        "bytes": moved,
        "pieces": pieces,
        "mmsgs": pieces / seconds / 1e6,
    }
    if line_gbps:
        found["pct_line"] = 100 * found["gbps"] / line_gbps
    copied: Sequence[str] = (
        "chain", "chains", "samples", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "min_ns", "max_ns", "post_share",
        "post_ns", "build_ns", "first_ns", "histogram", "streams",
    )  # fmt: skip
    return found | {name: result[name] for name in copied if name in result}


def _outcome_of(error: RemoteError, *, has_begun: bool) -> Outcome:
    if isinstance(error, StreamEnded):
        return _BY_STATUS.get(error.exit_status, Outcome.PEER_LOST)
    if isinstance(error, VerbFailed):
        return _BY_STATUS.get(error.exit_status, Outcome.HOST_ERROR)
    by_kind: tuple[tuple[type[RemoteError], Outcome], ...] = (
        (StreamOverflow, Outcome.OVERFLOW),
        (NotUnderstood, Outcome.PROTOCOL),
        (WrapperMismatch, Outcome.PROGRAM_MISMATCH),
        (HostKeyMismatch, Outcome.HOST_KEY_MISMATCH),
        (AccessRefused, Outcome.ACCESS_REFUSED),
        (CallTimedOut, Outcome.TIMED_OUT),
        (Unreachable, Outcome.PEER_LOST if has_begun else Outcome.UNREACHABLE),
    )
    return next((outcome for kind, outcome in by_kind if isinstance(error, kind)), Outcome.HOST_ERROR)


def _listed(ends: Sequence[str]) -> str:
    return " and ".join(ends)
