"""Bodies and addresses that nobody honest sends: each is refused, none is a 500."""

import json

import pytest

from partitions.models import StagedChange
from people.api.json_body import DEEPEST, MOST_BYTES
from tests.api.callers import is_problem

pytestmark = pytest.mark.django_db


def deep(levels):
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b'{"name": "a", "name": "b"}', b'{"name": NaN}',
        b"{'name': 1}",
        b'{"x": 1e999}', b'{"x": -Infinity}', b'{"name": "a\\u0000b"}', b'{"name": "\\ud800"}', b'{"\\u0000": 1}',
        b'{"x": ' + b"9" * 5000 + b"}", deep(DEEPEST + 1), deep(100_000), b"[" * 200_000, b'\xef\xbb\xbf{"name": "x"}',
    ],
)  # fmt: skip
def test_a_body_that_is_no_honest_json(operator, data):
    is_problem(operator.ask("POST", "partitions", data=data), 400, "malformed")


def test_a_body_that_is_as_deep_as_may_be_is_read(operator):
    is_problem(operator.ask("POST", "partitions", data=deep(DEEPEST - 1)), 400, "invalid")


def test_a_body_that_is_too_large(operator):
    data = json.dumps({"name": "x" * MOST_BYTES}).encode()
    is_problem(operator.ask("POST", "partitions", data=data), 413, "body_too_large")
    is_problem(operator.ask("POST", "partitions", data=b"{}", Content_Length="9" * 40), 413, "body_too_large")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x", "", "nonsense"])
def test_a_body_that_is_no_json(operator, kind):
    is_problem(
        operator.ask("POST", "partitions", data=b'{"name": "x1"}', content_type=kind), 415, "unsupported_media_type"
    )


@pytest.mark.parametrize(
    "guid", [159426394883489793, 2**64 - 1, 1.5, True, None, ["0x0002c90400000101"], {"guid": "0x0002c90400000101"}]
)
def test_a_number_is_no_id(operator, site, guid):
    body = {"moves": [{"server": guid}], "target": site.training.public_id}
    is_problem(operator.post("staged-changes", body), 400, "invalid")
    is_problem(operator.post("staged-changes/discard", {"servers": [guid]}), 400, "invalid")
    assert not StagedChange.objects.exists()


@pytest.mark.parametrize(
    "text", ["159426394883489793", "0x0", "0x" + "f" * 16, "x", "'; DROP TABLE", "0x0002c90400000101 "]
)
def test_a_text_that_is_no_guid_finds_no_port(operator, text):
    is_problem(operator.ask("GET", f"ports/{text.replace(' ', '%20')}"), 404, "not_found")


def test_a_guid_of_a_filter_may_be_spelt_otherwise_and_a_number_is_refused(operator):
    found = operator.items("ports?guid=0002:c904:0000:0101")
    assert [port["guid"] for port in found] == ["0x0002c90400000101"]
    is_problem(operator.get("ports?guid=159426394883489793"), 400, "invalid")


@pytest.mark.parametrize(
    "address",
    ["servers/%00", "servers/a%00b", "servers?hostname=%00", "audit/events?text=%00", "servers?%00=1", "plans/%00"],
)
def test_a_nul_in_an_address(operator, address):
    is_problem(operator.get(address), 400, "malformed")


@pytest.mark.parametrize(
    "trick", ["..", "..%2f..%2fetc%2fpasswd", "%2e%2e", ".", "%", "%ff%fe", "%ED%A0%80", "a" * 5000, "\u202e"]
)
def test_an_id_that_is_a_path_or_a_trick(operator, trick):
    from urllib.parse import quote

    for address in ("servers", "partitions", "rollouts", "revisions", "plans", "audit/events", "drift"):
        answer = operator.get(f"{address}/{trick if trick.isascii() else quote(trick)}")
        is_problem(answer, 404, "not_found")


@pytest.mark.parametrize(
    "address",
    [
        "servers?hostnam=x", "servers?limit=0", "servers?limit=201", "servers?limit=1e3", "servers?limit=٣",
        "servers?limit=5&limit=6", "servers/abc?limit=5", "rollouts?state=GONE", "drift?kind=x",
        "audit/events?since=yesterday", "audit/events?since=9999999-01-01T00:00:00Z", "plans/mine?look=x",
        "audit/events?until=0001-01-01T00:00:00%2B23:59",
    ],
)  # fmt: skip
def test_a_parameter_that_is_none(operator, address):
    is_problem(operator.get(address), 400, "invalid")


@pytest.mark.parametrize("cursor", ["x", "MTIz", "a:b:c", "é", "x" * 2000, "WyJ6Il0:1v0000:AAAA"])
def test_a_cursor_that_nobody_gave(operator, cursor):
    is_problem(operator.get(f"servers?cursor={cursor}"), 400, "bad_cursor")
