"""Which runs are believed: everything of kvprobe 3.8 is there, and nothing is faster than line or light."""

import copy
from dataclasses import replace

import pytest

from probes import evidence
from probes.crossing import cross
from probes.terms import Kind, Mode, Order, Outcome, PortChoice, Profile, Verb
from tests.probes.ends import RESULT, setup

LINK = Profile("link", Verb.WRITE, 1 << 20, 4, Mode.CONTIGUOUS, 1 << 24)
ORDER = Order(LINK, 1, pkey=0x10)
CARRIED = RESULT["carried"]
SUM = {"sent": "ab", "held": "ab"}


def block(order=ORDER, **setups):
    ends = {"sender": setups.get("sender", setup(1)), "target": setups.get("target", setup(2))}
    after = {
        end: {
            "counters_before": {"port_xmit_data": 0, "port_rcv_data": 0},
            "counters_after": {"port_xmit_data": CARRIED // 4, "port_rcv_data": CARRIED // 4},
            "pkey_after": [3, 0x8010],
        }
        for end in ends
    }
    return {**evidence.assemble(order, ends, cross(order, **ends), after), "checksum": dict(SUM)}


def judged(found, result=RESULT, order=ORDER, seen_s=1.0):
    return evidence.judge(order, found, result, seen_s=seen_s)


def test_a_whole_run_is_believed():
    assert judged(block()) == (Outcome.OK, "")


@pytest.mark.parametrize("end", ["sender", "target"])
@pytest.mark.parametrize(
    "part",
    [
        "device", "port", "link_layer", "rate", "node_guid", "port_guid", "uverbs", "library", "qpns", "pkey_entry",
        "pkey_index", "lid", "counters_before", "counters_after", "pkey_after",
    ],
)  # fmt: skip
def test_no_part_may_be_missing(end, part):
    found = block()
    del found[end][part]
    outcome, reason = judged(found)
    assert outcome is Outcome.REFUSED_EVIDENCE
    assert reason.startswith(f"{end}: ")


@pytest.mark.parametrize("end", ["sender", "target"])
@pytest.mark.parametrize("name", ["node_guid", "port_guid"])
def test_another_device_than_the_registered_one_is_refused_here_too(end, name):
    right = PortChoice(**{name: block()[end][name]})
    assert judged(block(), order=replace(ORDER, **{end: right})) == (Outcome.OK, "")
    outcome, reason = judged(block(), order=replace(ORDER, **{end: PortChoice(**{name: "0x0002c903000a0009"})}))
    assert outcome is Outcome.REFUSED_EVIDENCE
    assert reason.startswith(f"{end}: its {name} is 0x")


@pytest.mark.parametrize("part", ["bytes", "carried", "seconds", "samples", "p50_ns", "histogram"])
def test_no_part_of_the_result_may_be_missing(part):
    outcome, reason = judged(block(), {key: value for key, value in RESULT.items() if key != part})
    assert outcome is Outcome.REFUSED_EVIDENCE
    assert part in reason


def test_memory_that_differs_is_corrupt():
    found = block()
    found["checksum"] = {"sent": "ab", "held": "cd"}
    assert judged(found)[0] is Outcome.CORRUPT
    found["checksum"] = {"sent": "ab", "held": "cd", "is_untouched": True}
    assert "never written" in judged(found)[1]


def test_no_checksum_is_no_evidence():
    found = block()
    found["checksum"] = {"sent": "ab"}
    assert judged(found)[0] is Outcome.REFUSED_EVIDENCE


@pytest.mark.parametrize(("end", "name"), [("sender", "port_xmit_data"), ("target", "port_rcv_data")])
def test_counters_that_stand_still_refuse(end, name):
    found = block()
    found[end]["counters_after"][name] = CARRIED // 4 - 1
    outcome, reason = judged(found)
    assert outcome is Outcome.REFUSED_EVIDENCE
    assert f"{end}: {name}" in reason


def test_a_read_is_counted_the_other_way():
    order = Order(Profile("pull", Verb.READ, 1 << 20, 4, Mode.CONTIGUOUS, 1 << 24), 1, pkey=0x10)
    found = block(order)
    found["sender"]["counters_after"]["port_xmit_data"] = found["target"]["counters_after"]["port_rcv_data"] = 0
    assert judged(found, order=order) == (Outcome.OK, "")
    found["target"]["counters_after"]["port_xmit_data"] = 0
    assert judged(found, order=order)[0] is Outcome.REFUSED_EVIDENCE


def test_packets_count_where_a_device_counts_no_bytes():
    found = block()
    packets = -(-CARRIED // 4096)
    for end, name in (("sender", "sent_pkts"), ("target", "rcvd_pkts")):
        found[end]["counters_before"], found[end]["counters_after"] = {name: 5}, {name: 5 + packets}
    assert judged(found)[0] is Outcome.OK
    found["target"]["counters_after"]["rcvd_pkts"] -= 1
    assert judged(found)[0] is Outcome.REFUSED_EVIDENCE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found["target"].update(node_guid=found["sender"]["node_guid"]), "same HCA"),
        (lambda found: found["sender"].update(pkey_after=[4, 0x8010]), "changed during the run"),
        (lambda found: found["target"].update(pkey_entry=0x8011, pkey_after=[3, 0x8011]), "another P_Key"),
        (lambda found: found["target"].update(rate="fast"), "is no rate"),
    ],
)
def test_contradictions_refuse(change, words):
    found = block()
    change(found)
    outcome, reason = judged(found)
    assert outcome is Outcome.REFUSED_EVIDENCE
    assert words in reason


@pytest.mark.parametrize(
    ("result", "seen_s", "words"),
    [
        ({"seconds": RESULT["bytes"] * 8 / 405e9}, 1.0, "faster than the line"),
        ({"seconds": 0.9}, 0.5, "its clock runs fast"),
        ({"min_ns": 300}, 1.0, "faster than light"),
        ({"p50_ns": 999}, 1.0, "below what two HCAs need"),
        ({"seconds": float("inf")}, 1.0, "no duration"),
        ({"seconds": -1.0}, 1.0, "no duration"),
    ],
)
def test_the_impossible_is_rejected(result, seen_s, words):
    order = Order(LINK, 1, pkey=0x10, cable_m=50)
    outcome, reason = judged(block(), {**RESULT, **result}, order, seen_s)
    assert outcome is Outcome.IMPLAUSIBLE
    assert words in reason


def test_the_line_itself_is_no_impossibility():
    assert judged(block(), {**RESULT, "seconds": RESULT["bytes"] * 8 / 399e9})[0] is Outcome.OK


def test_software_devices_are_labelled_and_have_no_line():
    sender = setup(1)
    sender["port"]["is_software"] = True
    found = block(sender=sender)
    assert found["label"].startswith("Soft-RoCE, software")
    assert evidence.line_gbps(found) is None


def test_the_slower_port_is_the_line():
    target = setup(2)
    target["port"]["rate"] = "200 Gb/sec (4X HDR)"
    assert evidence.line_gbps(block(target=target)) == 200


def test_a_tcp_baseline_is_its_own_outcome_and_needs_its_interface():
    order = Order(LINK, 1, kind=Kind.TCP, sender=PortChoice(interface="eth0"), target=PortChoice(interface="eth0"))
    end = {"interface": "eth0", "address": "10.0.0.1"}
    after = {
        "counters_before": {"tx_bytes": 0, "rx_bytes": 0},
        "counters_after": {"tx_bytes": CARRIED, "rx_bytes": CARRIED},
    }
    found = evidence.assemble(order, {"sender": end, "target": end}, None, {"sender": after, "target": after})
    found["checksum"] = SUM
    assert judged(found, order=order) == (Outcome.TCP_OK, "")
    less = copy.deepcopy(found)
    less["target"]["counters_after"]["rx_bytes"] -= 1
    assert judged(less, order=order)[0] is Outcome.REFUSED_EVIDENCE
    del found["sender"]["interface"]
    assert judged(found, order=order)[0] is Outcome.REFUSED_EVIDENCE
