"""Open pages hear of changes, and tell the truth when they cannot: a web process, its broker, a copy of the rows.

The stream needs a server that can stream, so these run on a site of its own (`lab/live_site.py`) and not on Django's.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.urls import reverse
from playwright.sync_api import expect

from lab.live_site import LiveSite, live_site

pytestmark = pytest.mark.browser

SOON = 10_000  # ms; long before the fragment's own `every 30s`


@dataclass
class Served:
    """The running site, and who has a session there."""

    site: LiveSite
    database: str
    cookies: dict[str, dict[str, str]]
    rollout: str  # address of a rollout's page


@pytest.fixture
def served(site, client_of, tmp_path, browser):
    """The settled site's rows in a file, served by uvicorn, with the broker and the worker of the trail."""
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    rollout = provider.roll_out(provider.olga)
    sessions = {name: client_of(person) for name, person in (("olga", provider.olga), ("otto", provider.otto))}
    name = django_settings.SESSION_COOKIE_NAME
    database = tmp_path / "rows.sqlite3"
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(database)])
    keys = {"FABRICUI_SECRET_KEY": django_settings.SECRET_KEY, "FABRICUI_AUDIT_KEY_FILE": _audit_key()}
    with live_site(database_url=f"sqlite://{database}", environment=keys) as started:
        started.start("broker", "web", "housekeeping")
        cookies = {
            who: {"name": name, "value": client.cookies[name].value, "url": started.url}
            for who, client in sessions.items()
        }
        yield Served(started, str(database), cookies, reverse("console:rollout", args=[rollout.public_id]))


def _audit_key() -> str:
    from audit import keyring

    return str(keyring.path())


class Person:
    """Somebody's browser on the served site; what goes wrong there is noted."""

    def __init__(self, browser, served: Served, who: str) -> None:
        self.served = served
        self.context = browser.new_context()
        self.context.add_cookies([served.cookies[who]])
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(self.served.site.url + path)

    def stream_is(self, state: str) -> None:
        expect(self.page.locator("html")).to_have_attribute("data-stream", state, timeout=SOON)

    def post(self, path: str, **fields: str) -> None:
        """Send a form as the page would."""
        token = self.page.locator('meta[name="csrf-token"]').get_attribute("content")
        answer = self.context.request.post(
            self.served.site.url + path, form={**fields, "csrfmiddlewaretoken": token},
            headers={"Referer": self.served.site.url},
        )  # fmt: skip
        assert answer.ok, answer.status


def test_pages_are_live_and_stay_honest_through_every_outage(browser, served):
    """One site for the whole story: it takes seconds to start."""
    olga, otto = Person(browser, served, "olga"), Person(browser, served, "otto")
    state = olga.page.locator("#rollout-state")

    # A change by another person is shown by the stream.
    olga.open(served.rollout)
    otto.open("/rollouts/")
    olga.stream_is("live")
    otto.stream_is("live")
    expect(state).to_have_attribute("data-state", "QUEUED")
    otto.post(f"{served.rollout}cancel/", reason="not today")
    expect(state).to_have_attribute("data-state", "CANCELLED", timeout=SOON)
    expect(otto.page.locator("#rollouts")).to_contain_text("cancelled", timeout=SOON)

    # The web process ends and comes back: the page finds it again and shows what changed meanwhile.
    olga.open("/rollouts/")
    olga.stream_is("live")
    served.site.stop("web")
    olga.stream_is("polling")
    _set_state(served, "STUCK")
    served.site.start("web")
    olga.stream_is("live")
    expect(olga.page.locator("#rollouts")).to_contain_text("stuck", timeout=SOON)

    # The broker is away: the page says so to itself, asks again every few seconds, and claims nothing false.
    served.site.stop("broker")
    olga.stream_is("polling")
    _set_state(served, "REFUSED")
    expect(olga.page.locator("#rollouts")).to_contain_text("refused", timeout=SOON)
    expect(olga.page.locator("#connection")).to_be_hidden()
    served.site.start("broker")
    olga.stream_is("live")

    # Nobody's session lives on in an open page: the stream ends, asking leads to the login page, and from there back.
    otto.open("/rollouts/")
    otto.stream_is("live")
    with closing(sqlite3.connect(served.database, timeout=20)) as rows:
        rows.execute("DELETE FROM django_session")
        rows.commit()
    served.site.stop("web")  # sooner than the next check of rights
    served.site.start("web")
    expect(otto.page).to_have_url(re.compile(r"/account/login/\?next=%2Frollouts%2F"), timeout=SOON)
    expect(otto.page.get_by_label("User name")).to_be_visible()
    unexpected = [text for text in olga.wrong + otto.wrong if not re.search("ERR_|Failed to fetch", text)]
    assert not unexpected


def _set_state(served: Served, state: str) -> None:
    """Change the row without an event: nothing tells the page but its own looking."""
    with closing(sqlite3.connect(served.database, timeout=20)) as rows:
        rows.execute("UPDATE deploy_rollout SET state = ? WHERE id = (SELECT max(id) FROM deploy_rollout)", [state])
        rows.commit()
