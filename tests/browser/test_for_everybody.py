"""Whoever wants no motion gets none, and who sees forced colours alone still tells the lamps apart."""

import pytest
from playwright.sync_api import expect

from inventory.models import PortConflict
from lab.pictures import busy

pytestmark = pytest.mark.browser

# What would move: every element, and what is drawn before and after it.
MOVING = """() => [...document.querySelectorAll('*')].flatMap((one) => [null, '::before', '::after'].map((part) => {
  const style = getComputedStyle(one, part);
  const moves = style.animationName !== 'none' || style.transitionDuration.split(', ').some((s) => parseFloat(s) > 0);
  return moves ? `${one.tagName}.${one.className}${part ?? ''}` : null;
})).filter(Boolean)"""
# The shape of each icon is a mask or a picture of its own: the state is drawn, not only coloured.
LAMPS = """() => [...document.querySelectorAll('.lamp')].filter((one) => one.checkVisibility()).map((one) => {
  const drawn = one.querySelector('svg, .icon') ?? one;
  const box = drawn.getBoundingClientRect();
  return {word: one.textContent.trim(), shape: box.width * box.height};
})"""

# A card draws four masks at once, over one colour that the person chose; its sentence is what it is described by.
FOURS = """() => [...document.querySelectorAll('.card .four')].map((one) => {
  const drawn = getComputedStyle(one, '::after');
  const words = document.getElementById(one.closest('.card').getAttribute('aria-describedby'));
  return {shapes: ['--ds', '--ps', '--rs', '--bs'].map((name) => drawn.getPropertyValue(name)),
    masks: drawn.maskImage.split('url(').length - 1, seen: parseFloat(drawn.width) * parseFloat(drawn.height),
    ground: [drawn.backgroundColor, drawn.backgroundImage], ink: getComputedStyle(document.body).color,
    word: words?.textContent.trim() ?? ''};
})"""


@pytest.mark.parametrize("path", ["/", "/board/?open=all", "/plan/?selection=all", "/drift/"])
def test_nothing_moves_for_those_who_asked_for_no_motion(site, page, live_server, path):
    busy.fill(site)
    page.emulate_media(reduced_motion="reduce")
    page.goto(live_server.url + path)
    assert page.evaluate(MOVING) == []
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(MOVING) != [], "the test sees no motion where there is some"


def test_lamps_have_a_shape_and_a_word_in_forced_colours(site, page, live_server):
    busy.fill(site)
    page.emulate_media(forced_colors="active")
    for path in ("/", "/managers/", "/rollouts/"):
        page.goto(live_server.url + path)
        lamps = page.evaluate(LAMPS)
        assert lamps, path
        assert all(lamp["word"] and lamp["shape"] > 0 for lamp in lamps), (path, lamps)


def test_the_four_lamps_of_a_card_are_shapes_and_a_sentence_in_forced_colours(site, page, live_server):
    busy.fill(site)
    page.emulate_media(forced_colors="active")
    page.goto(f"{live_server.url}/board/?open=all")
    cards = page.evaluate(FOURS)
    assert cards
    for card in cards:
        assert len(card["shapes"]) == 4
        assert all(card["shapes"]), card
        assert card["masks"] == 4, card
        assert card["seen"] > 0, card
        assert card["ground"] == [card["ink"], "none"], card
        assert card["word"], card
    drawn = {shape for card in cards for shape in card["shapes"]}
    assert len(drawn) >= 4, "staged, not yet, as it should be and in trouble do not look alike"


def test_a_move_by_keyboard_is_announced_and_so_is_a_refused_one(site, page, live_server):
    server = site.provider.servers[0]
    page.goto(f"{live_server.url}/board/?open=all")
    page.get_by_role("button", name=f"Move {server.hostname}").click()
    page.keyboard.type("inference")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_have_text("srv-001 is staged to inference. Nothing has reached the fabric.")
    other = site.provider.servers[2]
    port = other.hcas.earliest("pk").ports.earliest("pk")
    PortConflict.objects.create(port=port, claimed_by=site.provider.servers[3], claim={})
    page.get_by_role("button", name=f"Move {other.hostname}").click()
    page.keyboard.type("training")
    page.keyboard.press("Enter")
    told = page.locator("[aria-live=assertive], [role=alert], #announcer").filter(has_text=other.hostname)
    expect(told.first).to_contain_text("conflict")
