"""Pages by cursor: everything once, in order, and no way to learn or forge anything."""

import base64

import pytest

from inventory.models import Server
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db

LISTS = (
    "servers", "ports", "partitions", "memberships", "staged-changes", "subnets", "revisions", "rollouts", "drift",
    "probes/scopes", "probes/runs", "probes/isolation", "audit/events",
)  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_pages_of_one_hold_everything_once_in_the_same_order(operator, site, address):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    whole = operator.get(f"{address}?limit=200").json()
    assert whole["next_cursor"] is None or address == "audit/events"
    one_by_one = operator.items(f"{address}?limit=1")
    if address != "audit/events":  # asking is an event
        assert one_by_one == whole["items"]
    assert len(one_by_one) >= len(whole["items"])


def test_rows_that_come_and_go_shift_no_page(operator, site):
    first = operator.get("servers?limit=2").json()
    Server.objects.create(subnet=site.provider.subnet, hostname="srv-000")
    then = operator.get(f"servers?limit=2&cursor={first['next_cursor']}").json()
    assert [item["hostname"] for item in then["items"]] == ["srv-003", "srv-004"]


def test_a_cursor_is_good_for_its_list_its_filters_and_its_reader(operator, site):
    cursor = operator.get("servers?limit=1").json()["next_cursor"]
    is_problem(operator.get(f"ports?cursor={cursor}"), 400, "bad_cursor")
    is_problem(operator.get(f"servers?cursor={cursor}&rack=r1"), 400, "bad_cursor")
    is_problem(Caller(site.provider.otto).get(f"servers?cursor={cursor}"), 400, "bad_cursor")
    assert operator.get(f"servers?cursor={cursor}&limit=3").status_code == 200


def test_a_cursor_holds_what_its_reader_has_seen_and_no_row_number(operator, site):
    page = operator.get("servers?limit=1").json()
    payload = page["next_cursor"].split(":")[0]
    said = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()
    assert said == f'["srv-001","{page["items"][0]["id"]}"]'
