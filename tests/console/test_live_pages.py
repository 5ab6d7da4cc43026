"""Pages that refresh themselves: each says what it depends on, asks for its own body, and pays no more for that."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from deploy.models import Observation
from inventory.models import ManagerHost
from live.hints import Kind

HTMX = {"HTTP_HX_REQUEST": "true"}
BUDGETS = {"board": 10, "home": 24, "rollouts": 12, "drift": 15, "managers": 14, "manager": 14, "qualification": 16,
           "servers": 14, "server": 38, "first_run": 24}  # fmt: skip


def addresses(site) -> dict[str, str]:
    pages = {name: reverse(f"console:{name}") for name in ("home", "rollouts", "drift", "managers", "servers")}
    pages["board"] = reverse("console:board")
    pages["first_run"] = reverse("console:first_run")
    pages["manager"] = reverse("console:manager", args=[ManagerHost.objects.first().public_id])
    pages["qualification"] = reverse("console:qualification", args=[site.provider.subnet.public_id])
    pages["server"] = reverse("console:server", args=[site.provider.servers[0].public_id])
    return pages


@pytest.mark.parametrize("name", BUDGETS)
def test_a_page_refreshes_its_own_body(site, operator, name):
    address = addresses(site)[name]
    whole = operator.get(address).content.decode()
    (poller,) = re.findall(r'<div id="(?:live|[\w-]+-poller)"[^>]*>', whole)
    if name != "board":  # static/js/live.js knows what the board depends on
        words = re.search(r'data-live="([^"]+)"', poller)[1].split()
        assert {word.partition(":")[0] for word in words} <= set(Kind)
    assert re.search(r'hx-trigger="every \d+s, refresh"', poller)
    asked = re.search(r'hx-get="([^"]+)"', poller)[1]
    target = re.search(r'hx-target="#([\w-]+)"', poller)[1]
    assert f'id="{target}"' in whole
    with CaptureQueriesContext(connection) as queries:
        body = operator.get(asked, **HTMX).content.decode()
    assert "<html" not in body
    assert f'id="{target}"' not in body or name == "board"
    assert 'id="' in body
    assert len(queries) <= BUDGETS[name]


def test_the_filter_of_the_servers_stays_while_they_refresh(site, operator):
    body = operator.get(reverse("console:servers"), {"q": "srv-001"}, **HTMX).content.decode()
    assert "srv-001" in body
    assert "srv-002" not in body
    assert 'hx-get="/servers/?q=srv-001"' in body


def news(operator) -> str:
    """What the open plan page would be told now."""
    page = operator.get(reverse("console:plan")).content.decode()
    return re.search(r'id="plan-news"[^>]*hx-get="([^"]+)"', page)[1].replace("&amp;", "&")


def test_an_open_plan_page_is_told_and_not_swapped_when_it_is_no_longer_the_plan(site, operator):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.observe()
    asked = news(operator)
    assert "no longer what would be rolled out" not in operator.get(asked, **HTMX).content.decode()
    looks = Observation.objects.count()
    provider.move(provider.servers[1], site.training, site.inference, by=provider.otto)  # not of this selection
    assert "no longer" not in operator.get(asked, **HTMX).content.decode()
    provider.move(provider.servers[2], site.inference, site.training)
    with CaptureQueriesContext(connection) as queries:
        told = operator.get(asked, **HTMX).content.decode()
    assert "no longer what would be rolled out" in told
    assert "<form" not in told
    assert len(queries) <= 24
    assert Observation.objects.count() == looks
    provider.move(provider.servers[2], site.training, site.inference)
    assert "no longer" not in operator.get(asked, **HTMX).content.decode()
