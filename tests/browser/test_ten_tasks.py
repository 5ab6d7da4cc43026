"""Olga does ten things that an operator does all day, each in at most six actions, counted here from the home page on.

An action is a click, a key or chord, a field that is typed or chosen, a drag. Reading is not doing.
"""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from deploy.models import Rollout
from inventory.models import HCA, Port
from partitions.models import Membership, Replacement, StagedChange
from subnet.guid import GUID
from tests.browser.hands import Hands

pytestmark = pytest.mark.browser
MOST = 6


@pytest.fixture
def hands(site, page, live_server):
    """The counting ends here: whatever was done, it was not more than MOST."""
    page.goto(live_server.url)
    counted = Hands(page)
    yield counted
    assert 0 < counted.actions <= MOST, f"{counted.actions} actions"


def wanted(server) -> set[str]:
    rows = StagedChange.objects.of_server(server).exclude(kind_to=None)
    return set(rows.values_list("partition__name", flat=True))


def settled(site, number: int, source, target, **fields) -> Rollout:
    site.provider.move(site.provider.servers[number], source, target)
    rollout = site.provider.roll_out(site.provider.olga, **fields)
    site.provider.settle(rollout)
    return rollout


def test_1_move_three_servers_of_one_tenant_to_another(hands, site):
    page = hands.page
    hands.menu("Board")
    hands.type(page.get_by_label("Find servers"), "tenant:acme")
    expect(page.locator("#search-count")).to_have_text("3 of 6 servers")
    hands.click(page.get_by_role("button", name="Select all found"))
    expect(page.locator("#picked-count")).to_have_text("3 servers selected")
    hands.click(page.locator("#picked-move"))
    hands.type(page.locator("#move-input"), "research")
    with page.expect_response("**/board/move/") as answer:
        hands.press("Enter")
    assert answer.value.status == 200
    assert [wanted(server) for server in site.provider.servers[:3]] == [{"research"}] * 3


def test_2_why_is_this_card_amber(hands, site):
    server = site.provider.servers[0]
    guid = str(Port.objects.filter(hca__server=server).order_by("guid").first().guid)
    Rollout.objects.update(read_back={"counts": {}, "owed": [guid]})
    page = hands.page
    hands.menu("Board")
    card = page.get_by_role("group", name="srv-001")
    expect(card.locator(".card-warn")).to_have_text("a port could not be read")
    hands.click(card.get_by_role("link", name="srv-001"))
    expect(page.locator(".fours").first).to_contain_text("a port could not be read")
    expect(page.locator(".ports-table tbody tr").first).to_contain_text(guid)  # which one


def test_3_who_changed_this(hands, site):
    settled(site, 0, site.training, site.inference, reason="ticket 41")
    page = hands.page
    hands.menu("Servers")
    hands.click(page.get_by_role("link", name="srv-001"))
    hands.click(page.get_by_role("link", name="events of this server"))
    row = page.get_by_role("row").filter(has_text="staged a change of srv-001").first
    expect(row).to_contain_text("Olga")
    hands.click(row.locator("summary"))
    expect(row.locator("ins").first).to_contain_text("inference (0x1b07)")


def test_4_put_the_fabric_back_as_it_was_at_noon(hands, site):
    settled(site, 0, site.training, site.inference, reason="after noon")
    settled(site, 1, site.training, None, reason="in the evening")
    site.provider.observe()
    page = hands.page
    hands.menu("Rollouts")
    hands.click(page.get_by_role("row").filter(has_text="after noon").get_by_role("link", name="As before it"))
    expect(page.get_by_role("region", name="Servers that go back").get_by_role("row")).to_have_count(3)
    hands.type(page.get_by_label("Reason"), "the new layout was wrong")
    hands.click(page.get_by_role("button", name="Stage and review the plan"))
    expect(page.get_by_role("button", name="Roll out")).to_be_visible()
    hands.click(page.get_by_role("button", name="Roll out"))
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "QUEUED")
    site.provider.settle(Rollout.objects.latest("pk"))
    for server in site.provider.servers[:2]:
        homes = Membership.objects.filter(port__hca__server=server)
        assert set(homes.values_list("partition__name", flat=True)) == {"training"}


def test_5_whose_is_this_guid(hands, site):
    guid = Port.objects.filter(hca__server=site.provider.servers[3]).first().guid
    page = hands.page
    hands.menu("Servers")
    hands.type(page.get_by_label("Filter"), guid)
    hands.press("Enter")
    expect(page.locator("#servers tbody tr")).to_have_count(1)
    expect(page.locator("#servers tbody tr")).to_contain_text("srv-004")


def test_6_cancel_a_rollout(hands, site):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    rollout = site.provider.roll_out(site.provider.olga)
    page = hands.page
    hands.menu("Rollouts")
    hands.click(page.get_by_role("link", name=rollout.public_id))
    hands.click(page.get_by_role("button", name="Cancel"))
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "CANCELLED")


def test_7_go_on_with_a_new_hca(hands, site):
    server = site.provider.servers[0]
    old = Port.objects.filter(hca__server=server).order_by("guid").first()
    Port.objects.filter(pk=old.pk).update(missing_since=timezone.now())
    card = HCA.objects.create(server=server, node_guid=GUID("0x0002c90500000000"), device="mlx5_0")
    Port.objects.create(subnet=site.provider.subnet, hca=card, guid=GUID("0x0002c90500000001"), state="ACTIVE")
    page = hands.page
    hands.menu("Servers")
    hands.click(page.get_by_role("link", name="srv-001"))
    hands.click(page.get_by_role("link", name="Replace an HCA"))
    hands.type(page.get_by_label("Reason"), "RMA 4711")
    hands.click(page.get_by_role("button", name="Replace"))
    expect(page.get_by_role("main")).to_contain_text("1 port goes on under another GUID")
    assert Replacement.objects.get().old_guid == old.guid


def test_8_what_will_a_plan_do_to_a_tenant(hands, site):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.move(provider.servers[3], site.research, None, by=provider.otto)  # another tenant's, another's
    provider.observe()
    page = hands.page
    hands.menu("Board")
    hands.click(page.get_by_role("link", name="Review plan"))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("srv-001 moves from training to inference: 2 ports change their P_Keys")
    expect(page.get_by_role("main")).not_to_contain_text("research")
    hands.click(page.get_by_role("navigation", name="Selection").get_by_role("link", name="All"))
    expect(page.get_by_role("main")).to_contain_text("research")


def test_9_take_a_server_out_and_take_that_back(hands, site):
    server = site.provider.servers[0]
    page = hands.page
    hands.menu("Board")
    hands.click(page.get_by_role("button", name="Move srv-001"))
    hands.type(page.locator("#move-input"), "unassigned")
    hands.press("Enter")
    expect(page.locator("#undo")).to_contain_text("srv-001 to Unassigned")
    assert StagedChange.objects.of_server(server).count() == 2
    hands.press("Control+z")
    expect(page.locator("#announcer")).to_have_text("Undone: srv-001 to Unassigned.")
    assert not StagedChange.objects.exists()


def test_10_which_standby_is_behind(hands, site):
    before = site.provider.observe().managers[1]
    settled(site, 0, site.training, site.inference)
    seen = site.provider.observe()
    seen.managers[0] |= {"role": "MASTER"}
    seen.managers[1] |= {"role": "STANDBY", "digest": before["digest"], "revision": before["revision"]}
    seen.save()
    page = hands.page
    hands.menu("Managers")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="m2"))
    expect(row).to_contain_text("standby")
    expect(row).to_contain_text("differs")
    expect(row).to_contain_text(re.compile(r"\(current is \d+\)"))
    expect(page.get_by_role("row").filter(has=page.get_by_role("link", name="m1"))).to_contain_text("current")
