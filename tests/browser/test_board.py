"""Moving servers with the mouse and with the keyboard; refused moves; what others do meanwhile."""

import re
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from inventory.models import Port, PortConflict
from partitions.models import StagedChange

pytestmark = pytest.mark.browser

POLL_NOW = "() => document.getElementById('live').dispatchEvent(new CustomEvent('refresh'))"
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def card(page, column, server):
    return page.locator(f"#card-{column.public_id}-{server.public_id}")


def cards(page, column):
    return page.locator(f"#cards-{column.public_id}")


def drag(page, source, target):
    """Pull a card by its name over to a column, as a hand does it."""
    source.hover(position={"x": 60, "y": 36})
    with page.expect_response("**/board/move/") as answer:
        source.drag_to(target, source_position={"x": 60, "y": 36}, target_position={"x": 100, "y": 40})
    return answer.value


def test_a_drag_stages_a_move(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    answer = drag(page, card(page, site.training, server), cards(page, site.inference))
    assert answer.status == 200
    moved = card(page, site.inference, server)
    expect(moved).to_have_class(re.compile("card-staged"))
    expect(moved).to_contain_text("training")
    expect(page.locator("#tray-text")).to_contain_text("1 server, 2 ports staged")
    expect(page.locator("#announcer")).to_have_text("srv-001 is staged to inference. Nothing has reached the fabric.")
    assert StagedChange.objects.of_server(server).count() == 4
    page.reload()
    expect(card(page, site.inference, server)).to_be_visible()
    expect(card(page, site.training, server)).to_have_count(0)


def tab_to_a_card(page):
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('card')"):
            return
    pytest.fail("the Tab key leads to no card")


def test_the_same_by_keyboard_alone(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    page.keyboard.press("/")
    page.keyboard.type("srv-001")
    expect(page.locator("#search-count")).to_have_text("1 of 6 servers")
    page.keyboard.press("ArrowDown")
    expect(card(page, site.training, server)).to_be_focused()
    page.keyboard.press("m")
    expect(page.locator("#move-dialog")).to_be_visible()
    expect(page.locator("#move-server")).to_have_text("srv-001")
    page.keyboard.type("acme")
    expect(page.locator("#move-list li")).to_have_count(1)
    with page.expect_response("**/board/move/") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 200
    expect(page.locator("#move-dialog")).to_be_hidden()
    expect(page.locator("#tray-text")).to_contain_text("1 server, 2 ports staged")
    expect(card(page, site.inference, server)).to_be_focused()
    assert StagedChange.objects.of_server(server).count() == 4


def test_the_same_by_single_clicks(site, page, live_server):
    server = site.provider.servers[4]
    page.goto(f"{live_server.url}/board/")
    page.get_by_role("button", name="Move srv-005").click()
    with page.expect_response("**/board/move/"):
        page.get_by_role("option", name=re.compile("research")).click()
    expect(card(page, site.research, server)).to_have_class(re.compile("card-staged"))


def test_escape_leaves_everything_as_it_is(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    button = page.get_by_role("button", name="Move srv-005")
    button.focus()
    page.keyboard.press("m")
    expect(page.locator("#move-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#move-dialog")).to_be_hidden()
    expect(page.locator(".card", has_text="srv-005")).to_be_focused()
    assert not StagedChange.objects.exists()


@contextmanager
def hung_polls(page):
    """The board's polls get no answer, as on a bad network; at the end those that still wait are let go."""
    page.route("**/board/", lambda route: None)
    with page.expect_request("**/board/"):
        page.evaluate(POLL_NOW)
    yield
    page.unroute("**/board/")


def test_a_drop_goes_out_and_is_shown_whatever_a_poll_does(site, page, live_server):
    """Long before a poll that hangs is given up by itself, after 15 s: by a drop, and by an undo."""
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    with hung_polls(page), page.expect_request("**/board/", timeout=10_000):  # asked again behind the move
        assert drag(page, card(page, site.training, server), cards(page, site.inference)).status == 200
    expect(page.locator("#tray-text")).to_contain_text("1 server, 2 ports staged", timeout=5_000)
    with hung_polls(page), page.expect_request("**/board/", timeout=10_000):
        page.keyboard.press("Control+z")
    expect(card(page, site.training, server)).to_be_visible(timeout=5_000)
    assert not StagedChange.objects.exists()


def test_a_refused_move_snaps_back_alone_with_its_reason(site, page, live_server):
    first, second = site.provider.servers[:2]
    port = Port.objects.filter(hca__server=first).first()
    PortConflict.objects.create(port=port, claimed_by=second, claim={})
    page.goto(f"{live_server.url}/board/")
    drag(page, card(page, site.training, second), cards(page, site.inference))
    expect(card(page, site.inference, second)).to_have_class(re.compile("card-staged"))
    back = card(page, site.training, first)
    with hung_polls(page):  # no poll puts it back: the page does so itself
        answer = drag(page, card(page, site.training, first), cards(page, site.research))
        assert answer.status == 409
        expect(back.locator(".card-refusal")).to_contain_text("is also claimed by srv-002")
        expect(cards(page, site.training)).to_contain_text("srv-001")
        expect(cards(page, site.research)).not_to_contain_text("srv-001")
        expect(page.locator("#announcer")).to_contain_text("Not moved:")
    expect(card(page, site.inference, second)).to_be_visible()  # the neighbour's move stands
    with page.expect_response(lambda response: response.url.endswith("/board/") and response.status in (200, 304)):
        page.evaluate(POLL_NOW)
    expect(back.locator(".card-refusal")).to_be_visible()
    back.get_by_role("button", name="Got it").click()
    expect(back.locator(".card-refusal")).to_have_count(0)
    assert not StagedChange.objects.of_server(first).exists()


def test_a_drag_onto_what_tenants_share_leaves_the_card_where_it_was(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    drag(page, card(page, site.training, server), cards(page, site.storage))
    expect(card(page, site.storage, server)).to_be_visible()
    expect(card(page, site.training, server)).to_be_visible()
    assert {(row.partition.name, row.kind_to) for row in StagedChange.objects.select_related("partition")} == {
        ("storage", "limited")
    }


def test_the_menu_makes_a_server_limited(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    card(page, site.training, server).locator(".card-move").click()
    page.get_by_role("button", name="Make limited in training").click()
    expect(page.locator("#announcer")).to_contain_text("staged as a limited member of training")
    expect(card(page, site.training, server)).to_have_class(re.compile("card-staged"))


def test_a_server_that_does_not_answer_moves_nothing(site, page, live_server):
    server = site.provider.servers[0]
    page.clock.install()
    page.goto(f"{live_server.url}/board/")
    back = card(page, site.training, server)
    for answer in (lambda route: route.abort(), lambda route: None):  # a lost connection, and one that hangs
        page.route("**/board/move/", answer)
        back.locator(".card-move").click()
        page.keyboard.type("inference")
        with page.expect_request("**/board/move/"):
            page.keyboard.press("Enter")
        page.clock.fast_forward(31_000)
        expect(back.locator(".card-refusal")).to_contain_text("The server did not answer")
        back.get_by_role("button", name="Got it").click()
        page.unroute("**/board/move/")
    # The clock has let a poll time out as well.
    page.wrong[:] = [text for text in page.wrong if not re.search("net::ERR_FAILED|htmx:error: timeout", text)]


def test_what_another_operator_stages_appears_by_itself(site, page, live_server):
    provider = site.provider
    page.goto(f"{live_server.url}/board/")
    expect(page.locator("#tray-text")).to_contain_text("Nothing is staged.")
    provider.move(provider.servers[0], site.training, site.inference, by=provider.otto)
    moved = card(page, site.inference, provider.servers[0])
    expect(moved).to_contain_text("Otto")
    expect(page.locator("#tray-text")).to_contain_text("Otto: 1 server")
    # A card that came by itself can be dragged like any other.
    drag(page, card(page, site.training, provider.servers[1]), cards(page, site.inference))
    expect(page.locator("#tray-text")).to_contain_text("1 server, 2 ports staged")


def test_nothing_is_asked_for_while_a_card_is_in_the_hand(site, page, live_server):
    """An answer that lands under a drag would put cards back."""
    provider = site.provider
    page.goto(f"{live_server.url}/board/")
    held = card(page, site.training, provider.servers[0])
    held.hover(position={"x": 60, "y": 36})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(live_server.url)))
    page.mouse.down()
    page.evaluate(POLL_NOW)  # not even before it has moved
    target = cards(page, site.inference).bounding_box()
    page.mouse.move(target["x"] + 60, target["y"] + 30, steps=12)
    expect(page.locator("body.is-dragging")).to_have_count(1)
    provider.move(provider.servers[2], site.inference, site.training, by=provider.otto)
    for _ in range(3):
        page.evaluate(POLL_NOW)
        page.evaluate(TWO_FRAMES)
    with page.expect_response("**/board/move/"):
        page.mouse.up()
    assert asked[0] == "/board/move/"  # the polls before it asked for nothing
    expect(card(page, site.training, provider.servers[2])).to_contain_text("Otto")
    expect(card(page, site.inference, provider.servers[0])).to_have_class(re.compile("card-staged"))


def test_an_answer_from_before_a_move_is_thrown_away(site, page, live_server, client_of):
    """The poll was asked for before the move and answers after it: it shows the card where it no longer is."""
    server = site.provider.servers[0]
    stale = client_of(site.provider.olga).get("/board/", HTTP_HX_REQUEST="true").content.decode()
    page.goto(f"{live_server.url}/board/")
    held = []
    page.route("**/board/", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/board/"):
        page.evaluate(POLL_NOW)
    card(page, site.training, server).locator(".card-move").click()
    page.keyboard.type("inference")
    with page.expect_response("**/board/move/"):
        page.keyboard.press("Enter")
    expect(card(page, site.inference, server)).to_have_class(re.compile("card-staged"))
    held[0].fulfill(status=200, content_type="text/html; charset=utf-8", body=stale)
    for _ in range(5):
        page.evaluate(TWO_FRAMES)
        assert card(page, site.training, server).count() == 0
    expect(card(page, site.inference, server)).to_contain_text("training")


def test_the_search_stands_in_the_address(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    page.locator("#search").fill("srv-004")
    expect(page.locator(".card:visible")).to_have_count(1)
    assert page.url.endswith("?q=srv-004")
    page.reload()
    expect(page.locator("#search")).to_have_value("srv-004")
    expect(page.locator(".card:visible")).to_have_count(1)
    page.locator("#search").fill("")
    expect(page.locator(".card:visible")).to_have_count(6)


def test_an_ended_session_leads_to_the_login(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    page.context.clear_cookies()
    page.wait_for_url("**/account/login/**")


def test_an_auditor_moves_nothing(site, live_server, browser, sign_in, ada):
    context = browser.new_context()
    sign_in(context, ada)
    page = context.new_page()
    page.goto(f"{live_server.url}/board/")
    expect(page.locator(".card")).to_have_count(6)
    expect(page.locator(".card-move")).to_have_count(0)
    card(page, site.training, site.provider.servers[0]).drag_to(cards(page, site.inference))
    expect(card(page, site.training, site.provider.servers[0])).to_be_visible()
    assert not StagedChange.objects.exists()
    context.close()
