"""The other pages live: what changes under the reader's eyes, what waits, what was typed."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from deploy.models import Observation, Rollout, RolloutStep
from inventory.models import ManagerHost

pytestmark = pytest.mark.browser
LEAF = "0x0002c90200000010"


def test_the_theme_is_switched_and_kept(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    page.get_by_label("Your menu").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_a_plan_waits_for_its_look_and_then_rolls_out(site, page, live_server):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    page.goto(f"{live_server.url}/board/")
    page.get_by_role("link", name="Review plan").click()
    expect(page.get_by_text("Reading the fabric…")).to_be_visible()
    Observation.objects.filter(state="REQUESTED").update(state="FAILED", failure="Superseded by the test.")
    provider.observe()
    page.get_by_label("Reason").fill("ticket 7")
    page.get_by_role("button", name="Roll out").click()
    expect(page.locator("#rollout-state")).to_have_attribute("data-state", "QUEUED")
    assert Rollout.objects.latest("pk").reason == "ticket 7"


def test_a_rollout_is_shown_live_to_its_end(site, page, live_server):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    rollout = provider.roll_out(provider.olga)
    page.goto(live_server.url + reverse("console:rollout", args=[rollout.public_id]))
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    Rollout.objects.update(state="PLACING")
    RolloutStep.objects.create(rollout=rollout, at=timezone.now(), state="PLACING", host="m2", text="Placed on m2.")
    expect(page.locator("#track-PLACING")).to_have_attribute("aria-current", "step")
    expect(page.locator("#steps")).to_contain_text("Placed on m2.")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    Rollout.objects.filter(pk=rollout.pk).update(
        finished_at=timezone.now(), state="PROVEN", read_back={"counts": {"ports": 14, "proven": 14}}
    )
    expect(page.locator("#closing")).to_contain_text("14 of 14 ports proven")
    expect(page.locator("#rollout-poller")).to_have_count(0)
    expect(page.locator("#rollout-state")).to_contain_text("proven")


def test_a_server_that_stops_answering_is_told(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    page.route("**/board/", lambda route: route.abort())
    expect(page.locator("#connection")).to_be_visible()
    page.unroute("**/board/")
    expect(page.locator("#connection")).to_be_hidden()
    page.wrong[:] = [text for text in page.wrong if not re.search("ERR_FAILED|Failed to fetch", text)]


def test_what_somebody_unfolded_and_typed_stays_when_the_page_refreshes(site, page, live_server):
    address = reverse("console:managers")
    page.goto(live_server.url + address)
    page.locator("#managers-add summary").click()
    host = ManagerHost.objects.first()
    ManagerHost.objects.filter(pk=host.pk).update(name="m1-renamed")
    page.evaluate("document.getElementById('managers-poller').dispatchEvent(new CustomEvent('refresh'))")
    expect(page.get_by_role("link", name="m1-renamed")).to_be_visible()
    assert page.locator("#managers-add").evaluate("one => one.open")
    server = site.provider.servers[0]
    page.goto(live_server.url + reverse("console:server", args=[server.public_id]))
    page.locator("#target").select_option(label="inference (Acme)")
    site.provider.move(server, site.training, None, by=site.provider.otto)
    page.evaluate("document.getElementById('server-poller').dispatchEvent(new CustomEvent('refresh'))")
    expect(page.locator(".fours").first).to_contain_text("a change of Otto waits")
    expect(page.locator("#target")).to_have_value(site.inference.public_id)
