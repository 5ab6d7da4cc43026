"""Keys and help in a real browser: they lead where they say, and never while somebody types."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe import violations

pytestmark = pytest.mark.browser


def test_keys_and_words_are_explained_and_can_be_switched_off(site, page, live_server):
    page.goto(f"{live_server.url}/")
    dialog = page.get_by_role("dialog", name="Keys")

    # “?” lists the keys; Escape closes the list.
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("go to Rollouts")
    expect(dialog.get_by_text("move the server")).to_be_hidden()  # that is the board's
    assert not violations(page)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()

    # “g” and a letter go there.
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page).to_have_url(re.compile(r"/partitions/$"))

    # A word is explained where it stands, by a button that a keyboard reaches.
    page.get_by_role("button", name="What is P_Key?").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("15-bit partition number")).to_be_visible()
    assert not violations(page)
    page.keyboard.press("Escape")
    expect(page.get_by_text("15-bit partition number")).to_be_hidden()

    # Not while somebody types.
    page.get_by_label("Name").press_sequentially("g?b")
    expect(page.get_by_label("Name")).to_have_value("g?b")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/partitions/$"))

    # An id is copied, and that is said.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="0x2c41").click()
    expect(page.locator("#announcer")).to_have_text("0x2c41 copied")

    # Switched off, no key of one letter does anything; the menu still leads to the help.
    page.get_by_label("Your menu").click()
    page.get_by_role("button", name="Keys and help").click()
    page.get_by_label("Keys of one letter are on").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(dialog).to_be_hidden()
    page.goto(f"{live_server.url}/board/")
    page.keyboard.press("/")  # of the board's own script
    expect(page.locator("#search")).not_to_be_focused()
    expect(page).to_have_url(re.compile(r"/board/$"))
