"""A real browser on the real pages: Debian's chromium, people who are signed in, and nobody's console error.

The rows are made by operations, without a fabric.
"""

import os
import shutil
import threading
import time

import pytest
from django.conf import settings as django_settings
from django.core.signals import request_finished, request_started
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


class UnderWay:
    """The requests that the live server has begun to answer and not ended."""

    def __init__(self):
        self.requests = set()

    def begun(self, **_):
        if threading.current_thread() is not threading.main_thread():
            self.requests.add(threading.get_ident())

    def ended(self, **_):
        self.requests.discard(threading.get_ident())

    def wait_until_none(self):
        """Return once there were none for a moment; what a page asked for last may still be on its way."""
        deadline, quiet_since = time.monotonic() + 30, time.monotonic()
        while time.monotonic() < quiet_since + 0.1:
            if self.requests:
                quiet_since = time.monotonic() + 0.001
            assert time.monotonic() < deadline, "The live server does not come to the end of a request."
            time.sleep(0.01)


@pytest.fixture(scope="session")
def under_way():
    """What the live server is answering right now."""
    counted = UnderWay()
    request_started.connect(counted.begun)
    request_finished.connect(counted.ended)
    yield counted
    request_started.disconnect(counted.begun)
    request_finished.disconnect(counted.ended)


@pytest.fixture
def tables(transactional_db, under_way):
    """The database. Pages poll, and tables cannot be emptied under a request: they are when none is under way."""
    yield
    under_way.wait_until_none()


@pytest.fixture
def site(tables):
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
