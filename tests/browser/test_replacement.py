"""An HCA that broke, walked by hand from the server's page to the proof of its rollout."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from deploy.models import Fence, Rollout
from inventory.models import HCA, Port
from partitions.models import Membership
from subnet.guid import GUID

pytestmark = pytest.mark.browser
NEW = GUID("0x0002c90500000001")


def test_a_new_card_goes_on_for_the_old_one_in_one_rollout(site, page, live_server):
    provider, server = site.provider, site.provider.servers[0]
    old = Port.objects.filter(hca__server=server).order_by("guid").first()
    old_guid, before = old.guid, Membership.objects.get(port=old)
    Port.objects.filter(pk=old.pk).update(missing_since=timezone.now())
    card = HCA.objects.create(server=server, node_guid=GUID(NEW[:-1] + "0"), device="mlx5_0")
    Port.objects.create(subnet=provider.subnet, hca=card, guid=NEW, state="ACTIVE")

    page.goto(live_server.url + reverse("console:server", args=[server.public_id]))
    page.get_by_role("link", name="Replace an HCA").click()
    expect(page.get_by_label(f"New port for {old_guid}")).to_have_value(NEW)
    page.get_by_label("Reason").fill("RMA 4711")
    page.get_by_role("button", name="Replace").click()
    expect(page.get_by_role("main")).to_contain_text("1 port goes on under another GUID")

    page.goto(f"{live_server.url}/board/")
    expect(page.locator("#tray-text")).to_contain_text("1 server, 1 port staged")
    provider.observe()
    page.get_by_role("link", name="Review plan").click()
    expect(page.get_by_role("main")).to_contain_text("srv-001 has another HCA")
    expect(page.get_by_role("main")).to_contain_text(NEW)
    page.get_by_label("Reason").fill("RMA 4711")
    page.get_by_role("button", name="Roll out").click()
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "QUEUED")

    rollout = Rollout.objects.latest("pk")
    held = {str(member.guid) for _, member in rollout.revision.partition_table().memberships()}
    assert NEW in held
    assert old_guid not in held
    provider.settle(rollout)  # as the rollout worker does; the fabric itself is in tests/end_to_end
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "PROVEN")
    assert Fence.objects.get(subnet=provider.subnet).current == rollout.revision
    after = Membership.objects.get(port__guid=NEW)
    assert (after.pk, after.partition, after.kind) == (before.pk, before.partition, before.kind)
    page.goto(live_server.url + reverse("console:server", args=[server.public_id]))
    expect(page.get_by_role("main")).to_contain_text(NEW)
    expect(page.get_by_role("main")).to_contain_text(before.partition.name)
