"""Webhooks in a browser: added by an administrator, with nothing that axe finds, in light and dark."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from audit.values import SYSTEM
from people.models import User
from tests.browser.axe import violations
from webhooks.models import Delivery, Endpoint
from webhooks.operations import create_endpoint, send_test, switch_off

pytestmark = pytest.mark.browser


def told():
    """An endpoint with a message of each fate, and one that is off."""
    endpoint, _ = create_endpoint(
        name="on-call",
        url="https://hooks.example.com/services/T0/B1",
        kinds=["stuck", "leak", "rogue_sm"],
        actor=SYSTEM,
    )
    now = timezone.now()
    fates = {"DELIVERED": "", "WAITING": "hooks.example.com answered 503.", "GIVEN_UP": "hooks.example.com: no TLS."}
    for state, failure in fates.items():
        row = send_test(endpoint=endpoint, actor=SYSTEM)
        over = None if state == "WAITING" else now
        Delivery.objects.filter(pk=row.pk).update(
            state=state, failure=failure, finished_at=over, tries=2, status=204 if state == "DELIVERED" else None,
            next_try_at=now + timedelta(minutes=2),
        )  # fmt: skip
    off, _ = create_endpoint(name="tickets", url="https://tickets.example.com/x", kinds=["incident"], actor=SYSTEM)
    switch_off(endpoint=off, actor=SYSTEM, because="It took nothing at 8 tries. tickets.example.com answered 500.")
    return endpoint, off


def test_an_administrator_adds_a_webhook_and_every_state_is_readable(page, site, live_server):
    User.objects.filter(pk=site.provider.olga.pk).update(role="ADMIN")
    address = live_server.url + reverse("webhooks:endpoints")
    page.goto(address)
    assert not violations(page)  # nothing yet
    page.get_by_label("Name").fill("chat")
    page.get_by_label("Address").fill("https://chat.example.com/hook")
    page.get_by_label("a rollout needs a person").check()
    page.get_by_role("button", name="Add the webhook").click()
    expect(page.locator("#new-secret")).to_contain_text("fui_hook_")
    assert not violations(page)
    Endpoint.objects.all().delete()
    endpoint, off = told()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for shown in (
            address,
            *(live_server.url + reverse("webhooks:endpoint", args=[one.public_id]) for one in (endpoint, off)),
        ):
            page.goto(shown)
            assert not violations(page), f"{shown} in {scheme}"
