"""A tenant's people in a browser: a drag goes out by itself to PROVEN, refusals say why, every page under axe."""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from audit import follow
from inventory.models import Subnet
from partitions.models import Membership, StagedChange
from people.models import Tenant
from portal import turns
from portal.evidence import asking as evidence
from portal.evidence import signing
from portal.models import SignedEvidence, Turn
from tests.browser.axe import violations
from tests.portal.conftest import Portal, people

pytestmark = pytest.mark.browser


@pytest.fixture
def portal(site):
    Tenant.objects.update(moves="ALONE")
    site.provider.observe()
    return Portal(site, people(site))


@pytest.fixture
def page(portal, live_server, context, sign_in):
    """Max's page, a member of Acme. A console error or a refused resource fails the test at its end."""
    sign_in(context, portal.seats["max"].person)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.base = live_server.url
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    assert not [text for text in wrong if "409 (Conflict)" not in text]


def card(page, column, name):
    return page.locator(f".cards[data-name={column}] .card[data-name={name}]")


def drag(page, name, source, target):
    with page.expect_response("**/partitions/move/") as answer:
        card(page, source, name).drag_to(
            page.locator(f".cards[data-name={target}]"),
            source_position={"x": 60, "y": 12}, target_position={"x": 90, "y": 70},
        )  # fmt: skip
    return answer.value


def advance(turn, *, seconds=61):
    """What the tick does, after the rest."""
    now = timezone.now() + timedelta(seconds=seconds)
    Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
    turns.advance(turn_id=turn.pk, now=now)
    turn.refresh_from_db()
    return turn


def test_a_drag_goes_out_by_itself_and_is_proven(portal, page):
    page.goto(page.base + "/")
    expect(page).to_have_url(page.base + portal.address("servers"))
    page.get_by_role("link", name="My partitions").click()
    assert drag(page, "srv-001", "training", "inference").status == 200
    expect(card(page, "inference", "srv-001")).to_be_visible()
    expect(page.locator("#progress")).to_contain_text("waiting")
    turn = advance(Turn.objects.get())
    assert turn.state == "ROLLING_OUT", turn.told
    expect(page.locator("#progress-said")).to_contain_text("on its way to the fabric")
    portal.provider.prove(turn.rollout)
    advance(turn)
    expect(page.locator("#progress")).to_contain_text("proven")
    expect(card(page, "inference", "srv-001")).to_be_visible()
    expect(card(page, "training", "srv-001")).to_have_count(0)


def test_the_same_by_the_keyboard_and_taken_back(portal, page):
    page.goto(page.base + portal.address("partitions"))
    page.get_by_label("Move srv-003").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("srv-003 goes to training.")).to_be_visible()
    assert StagedChange.objects.exists()
    page.get_by_label("Move srv-003").click()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("srv-003 stays where it is.")).to_be_visible()
    assert not StagedChange.objects.exists()


def test_what_is_refused_goes_back_and_says_why(portal, page):
    page.goto(page.base + portal.address("partitions"))
    Subnet.objects.update(frozen_at=timezone.now(), frozen_reason="Bert moves out")
    assert drag(page, "srv-001", "training", "inference").status == 409
    expect(page.get_by_role("alert")).to_contain_text("Your provider has stopped all changes")
    expect(card(page, "training", "srv-001")).to_be_visible()
    assert "Bert" not in page.content()
    assert not StagedChange.objects.exists()


def test_a_request_is_asked_approved_and_done_by_proof(portal, page, context, sign_in):
    page.goto(page.base + portal.address("servers"))
    page.get_by_role("link", name="Requests").click()
    page.get_by_label("How many").fill("1")
    page.get_by_label("Into which partition").select_option("training")
    page.locator("#more-why").fill("the new model")
    page.get_by_role("button", name="Ask for more servers").click()
    expect(page.locator("#standing")).to_contain_text("Your provider has not answered yet.")
    asked_at = page.url
    sign_in(context, portal.provider.olga)
    page.goto(page.base + "/")
    page.get_by_role("link", name="1 request of a tenant waits for an answer.").click()
    page.get_by_role("link", name="1 more server").click()
    page.get_by_label("srv-005").check()
    page.get_by_role("button", name="Approve and stage").click()
    expect(page.locator("#standing")).to_contain_text("1 server is staged for it")
    portal.provider.settle(portal.provider.roll_out(portal.provider.olga, reason="the request"))
    follow.tick()
    sign_in(context, portal.seats["max"].person)
    page.goto(asked_at)
    expect(page.locator("#standing")).to_contain_text("The fabric was read, and shows it.")
    page.get_by_role("link", name="srv-005").click()
    expect(page.get_by_role("heading", name="srv-005")).to_be_visible()


def signed_document(portal):
    evidence.ask(seat=portal.seats["max"])
    signing.tick(now=timezone.now())
    return portal.address("evidence_document", SignedEvidence.objects.latest("pk").public_id)


def test_evidence_is_signed_under_the_readers_eyes_and_checked_offline(portal, page, tmp_path):
    """Ask, see it signed without loading the page again, download it with program and key, and check it."""
    page.goto(page.base + portal.address("servers"))
    page.get_by_role("link", name="Evidence").click()
    expect(page.get_by_role("heading", name="Ports, P_Keys and indexes")).to_be_visible()
    page.get_by_role("button", name="Sign how it stands now").click()
    expect(page.locator("#signed")).to_contain_text("being signed")
    signing.tick(now=timezone.now())
    page.reload()
    row = SignedEvidence.objects.get()
    expect(page.locator("#signed")).to_contain_text(row.digest[:12])
    for link in ("verifier.py", "evidence-key.pub", "as JSON"):
        with page.expect_download() as download:
            page.get_by_role("link", name=link).click()
        download.value.save_as(tmp_path / (download.value.suggested_filename if link != "as JSON" else "e.json"))
    files = ["verifier.py", "--document", "e.json", "--public-key", "evidence-key.pub"]
    ran = subprocess.run([sys.executable, "-I", *files], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert row.digest in ran.stdout
    page.get_by_role("link", name="Read and print").click()
    expect(page.locator("dl.facts")).to_contain_text(row.digest)


def test_on_paper_there_is_no_navigation_and_each_page_says_whose_it_is(portal, page):
    page.goto(page.base + signed_document(portal))
    page.evaluate("window.print = () => { document.title = 'printed'; }")
    page.get_by_role("button", name="Print").click()
    expect(page).to_have_title("printed")
    expect(page.locator(".sheet-head")).to_be_hidden()
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".sheet-head")).to_contain_text(SignedEvidence.objects.get().digest)
    for gone in (".topbar", ".crumb", "[data-print]"):
        expect(page.locator(gone)).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 34, 48)"  # ink on white, at night too
    assert page.pdf().startswith(b"%PDF")


def test_without_servers_the_pages_stand_at_every_width(portal, page):
    Membership.objects.all().delete()
    for address in [portal.address(name) for name in ("servers", "partitions", "evidence")]:
        page.goto(page.base + address)
        for width in (390, 768, 1400):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert violations(page) == [], (address, scheme)
