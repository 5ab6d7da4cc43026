"""The heat map of 64 servers and the series of a pair: axe, keyboard, the chart, every width; in light and dark."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from audit.values import SYSTEM
from probes import operations
from probes.histogram import Histogram
from probes.models import Incident, ProbeHost, ProbePair, ProbeRun, ProbeScope
from probes.settings_of_scope import ScopeSettings
from tests.browser.axe import violations
from tests.probes.site import HOST_KEY, evidence

pytestmark = pytest.mark.browser


def a_run(scope, sender, target, *, gbps, at, profile="link", ns=21_000, samples=2_000, **more) -> ProbeRun:
    """A stored run that measured."""
    fields = {
        "scope": scope, "sender": sender, "target": target, "profile": profile, "mode": scope.mode, "why": "ROUND",
        "state": "DONE", "outcome": "OK", "due_at": at, "drop_at": at, "started_at": at, "finished_at": at,
        "gbps": gbps, "pct_line": gbps / 4, "p50_ns": ns, "p99_ns": ns * 1.3, "samples": samples, "verdict": "GOOD",
        "histogram": Histogram.of([ns] * 5).to_json(), "evidence": evidence(), "link_layer": "InfiniBand",
    }  # fmt: skip
    return ProbeRun(**(fields | more))


@pytest.fixture
def hall(site):
    """64 servers of one probe set: most pairs tested, some slow, some failed, some old, one column new."""
    provider = site.provider
    subnet, now = provider.subnet, timezone.now()
    settings = ScopeSettings(is_enabled=True, profiles=("link", "kv-scatter-16k", "kv-scatter-4k", "lat"))
    scope = operations.create_probe_set(subnet=subnet, name="hall 3", actor=SYSTEM, settings=settings)
    servers = [provider.server(number, ports=0) for number in range(101, 165)]
    hosts = ProbeHost.objects.bulk_create(
        ProbeHost(
            server=server, address=f"{server.hostname}.mgmt", ssh_user="probe", host_key=HOST_KEY,
            program_digest="1" * 64, wrapper_digest="2" * 64,
        )
        for server in servers
    )  # fmt: skip
    for host in hosts:
        scope.probe_set.members.create(host=host)
    pairs = []
    for one, sender in enumerate(hosts):
        for other, target in enumerate(hosts):
            if one == other or other == 63 or (one * 7 + other) % 41 == 0:
                continue
            failed = (one * 5 + other * 3) % 97 == 0
            gbps = None if failed else 392 - (one * other) % 9 - (150 if one == 20 else 0) - (90 if other == 33 else 0)
            pairs.append(
                ProbePair(
                    scope=scope, sender=sender, target=target, profile="link", kind="RDMA", mode=scope.mode,
                    newest_at=now - timedelta(hours=30 if (one + other) % 29 == 0 else 1), gbps=gbps,
                    outcome="PEER_LOST" if failed else "OK", pct_line=None if failed else gbps / 4,
                    verdict="BAD" if failed or gbps < 360 else "GOOD",
                )
            )  # fmt: skip
    ProbePair.objects.bulk_create(pairs, batch_size=500)
    pair = ProbePair.objects.get(sender=hosts[0], target=hosts[1])
    runs = [
        a_run(
            scope, hosts[0], hosts[1], pair=pair, gbps=390.0 + (number * 7) % 5 - (60 if number == 70 else 0),
            at=now - timedelta(minutes=5 * (80 - number)), ns=21_000 + 300 * (number % 7),
        )
        for number in range(80)
    ]  # fmt: skip
    lost = a_run(scope, hosts[0], hosts[1], pair=pair, gbps=1, at=now - timedelta(minutes=2))
    lost.state, lost.outcome, lost.verdict = "FAILED", "PEER_LOST", "BAD"
    lost.gbps = lost.pct_line = lost.p50_ns = lost.p99_ns = None
    lost.samples, lost.reason, lost.advice = 0, "The target's program ended.", "Look at its log."
    ProbeRun.objects.bulk_create([*runs, lost])
    for profile, gbps in (("kv-scatter-16k", 205.0), ("kv-scatter-4k", 61.0)):
        ProbePair.objects.create(
            scope=scope, sender=hosts[0], target=hosts[1], profile=profile, kind="RDMA", mode=scope.mode, newest_at=now,
            outcome="OK", verdict="GOOD", gbps=gbps, pct_line=gbps / 4,
        )  # fmt: skip
    Incident.objects.create(
        pair=pair, rule="history", sentence="It is 23 % worse than its own median.", run=runs[70], opened_at=now,
        seen_at=now,
    )  # fmt: skip
    return scope, hosts


def addresses(hall) -> dict[str, str]:
    scope, hosts = hall
    key, one, other = scope.public_id, hosts[0].public_id, hosts[1].public_id
    series = reverse("probes:series", args=[key, one, other])
    return {
        "overview": reverse("probes:overview"),
        "heat map": reverse("probes:scope", args=[key]),
        "nothing measured": reverse("probes:scope", args=[key]) + "?profile=lat",
        "series": series,
        "empty series": series + "?profile=lat",
        "server": reverse("probes:server", args=[key, one]),
        "settings": reverse("probes:settings", args=[key]),
        "incidents": reverse("probes:incidents"),
        "run": reverse("probes:run", args=[ProbeRun.objects.filter(state="DONE").last().public_id]),
        "failed run": reverse("probes:run", args=[ProbeRun.objects.get(state="FAILED").public_id]),
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_probes(hall, page, live_server, scheme):
    page.emulate_media(color_scheme=scheme)
    pages = addresses(hall)
    # axe looks at each of 4,000 cells on its own; a part of the table has all kinds of them
    pages["heat map"] += "?hosts=srv-10"
    pages["nothing measured"] += "&hosts=srv-10"
    for name, address in pages.items():
        page.goto(live_server.url + address)
        found = violations(page)
        assert not found, f"{name} in {scheme}:\n" + "\n".join(found[:10])


@pytest.mark.parametrize("width", [420, 1440])
def test_no_page_of_probes_is_wider_than_the_screen(hall, page, live_server, width):
    page.set_viewport_size({"width": width, "height": 800})
    for name, address in addresses(hall).items():
        page.goto(live_server.url + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_the_heat_map_by_keyboard(hall, page, live_server):
    _, hosts = hall
    page.goto(live_server.url + addresses(hall)["heat map"])
    expect(page.locator("#heat tbody tr")).to_have_count(64)
    first = page.locator('#heat td a[tabindex="0"]')
    expect(first).to_have_count(1)
    first.focus()
    page.keyboard.press("ArrowDown")  # over the diagonal
    page.keyboard.press("ArrowDown")
    expect(page.locator("#heat td a:focus")).to_have_attribute(
        "aria-label", re.compile(rf"^{hosts[3].server.hostname} to {hosts[1].server.hostname}: ")
    )
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/pairs/[a-z0-9]{12}/[a-z0-9]{12}/\?profile=link$"))


def test_the_chart_is_drawn_from_the_table(hall, page, live_server):
    page.goto(live_server.url + addresses(hall)["series"])
    expect(page.locator("#chart-main canvas")).to_be_visible()
    expect(page.locator("#chart-completion canvas")).to_be_visible()
    stored = (
        ProbeRun.objects.filter(state__in=("DONE", "FAILED")).order_by("-finished_at").values_list("gbps", flat=True)
    )
    shown = page.locator("#points tbody tr").evaluate_all("rows => rows.map(row => row.dataset.gbps)")
    assert shown == ["" if gbps is None else str(gbps) for gbps in stored]


def test_probe_now_by_the_button_queues_both_ways(hall, page, live_server):
    scope, _ = hall
    page.goto(live_server.url + addresses(hall)["series"])
    page.get_by_role("button", name="Probe now").click()
    expect(page.get_by_text("8 runs are queued")).to_be_visible()
    assert ProbeRun.objects.filter(scope=scope, why="NOW").count() == 8
    assert ProbeScope.objects.get(pk=scope.pk).position == 0
