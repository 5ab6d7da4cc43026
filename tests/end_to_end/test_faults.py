"""Some pairs of the fault matrix on the real lab; `./run bench faults` plays all of them. See docs/faults.md.

The pairs are played by a process of their own, because their workers need a database that several processes share.
"""

import json
import subprocess
import sys

import pytest

from lab.faults.matrix import PAIRS, Pair

pytestmark = pytest.mark.contract
WITHIN_S = 900  # a machine that is shared by others takes many times as long as an idle one

PLAYED = [
    Pair("QUEUED, a worker has it", "host key changed"),
    Pair("QUEUED, a worker has it", "wrong -P"),
    Pair("QUEUED, a worker has it", "standby killed"),
    Pair("QUEUED, a worker has it", "CRLF in the master's file"),
    Pair("STAGING, before the standby's file", "disk of the standby full"),
    Pair("STAGING, before the standby's file", "disk of the standby read-only"),
    Pair("STAGING, before the standby's file", "SSH of the standby cut"),
    Pair("STAGING, before the standby's file", "third SM takes over"),
    Pair("STAGING, all files staged", "worker killed"),
    Pair("PLACING, before the master", "worker killed"),
    Pair("PLACING, before the master", "overtaken by another worker"),
    Pair("PLACING, before the master", "second worker"),
    Pair("PLACING, before the master", "disk of the master full"),
    Pair("PLACING, after the master", "foreign sweep"),
    Pair("RELOADING, before the signal", "worker killed"),
    Pair("RELOADING, before the signal", "host key changed"),
    Pair("READING_BACK, before the barrier", "worker killed"),
    Pair("READING_BACK, before the barrier", "master killed"),
    Pair("READING_BACK, before the verdict", "standby killed"),
    Pair("RESTORING, before the standby", "worker killed"),
]


@pytest.fixture(scope="module")
def played():
    """Outcome by pair, and what the run as a whole said at its end."""
    assert set(PLAYED) <= set(PAIRS)
    done = subprocess.run(
        [sys.executable, "-m", "lab.faults", *map(str, PLAYED)],
        stdout=subprocess.PIPE, text=True, timeout=WITHIN_S, check=True,
    )  # fmt: skip
    *lines, last = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {Pair(line["step"], line["fault"]): line for line in lines}, last


@pytest.mark.parametrize("pair", PLAYED, ids=str)
def test_the_rollout_names_its_state_says_why_and_mixes_no_tenants(played, pair):
    outcome = played[0][pair]
    assert outcome["objections"] == []
    assert outcome["violations"] == []


def test_the_observer_looked_throughout_and_sees_what_is_planted(played):
    last = played[1]
    assert last["planted"] == {"tenants": True, "fallback": True, "file": True}
    assert last["status"]["samples"] / last["status"]["seconds"] >= 2
