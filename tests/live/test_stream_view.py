"""The address of the stream, asked as an ASGI server asks: who is let in, what the answer says, what is left."""

import asyncio
import gc

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import connections

from live import channel
from live import hub as hubs
from live.hints import PROVIDER, Hint, Kind
from live.stream import Stream
from tests.live.conftest import until

pytestmark = pytest.mark.django_db


@pytest.fixture
def cookie_of(client_of):
    def cookie_of(person):
        name = django_settings.SESSION_COOKIE_NAME
        return f"{name}={client_of(person).cookies[name].value}"

    return cookie_of


@pytest.fixture(autouse=True)
def _with_broker(broker, settings):
    settings.REDIS_URL = broker.url


class Asked:
    """One request under way: what was sent, and a way to hang up."""

    def __init__(self, cookie="", query="unsure=0", method="GET"):
        headers = [(b"host", b"localhost")] + ([(b"cookie", cookie.encode())] if cookie else [])
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": "/live/", "raw_path": b"/live/", "query_string": query.encode(), "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        self.sent, self.hung_up, self._asked = [], asyncio.Event(), False
        self.task = asyncio.create_task(ASGIHandler()(scope, self._receive, self._send))

    async def _receive(self):
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b""}
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self):
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def text(self):
        return b"".join(message.get("body", b"") for message in self.sent[1:]).decode()


def play(script):
    return async_to_sync(script)()


def test_operators_and_auditors_hear_hints_and_leave_nothing_behind(olga, ada, cookie_of):
    cookies = [cookie_of(olga), cookie_of(ada)]

    async def script():
        pages = [Asked(cookie) for cookie in cookies]
        await until(lambda: all("event: here" in page.text for page in pages))
        open_ones = len(hubs.hub().streams)
        await asyncio.to_thread(channel.publish, {PROVIDER: frozenset({Hint(Kind.ROLLOUT, "r1")})})
        await until(lambda: all('[{"kind":"rollout","id":"r1"}]' in page.text for page in pages))
        for page in pages:
            page.hung_up.set()
        await asyncio.gather(*(page.task for page in pages))
        return open_ones, len(hubs.hub().streams), hubs.hub()._tasks, pages[0].headers

    open_ones, left, tasks, headers = play(script)
    assert (open_ones, left, tasks) == (2, 0, [])
    assert headers["content-type"] == "text/event-stream"
    assert "no-cache" in headers["cache-control"]
    assert headers["x-accel-buffering"] == "no"


def test_strangers_learn_nothing_and_the_anonymous_that_they_are(charlie, cookie_of):
    cookie = cookie_of(charlie)

    async def script():
        stranger, nobody, forged = Asked(cookie), Asked(), Asked("sessionid=" + "x" * 32)
        await asyncio.gather(stranger.task, nobody.task, forged.task)
        return stranger.status, [(one.status, one.text) for one in (nobody, forged)]

    gone = (200, "event: gone\ndata: {}\n\n")
    assert play(script) == (404, [gone, gone])


def test_a_tenants_person_has_a_stream_of_their_own(alice, cookie_of):
    cookie = cookie_of(alice)

    async def script():
        page = Asked(cookie)
        await until(lambda: "event: here" in page.text)
        audiences = [stream.audiences for stream in hubs.hub().streams]
        page.hung_up.set()
        await page.task
        return audiences

    assert play(script) == [{f"tenant:{alice.tenant_roles.get().tenant.public_id}"}]


def test_without_a_broker_there_is_no_stream(olga, cookie_of, settings):
    settings.REDIS_URL = ""
    cookie = cookie_of(olga)

    async def script():
        page = Asked(cookie)
        await page.task
        return page.status

    assert play(script) == 204


def test_a_full_process_takes_no_more(olga, cookie_of, monkeypatch):
    monkeypatch.setattr(hubs, "MOST_STREAMS", 1)
    cookie = cookie_of(olga)

    async def script():
        first = Asked(cookie)
        await until(lambda: "event: here" in first.text)
        second = Asked(cookie)
        await second.task
        first.hung_up.set()
        await first.task
        return second.status

    assert play(script) == 204


def test_a_server_that_cannot_stream_is_not_asked_to(olga, client_of):
    assert client_of(olga).get("/live/").status_code == 204  # WSGI
    assert client_of(olga).post("/live/").status_code == 405


def test_the_database_is_let_go_of_while_a_stream_is_open(olga, cookie_of, monkeypatch):
    let_go, let_go_of_the_database = [], hubs.let_go_of_the_database
    monkeypatch.setattr("live.views.let_go_of_the_database", lambda: let_go.append(1) or let_go_of_the_database())
    cookie = cookie_of(olga)

    async def script():
        page = Asked(cookie, query="unsure=nonsense")
        await until(lambda: "event: all" in page.text)
        page.hung_up.set()
        await page.task

    play(script)
    assert let_go == [1]
    connections["default"].ensure_connection()  # that of the test itself is in a transaction, and was left alone


def test_pages_know_the_address_only_where_there_is_a_stream(olga, client_of, settings):
    said = b'<meta name="live-stream" content="/live/">'
    assert said in client_of(olga).get("/").content
    settings.REDIS_URL = ""
    assert said not in client_of(olga).get("/").content


def test_no_object_is_left_of_a_stream(olga, cookie_of):
    cookie = cookie_of(olga)

    def objects():
        gc.collect()
        return [type(one).__name__ for one in gc.get_objects() if type(one) in (Stream, ASGIRequest, Asked)]

    async def script():
        before = len(objects())
        pages = [Asked(cookie) for _ in range(15)]
        await until(lambda: all("event: here" in page.text for page in pages))
        while_open = len(objects()) - before
        for page in pages:
            page.hung_up.set()
        await asyncio.gather(*(page.task for page in pages))
        pages.clear()
        return while_open, len(objects()) - before

    while_open, left = play(script)
    assert while_open >= 30
    assert left <= 2  # names of this test
