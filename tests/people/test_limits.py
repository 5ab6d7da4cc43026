"""Who is told to wait, and who is not: limits are keyed by the person or the address that they are about."""

import asyncio
import json
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from asgiref.sync import async_to_sync
from django.core.asgi import get_asgi_application
from django.test import Client
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from audit.actions import Action
from audit.models import Event
from people import limits
from tests.api.callers import Caller, is_problem
from tests.conftest import PASSWORD
from tests.people.codes import code, set_up

pytestmark = pytest.mark.django_db
LOGIN, WRONG = "/account/login/", {"login": "olga", "password": "not the password at all"}
PROXY = "127.0.0.1"  # what uvicorn trusts, and what the unit in docs/systemd names


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The middle of a minute, which lasts as long as the test."""
    now = datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)
    monkeypatch.setattr(limits.timezone, "now", lambda: now)


def over_the_wire(verb, path, peer, *, forwarded="", token="", form=None):
    """One request as uvicorn hands it on: status, headers, body."""
    body = urlencode(form or {}).encode()
    headers = [(b"host", b"testserver"), (b"content-type", b"application/x-www-form-urlencoded")]
    headers += [(b"content-length", str(len(body)).encode())]
    headers += [(b"x-forwarded-for", forwarded.encode())] * bool(forwarded)
    headers += [(b"authorization", f"Token {token}".encode())] * bool(token)
    scope = {
        "type": "http", "method": verb, "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "http_version": "1.1", "headers": headers, "client": (peer, 4711), "server": ("testserver", 80),
    }  # fmt: skip
    messages, told = [{"type": "http.request", "body": body}], []

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()  # nobody hangs up

    async def send(message):
        told.append(message)

    async def asked():
        await ProxyHeadersMiddleware(get_asgi_application(), trusted_hosts=PROXY)(scope, receive, send)

    async_to_sync(asked)()
    answered = {name.decode().lower(): value.decode() for name, value in told[0]["headers"]}
    return told[0]["status"], answered, b"".join(message.get("body", b"") for message in told[1:])


@pytest.fixture
def wire(monkeypatch):
    """Requests from peers; the token of the form is another test's business, and async views want a thread each."""
    monkeypatch.setattr("django.middleware.csrf.CsrfViewMiddleware.process_view", lambda *_: None)
    return over_the_wire


def guess(wire, peer, number, forwarded=""):
    form = {"login": f"nobody-{number}", "password": "not the password at all"}
    return wire("POST", LOGIN, peer, forwarded=forwarded, form=form)[0]


def test_behind_the_proxy_each_client_is_a_source_of_its_own(wire):
    assert [guess(wire, PROXY, number, "198.51.100.7") for number in range(11)] == [200] * 10 + [429]
    assert guess(wire, PROXY, 11, "198.51.100.8") == 200
    # What the first client writes there itself stands before what the proxy adds, and is not believed.
    assert guess(wire, PROXY, 12, "203.0.113.1, 198.51.100.7") == 429
    assert set(Event.objects.values_list("actor_key", flat=True)) == {"198.51.100.7", "198.51.100.8"}


def test_what_a_client_that_is_no_proxy_writes_makes_no_new_source(wire):
    told = [guess(wire, "203.0.113.9", number, f"198.51.100.{number}") for number in range(11)]
    assert told == [200] * 10 + [429]
    assert set(Event.objects.values_list("actor_key", flat=True)) == {"203.0.113.9"}


def test_tokens_that_are_none_from_one_address_have_to_wait_and_nobody_else(wire, olga, monkeypatch):
    monkeypatch.setattr(limits, "REFUSALS_A_MINUTE", 3)
    good = Caller(olga).headers["Authorization"].removeprefix("Token ")

    def ask(peer, token, forwarded=""):
        return wire("GET", "/api/v1/servers", peer, forwarded=forwarded, token=token)

    assert [ask("203.0.113.9", "fui_none", f"198.51.100.{n}")[0] for n in range(4)] == [401, 401, 401, 429]
    status, headers, body = ask("203.0.113.9", "fui_none")
    assert (status, headers["retry-after"], headers["content-type"]) == (429, "40", "application/problem+json")
    assert json.loads(body)["code"] == "too_many_requests"
    assert ask("203.0.113.9", good)[0] == 200  # who shares the address and has a token
    assert ask("203.0.113.10", "fui_none")[0] == 401
    assert [ask(PROXY, "fui_none", "198.51.100.7")[0] for _ in range(4)] == [401, 401, 401, 429]
    assert ask(PROXY, "fui_none", "198.51.100.8")[0] == 401


def test_one_persons_requests_count_together_and_are_nobody_elses(olga, ada, monkeypatch):
    monkeypatch.setattr(limits, "REQUESTS_A_MINUTE", 2)
    one, another = Caller(olga), Caller(olga, name="second")
    assert [caller.get("servers").status_code for caller in (one, another)] == [200, 200]
    answer = another.get("servers")
    is_problem(answer, 429, "too_many_requests")
    assert answer["Retry-After"] == "40"
    assert Caller(ada).get("servers").status_code == 200
    later = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
    monkeypatch.setattr(limits.timezone, "now", lambda: later)
    assert another.get("servers").status_code == 200


def test_without_a_cache_the_api_still_answers(olga, monkeypatch):
    def broken(*_, **__):
        raise ConnectionError("no cache")

    caller = Caller(olga)
    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.incr", broken)
    assert caller.get("servers").status_code == 200


def test_wrong_passwords_from_elsewhere_keep_nobody_from_their_own_desk(olga):
    right, desk, elsewhere = {"login": "olga", "password": PASSWORD}, "192.0.2.7", "203.0.113.9"
    assert Client(REMOTE_ADDR=desk).post(LOGIN, right).status_code == 302
    for _ in range(6):
        last = Client(REMOTE_ADDR=elsewhere).post(LOGIN, WRONG)
    assert last.status_code == 429
    assert Client(REMOTE_ADDR="203.0.113.10").post(LOGIN, right).status_code == 429  # the account, from anywhere new
    assert Client(REMOTE_ADDR=desk).post(LOGIN, right).status_code == 302
    for _ in range(6):
        last = Client(REMOTE_ADDR=desk).post(LOGIN, WRONG)
    assert last.status_code == 429  # who sits there guesses no more often


def test_whoever_tries_passwords_in_an_open_session_is_told_to_wait(olga, client):
    client.force_login(olga)
    wrong = {"oldpassword": "not this", "password1": "a-new-and-long-one", "password2": "a-new-and-long-one"}
    told = [client.post("/account/password/", wrong).status_code for _ in range(5)]
    assert told == [200] * 5
    response = client.post("/account/password/", wrong | {"oldpassword": PASSWORD})
    assert (response.status_code, response["Retry-After"]) == (429, "60")
    page = response.content.decode()
    assert "Nothing was done. Wait a minute, then try again." in page
    assert "your address" not in page  # it is theirs alone
    olga.refresh_from_db()
    assert olga.check_password(PASSWORD)


@pytest.fixture
def away(settings):
    """The cache is a broker that does not answer."""

    def away():
        dead = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
        settings.CACHES = {"default": dead}

    return away


@pytest.mark.parametrize("tried", [{"login": "olga", "password": PASSWORD}, WRONG])
def test_while_attempts_are_not_counted_nobody_is_let_in_and_is_told_why(olga, client, away, tried):
    away()
    assert client.get(LOGIN).status_code == 200
    response = client.post(LOGIN, tried)
    assert (response.status_code, response["Retry-After"]) == (503, "30")
    assert "counted by the broker" in response.content.decode()
    assert "_auth_user_id" not in client.session


def test_while_codes_are_not_counted_none_is_taken(olga, client, away):
    set_up(olga)
    client.post(LOGIN, {"login": "olga", "password": PASSWORD})
    away()
    response = client.post("/account/login/code/", {"code": code()})
    assert (response.status_code, response["Retry-After"]) == (503, "30")
    assert "_auth_user_id" not in client.session


def test_without_a_cache_no_address_is_known(monkeypatch):
    def broken(*_, **__):
        raise ConnectionError("no cache")

    limits.remember_login(username="olga", address="192.0.2.7")
    assert limits.has_signed_in_from(username="olga", address="192.0.2.7")
    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.get", broken)
    assert not limits.has_signed_in_from(username="olga", address="192.0.2.7")


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8::7", "2001:db8::/64"),
        ("2001:db8::ffff:7", "2001:db8::/64"), ("fe80::1%eth0", "fe80::/64"), ("", ""), ("unix:", "unix:"),
    ],
)  # fmt: skip
def test_a_source_is_an_address_or_a_network_of_one_machine(address, source):
    assert limits.network_of(address) == source


def test_a_refusal_is_one_event_a_minute_for_a_whole_ipv6_network():
    for number in range(5):
        client = Client(REMOTE_ADDR=f"2001:db8::{number}")
        client.get("/api/v1/servers", headers={"Authorization": "Token fui_none"})
    assert Event.objects.filter(action=Action.TOKEN_REFUSED).count() == 1
