"""Every page of the list that pictures are made of: under axe in light and dark, and no wider than the screen.

Each is loaded once: the scheme and the width change under it.
"""

import pytest

from lab.pictures import busy
from lab.pictures.pages import BUSY
from lab.pictures.visit import visit
from tests.browser.axe import OF_COLOURS, violations

pytestmark = pytest.mark.browser
WIDTHS = (390, 768, 1400)
# The tab of the page itself, and every choice of a form, is there without scrolling sideways.
OUTSIDE = """width => [...document.querySelectorAll('.inventory-tabs [aria-current="page"], .fold-table select')]
    .filter(one => one.getBoundingClientRect().right > width || one.getBoundingClientRect().left < 0)
    .map(one => one.outerHTML.slice(0, 60))"""
HALVES = (BUSY[::2], BUSY[1::2])  # for two processes


@pytest.fixture
def tab(context):
    """A tab that nobody is signed in to; what its console says is in `wrong`."""
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    tab.emulate_media(reduced_motion="reduce")  # no colour is read half way between two schemes
    tab.wrong = []
    tab.on("console", lambda said: tab.wrong.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    return tab


def found_on(tab) -> list[str]:
    """What is wrong with the page that is shown, in both schemes and at all widths."""
    found = []
    tab.emulate_media(color_scheme="light")
    found += violations(tab)
    tab.emulate_media(color_scheme="dark")
    found += [f"in dark: {line}" for line in violations(tab, only=OF_COLOURS)]
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        if tab.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"wider than {width}")
        found += [f"outside at {width}: {one}" for one in tab.evaluate(OUTSIDE, width)]
    return found


def said_of(status: int, text: str) -> bool:
    """Whether that is only the browser's word for an answer which the page is meant to have."""
    return status >= 400 and text.startswith("Failed to load resource:") and f"status of {status} " in text


@pytest.mark.parametrize("half", HALVES, ids=["one half", "other half"])
def test_every_page_is_for_everybody_in_both_schemes_and_at_every_width(site, tab, context, live_server, sign_in, half):
    scene = busy.fill(site)
    wrong = {}
    for who in dict.fromkeys(page.who for page in half):
        context.clear_cookies()
        if who:
            sign_in(context, scene.people[who])
        for page in half:
            if page.who != who:
                continue
            tab.set_viewport_size({"width": 1400, "height": 800})
            tab.wrong.clear()
            assert visit(tab, live_server.url, page, scene) == page.status, page.name
            found = found_on(tab) + [text for text in tab.wrong if not said_of(page.status, text)]
            if found:
                wrong[page.name] = found
    assert not wrong, "\n".join(f"{name}: {line}" for name, lines in wrong.items() for line in lines)


# Not as an element: the policy of the page lets no style of that kind in.
PALE = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('h1 { color: light-dark(#1a2230, #26303d); }');
  document.adoptedStyleSheets = [sheet];
}"""


def test_a_fault_of_contrast_in_the_dark_alone_is_found(page, live_server):
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{live_server.url}/rollouts/")
    assert found_on(page) == []
    page.evaluate(PALE)
    assert [line.partition(": <")[0] for line in found_on(page)] == ["in dark: color-contrast"]
