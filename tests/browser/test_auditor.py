"""Ada, an auditor, answers five written questions about a day, in at most four actions each, counted here."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from audit import watch
from audit.actions import Action
from audit.models import Event
from audit.values import Actor, Subject
from deploy import table_history, tables
from deploy.models import HostOutcome, Rollout
from inventory.models import Port
from partitions import operations
from partitions.models import StagedChange
from tests.audit.conftest import own_anchors
from tests.audit.events import record_one
from tests.browser.hands import Hands
from tests.console.conftest import settled_site

pytestmark = pytest.mark.browser
__all__ = ["own_anchors"]

MOST = 4
DAY = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
NIGHT_ADDRESS = "203.0.113.9"


class Clock:
    """A clock that the day turns; each look at it takes a millisecond."""

    def __init__(self) -> None:
        self.now = DAY

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def at(self, hour: int, minute: int) -> None:
        self.now = DAY.replace(hour=hour, minute=minute)


@pytest.fixture
def site(tables, own_anchors, monkeypatch) -> Iterator:
    """A day of a small provider, with the noise of a day around what the questions are about."""
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr("django.utils.timezone.now", clock)
        site = settled_site()
        provider = site.provider
        look(provider)

        clock.at(9, 10)
        move(site, 0, site.training, site.inference, reason="ticket 41: faster answers")
        proven(provider, clock, reason="the queue is long")
        clock.at(10, 0)
        provider.move(provider.servers[4], None, site.training, by=provider.otto)
        noise(60)
        clock.at(12, 40)
        look(provider)
        clock.at(13, 30)
        move(site, 1, site.training, None, reason="ticket 55: broken fan")
        proven(provider, clock, reason="it goes for repair")
        noise(60)
        clock.at(23, 40)
        for _ in range(3):
            record_one(
                action=Action.PERSON_LOGIN_FAILED,
                actor=Actor.anonymous(NIGHT_ADDRESS),
                subject=Subject(kind="person", key="olga", label="olga"),
            )
        clock.at(23, 50)
        operations.discard(changes=StagedChange.objects.of_server(provider.servers[4]), actor=provider.olga)
    watch.every_minute()  # as the workers would have, the morning after
    return site


def look(provider):
    observation = provider.observe()
    table_history.keep(observation, fabric=tables.fabric(observation), processes={})
    return observation


def move(site, number: int, source, target, *, reason: str) -> None:
    operations.stage_move(
        server=site.provider.servers[number], source=source, target=target, actor=site.provider.olga, reason=reason
    )


def proven(provider, clock, *, reason: str) -> None:
    rollout = provider.roll_out(provider.olga, reason=reason)
    clock.now += timedelta(seconds=20)
    provider.settle(rollout)
    after = look(provider)
    HostOutcome.objects.filter(rollout=rollout).update(
        role_at_proof="MASTER", digest=rollout.revision.digest, placed_at=clock()
    )
    counts = {"ports": 14, "proven": 14, "absent": 0, "unreadable": 0, "discrepancies": 0}
    Rollout.objects.filter(pk=rollout.pk).update(read_back={"counts": counts}, after=after)


def noise(count: int) -> None:
    for number in range(count):
        record_one(
            action=Action.SERVER_REPORT_CHANGED,
            actor=Actor.anonymous(f"10.0.0.{number % 200}"),
            subject=Subject(kind="server", key=f"s{number % 30}", label=f"node-{number % 30:03}"),
        )


@pytest.fixture
def hands(site, ada, live_server, context, sign_in):
    """Ada's browser on the first page after signing in; an error of the console fails the test."""
    sign_in(context, ada)
    page = context.new_page()
    page.set_default_timeout(20_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(live_server.url)
    yield Hands(page)
    assert not wrong


def main_menu(hands: Hands, name: str) -> None:
    hands.click(hands.page.get_by_role("navigation", name="Main").get_by_role("link", name=name))


def test_1_who_connected_srv_001_to_inference_and_why(hands):
    page = hands.page
    main_menu(hands, "Audit")
    hands.type(page.get_by_label("About"), "srv-001")
    hands.click(page.get_by_role("button", name="Filter"))
    row = page.get_by_role("row").filter(has_text="ticket 41")
    expect(row).to_contain_text("Olga staged a change of srv-001")
    expect(row).to_contain_text("2026-11-30 09:10")
    hands.click(row.locator("summary"))
    expect(row.locator("ins").first).to_contain_text("inference (0x1b07)")
    expect(row.locator("del").first).to_contain_text("training (0x2c41)")
    assert hands.actions <= MOST


def test_2_what_did_the_ports_of_srv_002_hold_at_noon(hands, site):
    page = hands.page
    main_menu(hands, "Audit")
    hands.click(page.get_by_role("link", name="As of then", exact=True))
    hands.type(page.get_by_label("Moment (UTC)"), "2026-11-30T12:00")
    hands.click(page.get_by_role("button", name="Show"))
    for port in Port.objects.filter(hca__server=site.provider.servers[1]):
        row = page.get_by_role("row").filter(has_text=port.guid)
        expect(row).to_contain_text("0: 0x7fff, 1: 0xac41")  # then, in training
        expect(row).to_contain_text("read before and after")
    expect(page.get_by_role("row").filter(has_text="training")).to_contain_text("srv-002")
    assert hands.actions <= MOST


def test_3_how_is_it_proven_that_srv_002_left(hands, site):
    page = hands.page
    main_menu(hands, "Rollouts")
    hands.click(page.get_by_role("row").filter(has_text="it goes for repair").get_by_role("link"))
    hands.click(page.get_by_role("link", name="from drag to proof"))
    expect(page.locator("#wanted")).to_contain_text("from training to Unassigned")
    expect(page.locator("#wanted")).to_contain_text("ticket 55: broken fan")
    expect(page.locator("#hosts")).to_contain_text("m1")
    expect(page.locator("#evidence")).to_contain_text("14")
    expect(page.locator("#proof")).to_contain_text("proven")
    event = Event.objects.filter(action=Action.ROLLOUT_PROVEN).latest("number")
    expect(page.locator("#proof")).to_contain_text(event.hash)
    expect(page.locator("#chain-status")).to_contain_text("trail verified")
    expect(page.locator("#trail-chip")).to_contain_text("trail verified")
    assert hands.actions <= MOST


def test_4_from_where_were_passwords_tried_at_night(hands):
    page = hands.page
    main_menu(hands, "Audit")
    hands.choose(page.get_by_label("Action"), "failed to sign in (people:person:login-failed)")
    hands.click(page.get_by_role("button", name="Filter"))
    rows = page.get_by_role("row").filter(has_text="failed to sign in")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(NIGHT_ADDRESS)
    expect(rows.first).to_contain_text("2026-11-30 23:40")
    assert hands.actions <= MOST


def test_5_which_servers_were_ever_in_training(hands):
    page = hands.page
    main_menu(hands, "Partitions")
    hands.click(page.get_by_role("link", name="training"))
    hands.click(page.get_by_role("link", name="all that touched 0x2c41"))
    story = page.locator(".timeline")
    expect(story).to_contain_text("joined: srv-001")
    expect(story).to_contain_text("left: srv-001")
    expect(story).to_contain_text("left: srv-002")
    expect(story).to_contain_text("The fabric showed 0x2c41")
    expect(story).not_to_contain_text("srv-005")  # staged and taken back: it never was in it
    assert hands.actions <= MOST
