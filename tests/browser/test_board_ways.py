"""Many servers at once, the keyboard alone, undo, tiles, two people on one board, partitions from the board."""

import re

import pytest
from playwright.sync_api import expect

from inventory.models import Port, PortConflict
from partitions.models import Partition, StagedChange
from tests.browser.axe import violations
from tests.browser.test_board import card, cards, drag, tab_to_a_card

pytestmark = pytest.mark.browser


def click(page, column, server, *modifiers):
    card(page, column, server).click(position={"x": 60, "y": 36}, modifiers=list(modifiers))


def staged(*servers):
    """Into which partition each server is staged."""
    rows = StagedChange.objects.exclude(kind_to=None).values_list("port__hca__server", "partition__name")
    found = dict(rows)
    return [found.get(server.pk) for server in servers]


def test_a_drag_takes_all_selected_servers_along(site, page, live_server):
    first, second, third = site.provider.servers[:3]
    page.goto(f"{live_server.url}/board/")
    click(page, site.training, first)
    click(page, site.training, second, "Shift")
    expect(page.locator("#picked-count")).to_have_text("2 servers selected")
    click(page, site.inference, third, "Control")
    expect(page.locator("#picked-count")).to_have_text("3 servers selected")
    click(page, site.inference, third, "Control")
    assert not violations(page)
    answer = drag(page, card(page, site.training, first), cards(page, site.inference))
    assert answer.status == 200
    assert answer.request.post_data.count("server=") == 2
    expect(page.locator("#announcer")).to_contain_text("2 servers are staged to inference.")
    for server in (first, second):
        expect(card(page, site.inference, server)).to_have_class(re.compile("card-staged"))
    expect(page.locator("#picked")).to_be_hidden()
    assert staged(first, second, third) == ["inference", "inference", None]


def test_of_many_only_the_refused_one_goes_back_with_its_sentence(site, page, live_server):
    first, second = site.provider.servers[:2]
    PortConflict.objects.create(port=Port.objects.filter(hca__server=first).first(), claimed_by=second, claim={})
    page.goto(f"{live_server.url}/board/")
    page.get_by_role("button", name="Select all of training").click()
    expect(page.locator("#picked-count")).to_have_text("2 servers selected")
    page.get_by_role("button", name="Move to …").click()
    expect(page.locator("#move-server")).to_have_text("2 servers")
    page.keyboard.type("infer")
    with page.expect_response("**/board/move/") as answer:
        page.keyboard.press("Enter")
    assert answer.value.status == 200
    expect(card(page, site.training, first).locator(".card-refusal")).to_contain_text("is also claimed by srv-002")
    expect(card(page, site.inference, second)).to_have_class(re.compile("card-staged"))
    assert staged(first, second) == [None, "inference"]


def test_a_card_is_picked_up_carried_and_dropped_by_keyboard(site, page, live_server):
    server = site.provider.servers[4]
    page.goto(f"{live_server.url}/board/?q=srv-005")
    expect(page.locator(".card")).to_have_count(1)
    page.keyboard.press("/")
    tab_to_a_card(page)
    page.keyboard.press("Space")
    expect(page.locator("#announcer")).to_contain_text("srv-005 picked up")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(page.locator("#announcer")).to_have_text("Let go. Nothing was moved.")
    assert staged(server) == [None]
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".drop-target")).to_have_attribute("data-name", "training")
    expect(page.locator("#announcer")).to_have_text("Over training, Acme.")
    with page.expect_response("**/board/move/"):
        page.keyboard.press("Enter")
    expect(card(page, site.training, server)).to_have_class(re.compile("card-staged"))
    expect(card(page, site.training, server)).to_be_focused()
    assert staged(server) == ["training"]


def test_arrows_go_from_card_to_card_and_select(site, page, live_server):
    first, second, third = site.provider.servers[:3]
    page.goto(f"{live_server.url}/board/")
    card(page, site.training, first).focus()
    page.keyboard.press("Shift+ArrowDown")
    expect(card(page, site.training, second)).to_be_focused()
    expect(page.locator("#picked-count")).to_have_text("2 servers selected")
    page.keyboard.press("Escape")
    expect(page.locator("#picked")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect(card(page, site.inference, third)).to_be_focused()
    page.keyboard.press("Control+a")
    expect(page.locator("#picked-count")).to_have_text("1 server selected")


def test_undo_by_keys_and_by_the_button(site, page, live_server):
    first, second = site.provider.servers[:2]
    page.goto(f"{live_server.url}/board/")
    drag(page, card(page, site.training, first), cards(page, site.inference))
    expect(page.locator("#undo")).to_contain_text("srv-001 to inference")
    drag(page, card(page, site.training, second), cards(page, site.inference))
    expect(page.locator("#undo")).to_contain_text("srv-002 to inference")
    page.keyboard.press("Control+z")
    expect(card(page, site.training, second)).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("Undone: srv-002 to inference.")
    assert staged(first, second) == ["inference", None]
    page.locator("#undo").click()
    expect(card(page, site.training, first)).to_be_visible()
    expect(page.locator("#undo")).to_have_count(0)
    assert not StagedChange.objects.exists()
    page.keyboard.press("Control+z")
    expect(page.locator("#said-text")).to_contain_text("There is nothing to undo")
    page.wrong[:] = [text for text in page.wrong if "409 (Conflict)" not in text]


def test_a_card_is_dropped_on_a_tile_and_the_back_button_closes_what_was_opened(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/?open=")
    expect(page.locator(".card")).to_have_count(0)
    assert not violations(page)
    page.get_by_role("button", name="training").click()
    expect(card(page, site.training, server)).to_be_visible()
    assert page.url.endswith(f"?open={site.training.public_id}")
    tile = page.locator(f"#tile-{site.inference.public_id}")
    drag(page, card(page, site.training, server), tile)
    expect(tile).to_contain_text("+1 joining")
    expect(card(page, site.training, server)).to_have_count(0)
    assert staged(server) == ["inference"]
    page.go_back()
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator(f"#tile-{site.training.public_id}")).to_contain_text("−1 leaving")
    page.locator("#search").fill("tenant:acme by:me")
    expect(card(page, site.inference, server)).to_be_visible()
    expect(page.locator("#search-count")).to_have_text("1 of 6 servers")
    page.locator("#search").fill("colour:red")
    expect(page.locator("#search-mistake")).to_contain_text("There is no colour: to search by.")
    page.go_back()
    expect(page.locator("#search")).to_have_value("")


def test_two_people_on_one_board_see_and_do_not_overrun_each_other(site, page, live_server, browser, sign_in):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/")
    context = browser.new_context()
    sign_in(context, site.provider.otto)
    other = context.new_page()
    other.goto(f"{live_server.url}/board/")
    # Olga is first; what Otto's page shows is old by then.
    other.route("**/board/", lambda route: route.abort())
    drag(page, card(page, site.training, server), cards(page, site.inference))
    other.locator(f"#card-{site.training.public_id}-{server.public_id} .card-move").click()
    other.keyboard.type("unassigned")
    with other.expect_response("**/board/move/") as answer:
        other.keyboard.press("Enter")
    assert answer.value.status == 409
    refusal = card(other, site.training, server).locator(".card-refusal")
    expect(refusal).to_contain_text("Olga has already staged srv-001 from training to inference at ")
    other.unroute("**/board/")
    expect(card(other, site.inference, server)).to_contain_text("Olga")
    expect(other.locator("#tray-text")).to_contain_text("Olga: 1 server")
    expect(card(page, site.inference, server)).to_contain_text("you")
    context.close()


def test_partitions_are_created_renamed_and_retired_from_the_board(site, page, live_server):
    page.goto(f"{live_server.url}/board/")
    page.get_by_role("button", name="New partition").click()
    page.locator("#new-name").fill("training")
    page.get_by_role("button", name="Create it").click()
    expect(page.locator("#new-error")).to_contain_text("already has a partition training")
    page.locator("#new-name").fill("nightly")
    page.get_by_label("Tenant").select_option("Acme")
    assert not violations(page)
    page.get_by_role("button", name="Create it").click()
    expect(page.locator(".cards[data-name=nightly]")).to_be_visible()
    page.get_by_role("button", name="Rename or retire nightly").click()
    page.locator("#act-name").fill("evening")
    assert not violations(page)
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator(".cards[data-name=evening]")).to_be_visible()
    page.get_by_role("button", name="Rename or retire training").click()
    page.get_by_role("button", name="Stage that everybody leaves").click()
    expect(page.locator("#undo")).to_contain_text("everybody out of training")
    expect(cards(page, site.training).locator(".card")).to_have_count(0)
    page.get_by_role("button", name="Rename or retire evening").click()
    page.get_by_role("button", name="Retire it").click()
    expect(page.locator(".cards[data-name=evening]")).to_have_count(0)
    assert Partition.objects.get(name="evening").retired_at is not None
    page.wrong[:] = [text for text in page.wrong if "422 (Unprocessable" not in text]
