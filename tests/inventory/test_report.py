"""What is not a report is refused with a sentence, and nothing odd gets through."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.errors import InvalidReport
from inventory.report import parse_enrolment, parse_json, parse_report
from subnet.guid import GUID
from tests.inventory.reports import GUID_A, port, said

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_a_report_is_read():
    report = parse_report(said(port(GUID_A.upper().replace("X", "x")), hostname="SRV-001", note=" no devices "))
    (found,) = report.ports
    assert (report.hostname, report.note) == ("srv-001", "no devices")
    assert found.guid == GUID(GUID_A)
    assert (found.lid, found.sm_lid, found.rate_gbps) == (7, 1, 200.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "“schema” is not 1"),
        ({"schema": True}, "“schema” is not 1"),
        ({"surprise": 1}, "a field nobody asked for: 'surprise'"),
        ({"hostname": "localhost"}, "names no server"),
        ({"hostname": "srv 001"}, "names no server"),
        ({"hostname": None}, "names no server"),
        ({"hostname": "srv\u202e001"}, "“hostname” has a character that cannot be printed"),
        ({"hostname": "\u0455rv-001"}, "names no server"),
        ({"hostname": "../../etc/passwd"}, "names no server"),
        ({"hostname": "=1+1"}, "names no server"),
        ({"hostname": 7}, "“hostname” is not text"),
        ({"boot_id": "x" * 65}, "“boot_id” is 65 characters long; 64 is the most"),
        ({"boot_id": "a\x00b"}, "a character that cannot be printed"),
        ({"note": "\ud800"}, "a character that cannot be printed"),
        ({"ports": {}}, "“ports” is not a list"),
        ({"ports": [1]}, "ports[0] is not a JSON object"),
        ({"ports": [{}] * 513}, "“ports” has 513 entries; 512 is the most"),
        ({"ports": [port(GUID_A), port(GUID_A)]}, "Port 1 of mlx5_0 stands twice"),
        ({"skipped": [{"path": 1, "reason": ""}]}, "skipped[0].path is not text"),
    ],
)
def test_what_is_wrong_with_a_report_is_said(change, words):
    with pytest.raises(InvalidReport) as error:
        parse_report(said() | change)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"port_guid": "0x0002c90300010001ff"}, "is not a GUID"),
        ({"port_guid": 9182736455463728190}, "ports[0].port_guid is not text"),
        ({"port": 0}, "ports[0].port is not a whole number from 1 to 255"),
        ({"port": True}, "ports[0].port is not a whole number"),
        ({"port": None}, "ports[0].port is missing"),
        ({"device": ""}, "ports[0].device is empty"),
        ({"lid": 65536}, "ports[0].lid is not a whole number from 0 to 65535"),
        ({"lid": 1.5}, "ports[0].lid is not a whole number"),
        ({"rate_gbps": -1}, "ports[0].rate_gbps is not a rate"),
        ({"state": "x" * 21}, "ports[0].state is 21 characters long"),
        ({"pkeys": {"0": 65535}}, "is not a P_Key table entry"),
        ({"pkeys": {"first": "0xffff"}}, "a key that is no index"),
        ({"partition_candidate": "yes"}, "neither true nor false"),
        ({"surprise": 1}, "ports[0] has a field nobody asked for"),
    ],
)
def test_what_is_wrong_with_a_port_is_said(change, words):
    with pytest.raises(InvalidReport) as error:
        parse_report(said(port(GUID_A, **change)))
    assert words in str(error.value)


@pytest.mark.parametrize("nobody", [None, "", "0x0", "0x0000000000000000", "0000:0000:0000:0000", "0x" + "f" * 16])
def test_zero_and_all_ones_are_no_guid(nobody):
    assert parse_report(said(port(GUID_A, port_guid=nobody))).ports[0].guid is None


@pytest.mark.parametrize(("lid", "kept"), [(0, None), (1, 1), (0xBFFF, 0xBFFF), (0xC000, None), (0xFFFF, None)])
def test_only_a_unicast_lid_is_kept(lid, kept):
    assert parse_report(said(port(GUID_A, lid=lid))).ports[0].lid == kept


@pytest.mark.parametrize(("lid", "kept"), [(0, 0), (0xBFFF, 0xBFFF), (0xC000, None)])
def test_an_sm_lid_of_zero_is_kept_and_means_no_sm(lid, kept):
    assert parse_report(said(port(GUID_A, sm_lid=lid))).ports[0].sm_lid == kept


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":Infinity}',
        b"9" * 5000,
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(body):
    with pytest.raises(InvalidReport):
        parse_json(body)


def test_the_digest_says_whether_a_report_is_the_same():
    value = said(port(GUID_A))
    turned = json.loads(json.dumps(value, sort_keys=True))
    assert parse_report(value).digest == parse_report(turned).digest
    assert parse_report(value).digest != parse_report(said(port(GUID_A, lid=8))).digest


@given(JSON)
def test_random_json_is_refused_and_nothing_worse(value):
    for parse in (parse_report, parse_enrolment):
        with pytest.raises(InvalidReport):
            parse(value)


@given(st.sampled_from(sorted(port(GUID_A))), JSON)
def test_a_port_with_one_random_field_is_read_or_refused(field, value):
    try:
        report = parse_report(said(port(GUID_A, **{field: value})))
    except InvalidReport:
        return
    assert len(report.ports) == 1


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_or_json(body):
    with contextlib.suppress(InvalidReport):
        parse_json(body)


def test_counters_are_checked_and_are_no_news():
    def reported(counters):
        return parse_report(said(port(GUID_A, counters=counters)))

    first = reported({"port_xmit_data": 2**64 - 1})
    assert first.digest == reported({"port_xmit_data": 7, "symbol_error": 0}).digest
    assert first.raw["ports"][0]["counters"] == {"port_xmit_data": 2**64 - 1}
    for odd in (
        [],
        {"a": -1},
        {"a": 2**64},
        {"a": True},
        {"a": "1"},
        {"a" * 65: 1},
        {"\x00": 1},
        {str(n): 0 for n in range(129)},
    ):
        with pytest.raises(InvalidReport, match="counters"):
            reported(odd)
