"""The controller: every way in which an end or its channel fails has a name, and both ends are let go each time."""

import time

import pytest

from probes.session import Session, run_pair
from probes.terms import Kind, Mode, Order, Outcome, Profile, Verb
from remote.errors import (
    AccessRefused,
    CallTimedOut,
    HostKeyMismatch,
    NotUnderstood,
    StreamEnded,
    StreamOverflow,
    Unreachable,
    VerbFailed,
    WrapperMismatch,
)
from tests.probes.ends import RESULT, Scripted, script, setup

LINK = Profile("link", Verb.WRITE, 1 << 20, 4, Mode.CONTIGUOUS, 1 << 24)
ORDER = Order(LINK, 1234567, pkey=0x10, transfer_timeout_s=0.5)


def run(sender=None, target=None, order=ORDER, deadline_s=20.0, target_delay_s=0.0):
    ends = Scripted("srv-1", sender or script(1)), Scripted("srv-2", target or script(2), delay_s=target_delay_s)
    result = run_pair(sender=ends[0], target=ends[1], order=order, deadline_s=deadline_s)
    assert [end.is_closed for end in ends] == [True, True] or "open" in (sender or {}) or "open" in (target or {})
    return result, ends


def refusal(code, **facts):
    return {"failed": code, "reason": "what was seen", **facts}


def test_a_healthy_pair_gives_figures_and_evidence():
    result, _ = run(sender=script(1, go=lambda request: time.sleep(0.01) or RESULT))
    assert (result.outcome, result.reason, result.advice) == (Outcome.OK, "", "")
    assert result.is_measured
    assert result.figures["gbps"] == pytest.approx(RESULT["bytes"] * 8 / 0.001 / 1e9)
    assert result.figures["pct_line"] == pytest.approx(100 * result.figures["gbps"] / 400)
    assert result.figures["histogram"] == RESULT["histogram"]
    assert result.evidence["sender"]["uverbs"]
    assert result.evidence["checksum"]["sent"] == result.evidence["checksum"]["held"]


def test_the_sink_never_learns_the_seed_nor_any_end_the_nonce_beforehand():
    _, (sender, target) = run()
    asked = {request["do"]: request for request in target.asked}
    assert not {"seed", "order"} & asked["setup"]["work"].keys()
    assert {request["do"]: request for request in sender.asked}["setup"]["work"]["seed"] == ORDER.seed
    assert len(asked["verify"]["nonce"]) == 32
    _, (_, again) = run()
    assert asked["verify"]["nonce"] != {request["do"]: request for request in again.asked}["verify"]["nonce"]


def test_the_sender_of_a_read_learns_the_order_of_the_pieces_and_not_the_seed():
    order = Order(Profile("pull", Verb.READ, 1 << 20, 4, Mode.SCATTER, 1 << 24), 99, pkey=0x10)
    _, ends = run(order=order)
    sender, target = ({request["do"]: request for request in end.asked}["setup"]["work"] for end in ends)
    assert "seed" not in sender
    assert target["seed"] == 99
    assert sender["order"] == target["order"] != 99


@pytest.mark.parametrize("code", sorted(set(Outcome) - {Outcome.OK, Outcome.TCP_OK}))
@pytest.mark.parametrize("at", ["sender", "target"])
def test_each_refusal_of_a_host_has_its_name_and_advice(code, at):
    result, _ = run(**{at: script(1 if at == "sender" else 2, setup=refusal(code.value))})
    assert result.outcome is code
    assert result.at == at
    assert "what was seen" in result.reason
    assert result.advice
    assert not result.figures


@pytest.mark.parametrize(
    "changes",
    [
        {"setup": setup(1, verbs="pyverbs")},
        {"setup": setup(1, mtu="large")},
        {"go": {key: value for key, value in RESULT.items() if key != "pieces"}},
        {"go": RESULT | {"pieces": "many"}},
        {"go": RESULT | {"seconds": "soon"}},
        {"counters": {"did": "counters", "counters": {"port_xmit_data": "all"}, "pkey_index": 3, "pkey_entry": 0x8010}},
    ],
    ids=["verbs", "mtu", "no-pieces", "pieces", "seconds", "counters"],
)
def test_nonsense_in_an_answer_is_an_outcome_and_never_an_exception(changes):
    result, _ = run(sender=script(1, **{"go": lambda request: time.sleep(0.01) or RESULT, **changes}))
    assert result.outcome in {Outcome.PROTOCOL, Outcome.REFUSED_EVIDENCE}
    assert result.reason
    assert not result.figures


@pytest.mark.parametrize("code", ["OK", "TCP_OK", "NOTHING", "", None])
def test_a_host_cannot_invent_an_outcome(code):
    assert run(target=script(2, setup=refusal(code)))[0].outcome is Outcome.PROTOCOL


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unreachable("x"), Outcome.UNREACHABLE),
        (AccessRefused("x"), Outcome.ACCESS_REFUSED),
        (HostKeyMismatch("x"), Outcome.HOST_KEY_MISMATCH),
        (WrapperMismatch("x"), Outcome.PROGRAM_MISMATCH),
        (CallTimedOut("x"), Outcome.TIMED_OUT),
        (VerbFailed(64, "x"), Outcome.PROGRAM_MISMATCH),
        (VerbFailed(1, "x"), Outcome.HOST_ERROR),
    ],
)
def test_an_end_that_cannot_be_opened(error, outcome):
    ends = Scripted("srv-1", script(1)), Scripted("srv-2", script(2, open=error))
    result = run_pair(sender=ends[0], target=ends[1], order=ORDER, deadline_s=5)
    assert (result.outcome, result.at) == (outcome, "target")
    assert ends[0].is_closed


@pytest.mark.parametrize("step", ["hello", "setup", "connect", "counters", "verify"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (StreamEnded(-1, ""), Outcome.PEER_LOST),
        (StreamEnded(137, ""), Outcome.PEER_LOST),
        (StreamEnded(124, ""), Outcome.TIMED_OUT),
        (StreamEnded(65, ""), Outcome.PROGRAM_MISMATCH),
        (StreamOverflow("x"), Outcome.OVERFLOW),
        (NotUnderstood("x"), Outcome.PROTOCOL),
        (Unreachable("x"), Outcome.PEER_LOST),
    ],
)
def test_a_conversation_that_ends_at_any_step(step, error, outcome):
    result, _ = run(target=script(2, **{step: error}))
    assert (result.outcome, result.at) == (outcome, "target")


def test_a_target_that_dies_during_the_transfer_is_noticed_at_once():
    begun = time.monotonic()
    order = Order(LINK, 1, pkey=0x10, transfer_timeout_s=60)
    result, _ = run(sender=script(1, go=None), target=script(2, idle=StreamEnded(-1, "")), order=order, deadline_s=90)
    assert (result.outcome, result.at) == (Outcome.PEER_LOST, "target")
    assert time.monotonic() - begun < 5


def test_a_sender_that_never_answers_is_given_up():
    result, _ = run(sender=script(1, hello=None), deadline_s=0.5)
    assert (result.outcome, result.at) == (Outcome.TIMED_OUT, "sender")
    assert "hello" in result.reason


def test_the_whole_run_has_a_bound_of_its_own():
    begun = time.monotonic()
    result, _ = run(deadline_s=0.3, target_delay_s=0.2)
    assert result.outcome is Outcome.TIMED_OUT
    assert time.monotonic() - begun < 3


def test_a_retry_error_with_a_dead_target_is_its_death():
    failed = refusal("TRANSFER_FAILED", status=12, completed=3)
    result, _ = run(sender=script(1, go=failed), target=script(2, counters=StreamEnded(-1, "")))
    assert (result.outcome, result.at) == (Outcome.PEER_LOST, "target")


def test_large_packets_that_do_not_pass_are_an_mtu_mismatch():
    result, _ = run(sender=script(1, go=refusal("TRANSFER_FAILED", status=12, completed=0)))
    assert result.outcome is Outcome.MTU_MISMATCH
    assert "packets of 4096 bytes did not" in result.reason


@pytest.mark.parametrize("facts", [{"completed": 3}, {"is_first": True}])
def test_other_retry_errors_are_no_mtu_mismatch(facts):
    result, _ = run(sender=script(1, go=refusal("TRANSFER_FAILED", status=12, **facts)))
    assert result.outcome is Outcome.TRANSFER_FAILED
    assert result.evidence["failure"]["status"] == 12


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("hello", {"did": "hello", "protocol": 2}),
        ("hello", {"did": "setup"}),
        ("setup", {"did": "setup"}),
        ("setup", setup(2, mtu="many")),
        ("setup", setup(2, qpns=None, port=[])),
        ("verify", {"did": "verify", "digest": ["x"]}),
        ("counters", {"did": "counters", "counters": "many", "pkey_index": 3, "pkey_entry": 0x8010}),
    ],
)
def test_nonsense_is_never_a_number_and_never_a_crash(step, answer):
    result, _ = run(target=script(2, **{step: answer}))
    assert result.outcome in {Outcome.PROTOCOL, Outcome.REFUSED_EVIDENCE, Outcome.CORRUPT}
    assert not result.figures


@pytest.mark.parametrize(
    "result",
    [
        {"seconds": "soon"},
        {"seconds": 0},
        {"bytes": None},
        {"histogram": None},
        {"p50_ns": "x"},
        {"seconds": float("nan")},
    ],
)
def test_a_result_of_nonsense_is_never_a_number(result):
    found, _ = run(sender=script(1, go={**RESULT, **result}))
    assert not found.is_measured
    assert not found.figures


def test_an_answer_nobody_asked_for_ends_the_run():
    target = Scripted("srv-2", script(2))
    target._waiting.append((0.0, {"did": "verify", "digest": "ab" * 32}))
    result = run_pair(sender=Scripted("srv-1", script(1)), target=target, order=ORDER, deadline_s=5)
    assert result.outcome is Outcome.PROTOCOL


def test_a_second_answer_to_one_question_ends_the_run():
    target = Scripted("srv-2", script(2))
    hello = target._answers["hello"]
    target._answers["hello"] = lambda request: target._waiting.append((0.0, hello)) or hello
    sender = Scripted("srv-1", script(1), delay_s=0.2)
    result = run_pair(sender=sender, target=target, order=ORDER, deadline_s=5)
    assert (result.outcome, result.at) == (Outcome.PROTOCOL, "target")


def test_memory_that_differs_is_corrupt():
    result, _ = run(target=script(2, verify={"did": "verify", "digest": "cd" * 32, "is_untouched": True}))
    assert result.outcome is Outcome.CORRUPT
    assert not result.figures


def test_tests_may_break_things_before_each_step():
    steps = []
    ends = Scripted("srv-1", script(1)), Scripted("srv-2", script(2))
    Session(sender=ends[0], target=ends[1], order=ORDER, deadline_s=5, before=steps.append).run()
    assert steps == ["open sender", "open target", "hello", "setup", "connect", "go", "counters", "verify", "bye"]


def test_a_refusal_keeps_what_is_known_as_evidence():
    result, _ = run(target=script(2, connect=refusal("HOST_ERROR")))
    assert result.evidence["sender"]["node_guid"]
    assert result.kind is Kind.RDMA
