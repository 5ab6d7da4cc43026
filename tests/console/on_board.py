"""What the tests of the board’s page do: find a card, and say what the watch, a drift or a check has found."""

import re

from django.utils import timezone

from deploy.models import Drift, Watch
from inventory.models import Server
from probes.models import IsolationCheck


def card(page: str, server: Server, column: str) -> str:
    found = re.search(rf'<article[^>]*id="card-{column}-{server.public_id}".*?</article>', page, re.DOTALL)
    assert found, f"{server} is not in column {column}"
    return found[0]


def watch(site, **fields):
    Watch.objects.update_or_create(subnet=site.provider.subnet, defaults={"next_at": timezone.now(), **fields})


def drift(site, guid):
    now = timezone.now()
    return Drift.objects.create(
        subnet=site.provider.subnet, kind="TABLE", key="fabric", first_seen_at=now, opened_at=now, last_seen_at=now,
        facts={"ports": {guid: {"sentences": ["It holds 0xac41."], "since": now.isoformat()}}},
    )  # fmt: skip


def check(site, verdict, plane="CONTROL"):
    first, _, _, other = site.provider.servers[:4]
    now = timezone.now()
    return IsolationCheck.objects.create(
        subnet=site.provider.subnet, plane=plane, sender=first, target=other, cause="NOW", state="DONE",
        asked_at=now, finished_at=now, verdict=verdict,
    )  # fmt: skip


def lamps_of(page: str, server: Server, column: str) -> str:
    """What the four lamps of a card say."""
    number = re.search(r'aria-describedby="(four-\d+)"', card(page, server, column))[1]
    return re.search(rf'<li id="{number}">(.*?)</li>', page)[1]
