"""A check of one direction against ends that answer from a script: what is asked of them, and what it is made of."""

from dataclasses import replace

from probes.attempt import Check, End, check
from probes.terms import PortChoice
from probes.verdict import NOT_ON_ETHERNET
from remote.errors import StreamEnded
from tests.probes.ends import Scripted, port, script, setup

OWN, FOREIGN = 0x0010, 0x0020
DROPPED = {"did": "attempt", "status": 12, "status_name": "RETRY_EXC_ERR", "vendor_err": 0x81, "took_ns": 210_000_000}
COMPLETED = {"did": "attempt", "status": 0, "status_name": "SUCCESS", "vendor_err": 0, "took_ns": 9_000}


class Pair:
    """Two ends; `tries` are the answers to the attempts in order: control, the attempt, control."""

    def __init__(self, tries=(COMPLETED, DROPPED, COMPLETED), *, layer="InfiniBand", target=None, bad_pkey=0):
        self.tries, self.done = list(tries), 0
        self.bad_pkey = bad_pkey
        foreign = setup(2, port=port(2, link_layer=layer), pkey_entry=0x8020)
        self.sender = Scripted(
            "srv-1", script(1, setup=setup(1, port=port(1, link_layer=layer)), attempt=self._attempt)
        )
        answers = {"counters": self._counters, "verify": self._verify, "setup": self._setup, **(target or {})}
        self.foreign, self.target = foreign, Scripted("srv-2", script(2, **answers))

    def _attempt(self, request):
        self.done += 1
        return self.tries[self.done - 1]

    def _setup(self, request):
        return self.foreign if request["pkey"] == FOREIGN else {**self.foreign, "pkey_entry": 0x8010}

    @property
    def _is_dropped(self):
        return self.tries[self.done - 1]["status"] != 0

    def _counters(self, request):
        rose = self.bad_pkey if self._is_dropped else 0
        return {"did": "counters", "counters": {}, "bad_pkey": rose, "qp_states": [3]}

    def _verify(self, request):
        return {"did": "verify", "digest": "ab" * 32, "is_untouched": self._is_dropped}

    def check(self, **changes):
        one = End(self.sender, PortChoice("mlx5_0", 1), OWN)
        other = End(self.target, PortChoice("mlx5_0", 1), FOREIGN)
        controls = [(one, replace(other, pkey=OWN))]
        return check(Check(**{"sender": one, "target": other, "controls": controls} | changes))

    def asked(self, what):
        return [request for end in (self.sender, self.target) for request in end.asked if request["do"] == what]


def test_a_dropped_write_between_two_controls_is_isolated():
    pair = Pair()
    found = pair.check()
    assert (found.judged.verdict, found.judged.is_confirmed) == ("ISOLATED", False)
    assert [request["pkey"] for request in pair.sender.asked if request["do"] == "setup"] == [OWN] * 3
    assert [request["pkey"] for request in pair.target.asked if request["do"] == "setup"] == [OWN, FOREIGN, OWN]
    limits = [request["limits"] for request in pair.sender.asked if request["do"] == "setup"]
    assert limits == [{"timeout": 14, "retry_cnt": retries} for retries in (7, 1, 7)]
    assert not pair.asked("go")
    attempt = found.evidence["attempt"]
    assert (attempt["status"], attempt["took_s"], attempt["canary_intact"]) == (12, 0.21, True)
    assert (attempt["target_alive"], attempt["target_in_rts"]) == (True, True)
    assert attempt["ends"]["target"]["pkey_entry"] == 0x8020
    assert len(found.evidence["controls_before"]) == len(found.evidence["controls_after"]) == 1


def test_a_risen_counter_of_bad_pkeys_confirms_it():
    found = Pair(bad_pkey=2).check()
    assert (found.judged.verdict, found.judged.is_confirmed) == ("ISOLATED", True)
    assert found.evidence["attempt"]["bad_pkey_rose_by"] == 2


def test_a_write_that_completes_is_a_leak():
    assert Pair([COMPLETED] * 3).check().judged.verdict == "LEAK"


def test_a_changed_canary_is_a_leak_whatever_the_sender_says():
    pair = Pair(target={"verify": {"did": "verify", "digest": "ab" * 32, "is_untouched": False}})
    assert pair.check().judged.verdict == "LEAK"


def test_a_failed_control_before_ends_the_check_before_the_attempt():
    pair = Pair([DROPPED])
    found = pair.check()
    assert found.judged.verdict == "INCONCLUSIVE"
    assert "before the attempt failed" in found.judged.sentence
    assert pair.done == 1


def test_a_control_that_completes_without_bytes_arriving_is_none():
    pair = Pair(target={"verify": {"did": "verify", "digest": "ab" * 32, "is_untouched": True}})
    assert "before the attempt failed" in pair.check().judged.sentence


def test_a_failed_control_after_is_inconclusive():
    found = Pair([COMPLETED, DROPPED, DROPPED]).check()
    assert found.judged.verdict == "INCONCLUSIVE"
    assert "after the attempt failed" in found.judged.sentence


def test_without_a_control_nothing_is_sent():
    pair = Pair()
    found = pair.check(controls=[])
    assert (found.judged.verdict, pair.sender.asked) == ("INCONCLUSIVE", [])


def test_a_queue_pair_that_is_not_ready_is_inconclusive():
    answer = {"did": "counters", "counters": {}, "bad_pkey": 0, "qp_states": [6]}
    found = Pair(target={"counters": answer}).check()
    assert (found.judged.verdict, "RTS" in found.judged.sentence) == ("INCONCLUSIVE", True)


def test_a_target_that_ends_meanwhile_is_inconclusive_and_named():
    pair = Pair()

    def die(request):
        return StreamEnded(137, "it ended") if pair.done == 2 else pair._counters(request)

    pair.target._answers["counters"] = die
    found = pair.check()
    assert found.judged.verdict == "INCONCLUSIVE"
    assert "a dead target looks the same" in found.judged.sentence
    assert "srv-2" in found.judged.sentence
    assert found.evidence["attempt"]["target_alive"] is False


def test_an_ethernet_port_is_not_applicable_unless_the_guard_is_off():
    guarded = Pair(layer="Ethernet")
    found = guarded.check()
    assert (found.judged.verdict, found.judged.sentence) == ("INCONCLUSIVE", NOT_ON_ETHERNET)
    assert guarded.done == 0
    assert found.evidence["applicable"] is False


def test_nonsense_of_an_end_is_an_outcome():
    found = Pair([COMPLETED, {"did": "attempt", "status": None}, COMPLETED]).check()
    assert found.judged.verdict == "INCONCLUSIVE"
    assert found.evidence["attempt"]["outcome"] == "PROTOCOL"
