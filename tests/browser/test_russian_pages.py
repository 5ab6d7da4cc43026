"""The pages in Russian, whose words are longer: axe in light and dark, no wider than the screen; an ended session."""

import pytest
from playwright.sync_api import expect

from lab.pictures import busy
from people.models import User
from tests.browser.test_every_page import found_on, tab

__all__ = ["tab"]

pytestmark = pytest.mark.browser
# The three densest, and those that people open first; in English each is in `test_every_page.py`.
PAGES = (
    "/board/?open=all",
    "/plan/?selection=all",
    "/",
    "/rollouts/",
    "/servers/",
    "/partitions/",
    "/managers/",
    "/audit/",
)


def test_the_pages_are_for_everybody_in_russian_too(site, tab, context, live_server, sign_in):
    scene = busy.fill(site)
    olga = scene.people.get("olga", site.provider.olga)
    User.objects.filter(pk=olga.pk).update(language="ru")
    sign_in(context, olga)
    wrong = {}
    rollout = None
    for path in PAGES:
        tab.set_viewport_size({"width": 1400, "height": 800})
        tab.goto(live_server.url + path)
        expect(tab.locator("html")).to_have_attribute("lang", "ru")
        if path == "/rollouts/":
            rollout = tab.locator('main a[href^="/rollouts/"]').first.get_attribute("href")
        if found := found_on(tab):
            wrong[path] = found
    tab.set_viewport_size({"width": 1400, "height": 800})
    tab.goto(live_server.url + rollout)
    if found := found_on(tab):
        wrong[rollout] = found
    assert not wrong, "\n".join(f"{path}: {line}" for path, lines in wrong.items() for line in lines)


def test_a_session_that_ends_under_a_fragment_leads_to_the_russian_login(site, live_server, browser, sign_in):
    User.objects.filter(pk=site.provider.olga.pk).update(language="ru")
    context = browser.new_context(locale="ru-RU")
    sign_in(context, site.provider.olga)
    page = context.new_page()
    page.goto(f"{live_server.url}/board/")
    context.clear_cookies()
    page.wait_for_url("**/account/login/**")
    expect(page.get_by_role("button", name="Войти")).to_be_visible()
    context.close()
