"""Every combination of what an attempt that must fail can show, and the verdict it gets."""

import itertools
from dataclasses import replace

import pytest

from probes.verdict import Attempt, Control, Counters, Isolation, Path, Window, judge_attempt, judge_path, window

EXPECTED = Window(0.13, 0.54)
OK, FAILED, NOT_MADE = Control.SUCCEEDED, Control.FAILED, Control.NOT_MADE
DROPPED = Attempt(status=12, took_s=0.2, is_target_alive=True, is_target_ready=True, is_canary_intact=True)

# before, what differs from a cleanly dropped write, after, counters → verdict, confirmed, words of the sentence
ATTEMPTS = {
    "dropped": (OK, {}, OK, Counters(), "ISOLATED", False, "No counter confirms it"),
    "dropped, counters cannot be read": (OK, {}, OK, Counters(None, None), "ISOLATED", False, "No counter confirms"),
    "dropped, counters stand still": (OK, {}, OK, Counters(0, 0), "ISOLATED", False, "No counter confirms it"),
    "dropped, bad_pkey rose": (OK, {}, OK, Counters(bad_pkey=2), "ISOLATED", True, "2 packets with a wrong P_Key"),
    "dropped, switches counted": (OK, {}, OK, Counters(0, 3), "ISOLATED", True, "3 constraint errors"),
    "at the shortest": (OK, {"took_s": 0.13}, OK, Counters(), "ISOLATED", False, "after 0.130 s"),
    "at the longest": (OK, {"took_s": 0.54}, OK, Counters(), "ISOLATED", False, "after 0.540 s"),
    "completed": (OK, {"status": 0, "took_s": 0.001}, OK, Counters(), "LEAK", False, "completed"),
    "completed, canary intact": (OK, {"status": 0, "is_canary_intact": True}, OK, Counters(), "LEAK", False, "acknowl"),
    "completed, though counters rose": (OK, {"status": 0}, OK, Counters(1), "LEAK", False, "Still, the target"),
    "completed, no control before": (NOT_MADE, {"status": 0}, OK, Counters(), "LEAK", False, "completed"),
    "completed, controls failed": (FAILED, {"status": 0}, FAILED, Counters(), "LEAK", False, "completed"),
    "completed, target dead": (OK, {"status": 0, "is_target_alive": False}, OK, Counters(), "LEAK", False, "write"),
    "canary changed": (OK, {"is_canary_intact": False}, OK, Counters(), "LEAK", False, "memory was changed"),
    "canary changed, controls failed": (FAILED, {"is_canary_intact": False}, FAILED, Counters(), "LEAK", False, "memo"),
    "canary changed, no completion": (
        OK, {"status": None, "is_canary_intact": False}, OK, Counters(), "LEAK", False, "memory was changed"),
    "control before failed": (FAILED, {}, OK, Counters(1, 1), "INCONCLUSIVE", False, "before the attempt failed"),
    "control before not made": (NOT_MADE, {}, OK, Counters(1, 1), "INCONCLUSIVE", False, "made before"),
    "control after failed": (OK, {}, FAILED, Counters(1, 1), "INCONCLUSIVE", False, "after the attempt failed"),
    "control after not made": (OK, {}, NOT_MADE, Counters(1, 1), "INCONCLUSIVE", False, "made after"),
    "no completion": (OK, {"status": None}, OK, Counters(), "INCONCLUSIVE", False, "no end"),
    "time not measured": (OK, {"took_s": None}, OK, Counters(), "INCONCLUSIVE", False, "no end"),
    "flushed": (OK, {"status": 5}, OK, Counters(1), "INCONCLUSIVE", False, "status 5"),
    "remote access error": (OK, {"status": 10}, OK, Counters(1), "INCONCLUSIVE", False, "status 10"),
    "too soon": (OK, {"took_s": 0.129}, OK, Counters(1), "INCONCLUSIVE", False, "0.130 to 0.540 s"),
    "too late": (OK, {"took_s": 0.541}, OK, Counters(1), "INCONCLUSIVE", False, "0.130 to 0.540 s"),
    "target dead": (OK, {"is_target_alive": False}, OK, Counters(1), "INCONCLUSIVE", False, "did not answer"),
    "target not asked": (OK, {"is_target_alive": None}, OK, Counters(1), "INCONCLUSIVE", False, "did not answer"),
    "target's QP not in RTS": (OK, {"is_target_ready": False}, OK, Counters(1), "INCONCLUSIVE", False, "RTS"),
    "target's QP not known": (OK, {"is_target_ready": None}, OK, Counters(1), "INCONCLUSIVE", False, "RTS"),
    "canary not read": (OK, {"is_canary_intact": None}, OK, Counters(1), "INCONCLUSIVE", False, "could not be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt(name):
    before, changes, after, counters, verdict, is_confirmed, words = ATTEMPTS[name]
    judged = judge_attempt(
        before=before, attempt=replace(DROPPED, **changes), after=after, expected=EXPECTED, counters=counters
    )
    assert (judged.verdict, judged.is_confirmed) == (verdict, is_confirmed)
    assert words in judged.sentence


def test_only_one_combination_of_all_is_isolated():
    everything = itertools.product(
        Control, (0, 5, 12, None), (0.05, 0.2, 3.0, None), *[(True, False, None)] * 3, Control
    )
    isolated = []
    for before, status, took_s, alive, ready, canary, after in everything:
        attempt = Attempt(status, took_s, alive, ready, canary)
        judged = judge_attempt(before=before, attempt=attempt, after=after, expected=EXPECTED)
        assert (judged.verdict is Isolation.LEAK) == (status == 0 or canary is False)
        if judged.verdict is Isolation.ISOLATED:
            isolated.append((before, attempt, after))
    assert isolated == [(OK, DROPPED, OK)]


F, R, U = Path.FOUND, Path.REFUSED, Path.UNANSWERED
# the two, controls before, controls after, asker full → verdict, words
PATHS = {
    "refused": (R, [F, F], [F, F], True, "ISOLATED", "SM’s view only"),
    "found": (F, [F, F], [F, F], True, "LEAK", "in P_Key 0x7fff"),
    "found by a limited asker": (F, [F, F], [F, F], False, "LEAK", "in P_Key 0x7fff"),
    "found without controls": (F, [], [], None, "LEAK", "in P_Key 0x7fff"),
    "asker limited": (R, [F, F], [F, F], False, "INCONCLUSIVE", "is not a full member"),
    "asker limited, all refused": (R, [R, R], [R, R], False, "INCONCLUSIVE", "is not a full member"),
    "asker not known": (R, [F, F], [F, F], None, "INCONCLUSIVE", "is not known to be"),
    "no control before": (R, [], [F, F], True, "INCONCLUSIVE", "was made before"),
    "no control after": (R, [F, F], [], True, "INCONCLUSIVE", "was made after"),
    "a control before refused": (R, [F, R], [F, F], True, "INCONCLUSIVE", "succeeded before"),
    "a control before unanswered": (R, [U, F], [F, F], True, "INCONCLUSIVE", "succeeded before"),
    "a control after refused": (R, [F, F], [R, F], True, "INCONCLUSIVE", "succeeded after"),
    "a control after unanswered": (R, [F, F], [F, U], True, "INCONCLUSIVE", "succeeded after"),
    "unanswered": (U, [F, F], [F, F], True, "INCONCLUSIVE", "did not answer"),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path(name):
    asked, before, after, is_full, verdict, words = PATHS[name]
    judged = judge_path(asked=asked, before=before, after=after, is_asker_full=is_full, pkey="0x7fff")
    assert (judged.verdict, judged.is_confirmed) == (verdict, False)
    assert words in judged.sentence


def test_the_sa_of_a_foreign_sm_isolates_nobody_but_leaks_all_the_same():
    known = {"before": [F, F], "after": [F, F], "is_asker_full": True, "is_sm_known": False}
    refused = judge_path(asked=R, **known)
    assert (refused.verdict, "not a registered" in refused.sentence) == ("INCONCLUSIVE", True)
    assert judge_path(asked=F, **known).verdict == "LEAK"


def test_the_window_is_the_one_of_the_table():
    # kvprobe 4.2: 14 with one retry 0.13–0.54 s (longer where firmware waits), 18 with one 2.1–8.6, 20 with 7 34–137.
    fourteen = window(ack_timeout=14, retry_count=1)
    assert fourteen.least_s == pytest.approx(0.134, abs=0.001)
    assert fourteen.most_s == pytest.approx(4 * 2 * 0.27)
    eighteen = window(ack_timeout=18, retry_count=1)
    assert (eighteen.least_s, eighteen.most_s) == pytest.approx((2.147, 8.590), abs=0.001)
    twenty = window(ack_timeout=20, retry_count=7)
    assert (twenty.least_s, twenty.most_s) == pytest.approx((34.36, 137.4), abs=0.1)


@pytest.mark.parametrize(("ack_timeout", "retry_count"), [(0, 1), (32, 1), (14, 8), (14, -1)])
def test_what_never_ends_has_no_window(ack_timeout, retry_count):
    with pytest.raises(ValueError, match="never ends"):
        window(ack_timeout=ack_timeout, retry_count=retry_count)
