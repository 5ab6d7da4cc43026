"""A real browser on the real pages: Debian's chromium, people who are signed in, and nobody's console error.

The rows are made by operations, without a fabric.
"""

import os
import shutil

import pytest
from django.conf import settings as django_settings
from playwright.sync_api import expect

from tests.console.conftest import settled_site

expect.set_options(timeout=15_000)  # two polls of the board and a busy machine

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session", autouse=True)
def _rows_beside_a_running_browser():
    """Playwright's loop runs in this thread, and Django takes that for asynchronous code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.fail("Browser tests need chromium. Install Debian's package chromium.")
    return {**browser_type_launch_args, "executable_path": chromium, "args": FLAGS.split()}


@pytest.fixture
def site(transactional_db):
    return settled_site()


@pytest.fixture
def sign_in(live_server, client_of):
    """Give a browser context somebody's session."""

    def sign_in(context, person):
        session = client_of(person).cookies[django_settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": django_settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])

    return sign_in


@pytest.fixture
def page(site, live_server, context, sign_in):
    """Olga's page. A console error, a broken script or a refused resource fails the test at its end."""
    sign_in(context, site.provider.olga)
    page = context.new_page()
    page.set_default_timeout(20_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.wrong = wrong
    yield page
    assert not [text for text in wrong if "409 (Conflict)" not in text]  # a refusal is told by the browser as well
