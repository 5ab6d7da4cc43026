"""What speaks against writing to a subnet: foreign versions and owners, options, strangers, sweeps."""

from dataclasses import replace

import pytest

from subnet.qualification import (
    CHECKLIST,
    MUST_AGREE,
    UNPACED,
    FabricFacts,
    HostFacts,
    Piece,
    Sweeps,
    Version,
    is_fit,
    judge,
    rates_to_try,
    unanswered,
)

SM_A, SM_B, OTHER = "0x0002c903000a0001", "0x0002c903000b0001", "0x0002c903000c0001"
KNOWN = {
    "3.3.23": Version(
        "3.3.23", "Debian", "opens the fabric", "keeps",
        {"keep_pkey_indexes": "TRUE", "allow_both_pkeys": "FALSE", "part_enforce": "both", "m_key": "0x0",
         "ignore_other_sm": "FALSE", "no_partition_enforcement": "FALSE"},
    )
}  # fmt: skip
HOST = HostFacts(
    account="root", forced_command="/opt/fabricui/fabricui-host /opt/fabricui", wrapper_digest="w", reader_digest="r",
    port_guid=SM_A, pieces=(Piece("python", True, ""),), opensm_version="3.3.23", opensm_exe="/usr/sbin/opensm",
    opensm_unit="opensm@0x0002c903000a0001.service", config_file="", partition_file="/etc/opensm/partitions.conf",
)  # fmt: skip
FABRIC = FabricFacts(
    capacities={128: 10}, ports=10, unreadable=0, enforced=10,
    sms=((SM_A, "CA", "MASTER"), (SM_B, "CA", "STANDBY")),
)  # fmt: skip
SWEEPS = Sweeps(alone=(1.0, 1.1, 1.05), beside={2000: (1.1, 1.05, 1.0)})
RATE = 2000


def judged(hosts=None, *, fabric=FABRIC, sweeps=SWEEPS, rate=RATE):
    hosts = hosts or {"sm-a": HOST, "sm-b": HOST}
    return judge(hosts, fabric, sweeps, versions=KNOWN, registered={SM_A, SM_B}, rate=rate)


def refusals(*args, **kwargs) -> dict[str, str]:
    return {found.check: found.sentence for found in judged(*args, **kwargs) if found.severity == "refuse"}


def one(**changes):
    return {"sm-a": HOST, "sm-b": replace(HOST, **changes)}


def test_a_good_site_is_fit_and_its_facts_are_told():
    found = judged()
    assert is_fit(found)
    told = " ".join(finding.sentence for finding in found)
    assert "PartitionCap): 10 with 128" in told
    assert "A heavy sweep takes 1.05 s" in told
    assert "at 2,000 SMPs a second does not slow" in told


@pytest.mark.parametrize(
    "version",
    ["5.17.0.MLNX20240107.ac18da9", "4.7.0.MLNX20160523.25f7c7a", "5.21.12.MLNX20250327.9dc1b2a3", "5.1", "4.9.0"],
)
def test_nvidias_opensm_is_observed_only_with_the_reason(version):
    hosts = {name: replace(HOST, opensm_version=version) for name in ("sm-a", "sm-b")}
    found = refusals(hosts)
    assert set(found) == {"owner"}
    assert version in found["owner"]
    assert "only observes" in found["owner"]


@pytest.mark.parametrize(
    "changes",
    [
        {"opensm_exe": "/opt/ufm/opensm/sbin/opensm"},
        {"config_file": "/opt/ufm/files/conf/opensm/opensm.conf"},
        {"partition_file": "/opt/ufm/files/conf/partitions.conf"},
        {"opensm_unit": "ufm-enterprise.service"},
    ],
)
def test_ufms_opensm_is_observed_only_even_when_its_version_was_tried(changes):
    assert "UFM" in refusals(one(**changes))["owner"]


def test_a_switch_that_runs_an_sm_is_observed_only():
    fabric = replace(FABRIC, sms=(*FABRIC.sms, (OTHER, "SW", "STANDBY")))
    found = refusals(fabric=fabric)
    assert "A switch runs a subnet manager of its own" in found["owner"]
    assert OTHER in found["owner"]


def test_any_other_sm_is_named():
    fabric = replace(FABRIC, sms=(*FABRIC.sms, (OTHER, "CA", "MASTER")))
    assert OTHER in refusals(fabric=fabric)["census"]


@pytest.mark.parametrize("version", ["3.3.22", "3.3.24", "3.3.23.1", "unknown", "6.0"])
def test_only_exactly_a_version_that_was_tried_will_do(version):
    hosts = {name: replace(HOST, opensm_version=version) for name in ("sm-a", "sm-b")}
    assert version in refusals(hosts)["version"]


def test_every_missing_piece_refuses_with_its_own_sentence():
    found = refusals(one(pieces=(Piece("umad", False, "Load ib_umad."), Piece("python", False, "No python."))))
    assert found == {"umad": "Load ib_umad.", "python": "No python."}


@pytest.mark.parametrize(
    "options",
    [
        {"keep_pkey_indexes": "FALSE"},
        {"keep_pkey_indexes": "true"},  # OpenSM takes exactly TRUE
        {"allow_both_pkeys": "TRUE argv"},
        {"ignore_other_sm": "TRUE"},
    ],
)
def test_options_that_break_a_promise_refuse(options):
    hosts = {name: replace(HOST, options=options) for name in ("sm-a", "sm-b")}
    assert next(iter(options)) in refusals(hosts)["options"]


@pytest.mark.parametrize("option", MUST_AGREE)
def test_options_that_must_agree_refuse_when_they_differ(option):
    found = refusals(one(options={option: "17"}))
    assert f"{option} differs" in found["agreement"]


def test_priorities_may_differ():
    assert is_fit(judged(one(options={"sm_priority": "3"})))


def test_two_versions_refuse_even_if_both_were_tried():
    versions = KNOWN | {"3.3.24": replace(KNOWN["3.3.23"], version="3.3.24")}
    found = judge(one(opensm_version="3.3.24"), FABRIC, SWEEPS, versions=versions, registered={SM_A, SM_B}, rate=RATE)
    assert [one.check for one in found if one.severity == "refuse"] == ["agreement"]


@pytest.mark.parametrize(
    ("what", "check"),
    [
        ({"fabric": None}, "fabric"),
        ({"fabric": replace(FABRIC, ports=0, capacities={})}, "fabric"),
        ({"fabric": replace(FABRIC, capacities={1: 1, 128: 9})}, "capacity"),
        ({"sweeps": None}, "sweep"),
        ({"sweeps": Sweeps((1.0,), {2000: (2.0,), 1000: (1.9,)})}, "rate"),
        ({"sweeps": Sweeps((1.0,), {2000: (2.0,), 1000: (1.05,)})}, "rate"),  # the configured one slows it
        ({"rate": 0}, "rate"),  # unpaced was not tried
    ],
)
def test_what_is_not_known_refuses(what, check):
    assert set(refusals(**what)) == {check}


def test_one_manager_host_is_not_enough():
    assert "managers" in refusals({"sm-a": HOST})


def test_a_slower_rate_that_is_harmless_is_named():
    sweeps = Sweeps((1.0,), {2000: (2.0,), 1000: (1.05,)})
    assert sweeps.rate == 1000
    assert "1000 does not" in refusals(sweeps=sweeps)["rate"]


def test_on_a_tiny_fabric_milliseconds_do_not_count():
    assert Sweeps((0.015,), {UNPACED: (0.040,)}).rate == UNPACED


@pytest.mark.parametrize(("rate", "first"), [(0, UNPACED), (2000, 2000), (500, 500)])
def test_the_configured_rate_is_tried_first_then_lower_ones(rate, first):
    rates = rates_to_try(rate)
    assert rates[0] == first
    assert list(rates) == sorted(rates, reverse=True)
    assert min(rates) >= 100


def test_each_item_of_the_checklist_needs_its_own_yes():
    assert unanswered({}) == tuple(CHECKLIST)
    assert unanswered(dict.fromkeys(CHECKLIST, True)) == ()
    for item in CHECKLIST:
        assert unanswered(dict.fromkeys(CHECKLIST, True) | {item: "yes"}) == (item,)
