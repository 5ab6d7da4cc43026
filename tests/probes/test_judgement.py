"""A table of cases for each rule, and what no rule may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.judgement import (
    Measured,
    Rule,
    Thresholds,
    Verdict,
    failed,
    judge,
    median_and_mad,
    opens_incident,
)

DEFAULT = Thresholds()
STEADY = [390.0, 391, 389, 390, 392, 388, 390]
GOOD, WARN, BAD, NONE = Verdict.GOOD, Verdict.WARN, Verdict.BAD, Verdict.NONE

CASES = [
    # what, measured, link profile?, peers, history → verdict, rules
    ("near the line", Measured(gbps=390, pct_line=97.5), True, [], [], GOOD, []),
    ("exactly the bound", Measured(gbps=360, pct_line=90.0), True, [], [], GOOD, []),
    ("under the bound", Measured(gbps=359, pct_line=89.9), True, [], [], BAD, [Rule.LINE]),
    ("scattered pieces have no bound of the line", Measured(gbps=100, pct_line=25), False, [], [], GOOD, []),
    ("software has no line", Measured(gbps=1), True, [], [], GOOD, []),
    ("as good as its peers", Measured(gbps=380, pct_line=95), True, [390, 385, 388], [], GOOD, []),
    ("worse than its peers", Measured(gbps=362, pct_line=90.5), True, [390, 385, 388], [], WARN, [Rule.PEERS]),
    ("two peers are no group", Measured(gbps=100), False, [390, 385], [], GOOD, []),
    ("slow as its peers, still bad", Measured(gbps=200, pct_line=50), True, [200, 201, 199], [], BAD, [Rule.LINE]),
    ("slow beside the quickest", Measured(p50_ns=4300), False, [2000, 2100, 2200], [], WARN, [Rule.PEERS]),
    ("2.1 times is allowed", Measured(p50_ns=4200), False, [2000, 2100, 2200], [], GOOD, []),
    ("its usual", Measured(gbps=388), False, [], STEADY, GOOD, []),
    ("7 % under its median", Measured(gbps=362), False, [], STEADY, WARN, [Rule.HISTORY]),
    ("a fifth under its median", Measured(gbps=310), False, [], STEADY, BAD, [Rule.HISTORY]),
    ("faster than ever is no fault", Measured(gbps=500), False, [], STEADY, GOOD, []),
    ("within its own noise", Measured(gbps=70), False, [], [100, 60, 140, 80, 120, 70, 130], GOOD, []),
    ("four runs are no habit", Measured(gbps=100), False, [], [390, 390, 390, 390], GOOD, []),
    ("a fifth over its median", Measured(p50_ns=2600), False, [], [2000, 2010, 1990, 2001, 2005], BAD, [Rule.HISTORY]),
    ("both", Measured(gbps=300, pct_line=75), True, [390] * 3, STEADY, BAD, [Rule.LINE, Rule.PEERS, Rule.HISTORY]),
    ("nothing measured", Measured(), True, [390] * 3, STEADY, NONE, []),
]  # fmt: skip


@pytest.mark.parametrize(("what", "measured", "is_link", "peers", "history", "verdict", "rules"), CASES)
def test_the_case_table(what, measured, is_link, peers, history, verdict, rules):
    found = judge(measured, thresholds=DEFAULT, is_link_profile=is_link, peers=peers, history=history)
    assert found.verdict is verdict, found
    assert [reason.rule for reason in found.reasons] == rules
    assert all(reason.sentence.endswith(".") for reason in found.reasons)


def test_a_failure_is_bad_and_says_why():
    found = failed("PEER_LOST", "The target ended.")
    assert found.verdict is BAD
    assert found.reasons[0].sentence == "PEER_LOST: The target ended."


@pytest.mark.parametrize(
    ("newest_first", "opens"),
    [([], False), ([BAD], False), ([BAD, BAD], True), ([BAD, GOOD, BAD], True), ([GOOD, BAD, BAD], True),
     ([BAD, GOOD, GOOD, BAD], False), ([WARN, WARN, WARN], False)],
)  # fmt: skip
def test_two_of_the_last_three_open_an_incident(newest_first, opens):
    assert opens_incident(newest_first) is opens


@given(st.floats(0.1, 1e6), st.lists(st.floats(0.1, 1e6), max_size=20), st.lists(st.floats(0.1, 1e6), max_size=20))
def test_a_better_rate_is_never_judged_worse(gbps, peers, history):
    order = [GOOD, WARN, BAD]
    ask = {"thresholds": DEFAULT, "is_link_profile": True, "peers": peers, "history": history}
    now = judge(Measured(gbps=gbps, pct_line=50), **ask)
    better = judge(Measured(gbps=gbps * 1.1, pct_line=55), **ask)
    assert order.index(better.verdict) <= order.index(now.verdict)


@pytest.mark.parametrize(
    "stored",
    [{"line_bad_pct": -1}, {"line_bad_pct": "90"}, {"history_warn_pct": 30}, {"nobody": 1}, {"line_bad_pct": True}],
)
def test_thresholds_that_make_no_sense_are_refused(stored):
    with pytest.raises((ValueError, TypeError)):
        Thresholds.from_json(stored)


def test_thresholds_round_trip():
    assert Thresholds.from_json(Thresholds(line_bad_pct=80).to_json()) == Thresholds(line_bad_pct=80)


def test_median_and_mad_are_robust():
    assert median_and_mad([1, 2, 3, 4]) is None
    assert median_and_mad([10, 11, 9, 10, 1000]) == (10, 1)
