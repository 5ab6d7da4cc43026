"""The other pages live, and every page under axe in light and in dark."""

import re
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from audit.models import Event
from deploy.models import HostCheck, Observation, Rollout, RolloutStep
from inventory.models import EnrolmentToken, HistoryEntry, ManagerHost, Port, PortConflict, Server, ServerCredential
from partitions import operations
from portal.models import TenantRequest
from subnet.default import OPEN
from tests.console.drifted import everything

pytestmark = pytest.mark.browser
LEAF = "0x0002c90200000010"


@pytest.fixture
def busy(site):
    """Something of everything: staged moves of two people, trouble, a stuck rollout, a fresh look."""
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.move(provider.servers[2], site.inference, site.training, by=provider.otto)
    provider.move(provider.servers[1], site.training, site.research)
    Port.objects.filter(hca__server=provider.servers[4]).update(confirmed_at=None)
    PortConflict.objects.create(
        port=Port.objects.filter(hca__server=provider.servers[5]).first(),
        claimed_by=provider.servers[4],
        claim={"device": "mlx5_0", "state": "ACTIVE"},
        evidence={"hints": ["Both say that the port's link is up."]},
    )
    witnesses(provider)
    operations.stage_default(subnet=provider.subnet, keywords=OPEN, members=(), actor=provider.olga, reason="ticket 9")
    seen = provider.observe()
    seen.managers[1] |= {"role": "", "error": "Manager host m2: Connection refused. Is sshd running there?"}
    seen.save()
    by_word(provider)
    now = timezone.now()
    facts = {
        "options": {"sm_priority": "5"}, "is_pinned": False, "opensm_version": "3.3.23",
        "pieces": [["python", True, "/usr/bin/python3 3.11"], ["umad", False, "Load the module: modprobe ib_umad."]],
    }  # fmt: skip
    HostCheck.objects.create(
        host=ManagerHost.objects.first(), requested_by_name="Olga", requested_at=now, finished_at=now, state="DONE",
        facts=facts,
    )  # fmt: skip
    return site


def by_word(provider):
    """A rollout that goes without a standby, with one absent port accepted and others that may be."""
    stands, gone, moved = (str(port.guid) for port in Port.objects.order_by("guid")[:3])
    proven = Rollout.objects.latest("pk")
    fields = {name: getattr(proven, name) for name in ("subnet", "revision", "parent", "before", "requested_at")}
    said = {"by": "Olga", "reason": "in the workshop"}
    for state in ("UNPROVEN", "PROVEN"):  # the newest must not be the one that waits
        Rollout.objects.create(
            **fields, state=state, cause="Port moved.", started_by_name="Olga", started_by_key="olga",
            finished_at=proven.finished_at, after=proven.after,
            read_back={"counts": {}, "moved": {moved: [99, "ACTIVE"]}, "absent": [gone]},
            accepted={**said, "at": "", "moved": {}, "absent": [stands]}, without={**said, "hosts": ["m2"]},
        )  # fmt: skip


def witnesses(provider):
    """Both witnesses on the fifth and the sixth server, in and out of agreement; a stray, a card that was replaced."""
    now = timezone.now()
    points = [
        ["subnet", "0xfe80000000000000", "0xfe80000000000000", "agrees", ""],
        ["leaf and port", f"{LEAF} port 4", f"{LEAF} port 9", "disagrees", "It was confirmed elsewhere."],
        ["SM LID", "", "LID 1", "unprovable", "The server knows no subnet manager for the port."],
    ]
    ports = Port.objects.filter(hca__server__in=provider.servers[4:6])
    ports.update(testimony="disagrees", points=points, seen_at=now, seen_state="ACTIVE", leaf_guid=LEAF, leaf_port=9,
                 home_leaf_guid=LEAF, home_leaf_port=4, seen_description="srv-005 mlx5_0")  # fmt: skip
    gone = Port.objects.filter(hca__server=provider.servers[5]).first()
    Port.objects.filter(pk=gone.pk).update(seen_state="ABSENT", missing_since=now)
    Port.objects.create(subnet=provider.subnet, guid="0x0002c906000000a1", seen_at=now, seen_state="ACTIVE",
                        leaf_guid=LEAF, leaf_port=17, seen_description="stranger")  # fmt: skip
    HistoryEntry.objects.create(server=provider.servers[4], at=now, kind="REBOOT", witness="SERVER", what="srv-005",
                                before="boot-1", after="boot-2")  # fmt: skip
    EnrolmentToken.objects.create(subnet=provider.subnet, name="rack 12", digest="d", uses_left=3, expires_at=now)
    good = EnrolmentToken.objects.create(
        subnet=provider.subnet, name="rack 13", digest="e", uses_left=24, expires_at=now + timedelta(days=1),
        rack="13", hostnames="r13-*,spare-0?", networks="10.1.13.0/24,fd00:13::/64",
    )  # fmt: skip
    EnrolmentToken.objects.create(subnet=provider.subnet, name="gone", digest="f", expires_at=now, revoked_at=now)
    ServerCredential.objects.create(server=provider.servers[4], digest="g", token=good, is_to_be_renewed=True)
    Server.objects.filter(pk=provider.servers[4].pk).update(
        rack="r12", unit="4", tenant=provider.acme, reported_at=now - timedelta(hours=9), report={"ports": []}
    )


def addresses(site) -> dict[str, str]:
    names = {
        "board", "plan", "rollouts", "servers", "managers", "drift", "partitions", "audit", "conflicts", "leaves",
        "strays", "enrolment", "labels", "home", "first_run", "glossary",
    }  # fmt: skip
    pages = {name: reverse(f"console:{name}") for name in names}
    pages["rollout"] = reverse("console:rollout", args=[Rollout.objects.first().public_id])
    host = ManagerHost.objects.first()
    pages["manager"] = reverse("console:manager", args=[host.public_id])
    pages["qualification"] = reverse("console:qualification", args=[site.provider.subnet.public_id])
    pages["server"] = reverse("console:server", args=[site.provider.servers[4].public_id])
    # The first server of each is on its way out, or on its way in; the third holds nothing.
    for partition in (site.training, site.research, site.storage):
        pages[str(partition)] = reverse("console:partition", args=[partition.public_id])
    pages["server between tenants"] = reverse("console:server", args=[site.provider.servers[1].public_id])
    pages["a file that differs"] = reverse("console:difference", args=[everything(site).public_id])
    pages["everything staged"] = f"{pages['plan']}?selection=all"
    pages["leaf"] = reverse("console:leaf", args=[LEAF])
    pages["replacement"] = reverse("console:replacement", args=[site.provider.servers[5].public_id])
    pages["a filter that means nothing"] = f"{pages['servers']}?q=colour:red"
    pages["event"] = reverse("console:audit_event", args=[Event.objects.latest("number").number])
    pages["port's history"] = reverse("console:port_history", args=[Port.objects.first().guid])
    pages["P_Key's history"] = reverse("console:pkey_history", args=["0x2c41"])
    pages["proof"] = reverse("console:rollout_proof", args=[Rollout.objects.first().public_id])
    then = Event.objects.filter(action="deploy:rollout:proven").latest("number").at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    pages["by a person's word"] = reverse("console:rollout", args=[Rollout.objects.order_by("-pk")[1].public_id])
    pages["no moment"] = reverse("console:as_of")
    pages["as of then"] = f"{pages['no moment']}?at={then}"
    pages["way back"] = f"{reverse('console:as_of_back')}?at={then}"
    pages["print"] = reverse("console:audit_export", args=["print"])
    for room in ("people", "tenants"):
        pages[room] = reverse(f"console:{room}")
    pages["person"] = reverse("console:person", args=[site.provider.otto.public_id])
    pages["tenant"] = reverse("console:tenant", args=[site.provider.acme.public_id])
    made = TenantRequest.objects.create(
        tenant=site.provider.acme, subnet=site.provider.subnet, kind="MORE_SERVERS", count=2, why="more",
        asked_by=site.provider.otto, asked_at=timezone.now(),
    )  # fmt: skip
    pages["requests"] = reverse("portal:operator_requests")
    pages["request"] = reverse("portal:operator_request", args=[made.public_id])
    pages["nothing"] = "/nonsense/"
    for name in ("mfa_index", "mfa_activate_totp", "account_change_password", "account_logout", "tokens"):
        pages[name] = reverse(name)
    return pages


def violations(page) -> list[str]:
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(busy, page, live_server, scheme):
    page.emulate_media(color_scheme=scheme)
    evidence = {
        "counts": {"ports": 14, "proven": 13, "absent": 1, "unreadable": 0, "discrepancies": 1},
        "discrepancies": ["Port 0x0002c90400000101 holds 0xac41."], "owed": ["0x0002c90400000101"],
        "not_checked": ["Links were not probed."], "log": ["ERR 7E10: line 3"],
    }  # fmt: skip
    Rollout.objects.filter(pk=Rollout.objects.first().pk).update(
        state="STUCK", cause="Log in to m1 and look.", read_back=evidence
    )
    for name, address in addresses(busy).items():
        page.goto(live_server.url + address)
        found = violations(page)
        assert not found, f"{name} in {scheme}:\n" + "\n".join(found)
    page.goto(live_server.url + reverse("console:board"))
    page.get_by_role("button", name="Move srv-006").click()
    assert not violations(page)
    page.keyboard.press("Escape")
    page.get_by_label("Your menu").click()
    assert not violations(page)
    page.wrong[:] = [text for text in page.wrong if "404 (Not Found)" not in text]


# The tab of the page itself, and every choice of a form, is there without scrolling sideways.
OUTSIDE = """width => [...document.querySelectorAll('.inventory-tabs [aria-current="page"], .fold-table select')]
    .filter(one => one.getBoundingClientRect().right > width || one.getBoundingClientRect().left < 0)
    .map(one => one.outerHTML.slice(0, 60))"""


@pytest.mark.parametrize("width", [420, 768, 1440])
def test_no_page_is_wider_than_the_screen(busy, page, live_server, width):
    page.set_viewport_size({"width": width, "height": 800})
    for name, address in addresses(busy).items():
        page.goto(live_server.url + address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(OUTSIDE, width) == [], name
    page.wrong[:] = [text for text in page.wrong if "404 (Not Found)" not in text]


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
