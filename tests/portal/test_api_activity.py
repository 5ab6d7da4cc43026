"""`GET /api/v1/activity`: the lines of the page and its files, for the programs of the tenant's people alone."""

import json
from urllib.parse import quote

import pytest
from django.utils import timezone, translation

from audit.models import Event
from people import accounts
from people.actor import actor_of
from people.models import TenantRole
from tests.api.callers import Caller, is_problem


@pytest.fixture
def max_(busy):
    return Caller(busy.seats["max"].person)


def test_its_lines_are_those_of_the_json_file_page_by_page(busy, max_, client_of):
    client = client_of(busy.seats["max"].person)
    file = json.loads(client.get(busy.address("activity_export", "json")).content)
    newest = max_.items("activity?limit=200")[-len(file["events"]) :]  # the file's own event came after it was made
    pages = max_.items("activity?limit=3")[-len(file["events"]) :]
    assert pages == newest
    assert len(newest) > 10
    # A moment is written in two ways.
    assert [line | {"at": ""} for line in newest] == [line | {"at": ""} for line in file["events"]]
    assert [line["at"][:26] for line in newest] == [line["at"][:26] for line in file["events"]]


def test_its_filters_are_those_of_the_page(busy, max_):
    every, own_id = max_.items("activity"), busy.seats["max"].person.public_id
    for kind in {line["kind"] for line in every}:
        assert max_.items(f"activity?what={kind}") == [line for line in every if line["kind"] == kind]
    for who in ("provider", "fabricui"):
        found = max_.items(f"activity?who={who}")
        assert found == [line for line in every if line["who"]["kind"] == who]
    own = max_.items(f"activity?who={own_id}")
    assert own == [line for line in every if line["who"]["id"] == own_id]
    assert own
    at = every[len(every) // 2]["at"]
    after = max_.items(f"activity?since={quote(at)}")
    before = max_.items(f"activity?until={quote(at)}")
    assert after
    assert before
    assert after + before == every


def test_what_no_filter_takes_is_refused(busy, max_):
    bruno, nobody = busy.seats["bruno"].person.public_id, "222222222222"
    refused = [is_problem(max_.get(f"activity?who={who}"), 400, "invalid") for who in (bruno, nobody)]
    assert len({problem["detail"] for problem in refused}) == 1
    tenants = [busy.provider.bert.public_id, nobody]
    refused = [is_problem(max_.get(f"activity?tenant={one}"), 400, "invalid") for one in tenants]
    assert len({problem["detail"] for problem in refused}) == 1
    for query in (
        "what=everything", "since=yesterday", "until=0001-01-01T00:00:00%2B23:59", "since=9999-01-01T00:00:00Z",
        "who=a%00b", "tenant=x", "behind=x", "limit=0",
    ):  # fmt: skip
        is_problem(max_.get(f"activity?{query}"), 400, "malformed" if "%00" in query else "invalid")
    is_problem(max_.get("activity?cursor=x"), 400, "bad_cursor")


def test_no_number_no_name_of_the_provider_and_nothing_of_others_is_in_it(busy, max_):
    text = json.dumps(max_.items("activity"))
    for word in (
        "canary",
        "Bruno",
        "Olga",
        "olga",
        "acme.",
        busy.provider.bert.public_id,
        busy.provider.olga.public_id,
    ):
        assert word not in text, word
    answer = max_.get("activity?limit=2").json()
    assert not any(isinstance(value, int) for line in answer["items"] for value in line.values())
    assert str(Event.objects.latest("number").number) not in answer["next_cursor"].split(":")[0]


def test_a_viewer_reads_it_and_who_is_nobodys_or_the_providers_finds_nothing(busy):
    assert Caller(busy.seats["vera"].person).items("activity")
    olga = Caller(busy.provider.olga, scopes=["activity:read", "audit:read"])
    is_problem(olga.get("activity"), 404, "not_found")
    assert olga.items(f"audit/events?tenant={busy.acme.public_id}")
    is_problem(Caller(busy.seats["vera"].person, scopes=["requests:read"]).get("activity"), 403, "not_for_this_token")


def test_it_is_over_with_the_role_and_while_the_tenant_is_suspended(busy, max_):
    mia = Caller(busy.seats["mia"].person)
    accounts.take_role(person=busy.seats["mia"].person, tenant=busy.acme, actor=actor_of(busy.provider.olga))
    is_problem(mia.get("activity"), 404, "not_found")
    type(busy.acme).objects.filter(pk=busy.acme.pk).update(suspended_at=timezone.now())
    assert max_.get("activity").status_code in (401, 404)


def test_a_cursor_of_a_tenant_that_one_has_left_is_no_place_at_another(busy, max_):
    cursor = max_.get("activity?limit=2").json()["next_cursor"]
    TenantRole.objects.filter(user=busy.seats["max"].person).update(tenant=busy.provider.bert)
    is_problem(max_.get(f"activity?cursor={cursor}"), 400, "bad_cursor")


def test_it_is_in_english_whatever_its_reader_speaks(busy, max_):
    with translation.override("ru"):
        lines = max_.items("activity")
    assert "the operator" in {line["who"]["name"] for line in lines}
    assert lines == max_.items("activity")
