"""The registration door answers what waits as one group, in threads that stay, and takes headers for what they are."""

import asyncio
import json
import threading

import pytest
from django.db import InterfaceError, OperationalError

from audit.errors import TrailUnwritable
from audit.models import Event
from fabricui import in_groups
from fabricui.in_groups import ByDjango, InGroups, environ_of
from inventory import register
from inventory.body_limit import TOO_LARGE
from inventory.operations import create_subnet
from inventory.register import Unfinished
from inventory.together import MOST, Wish
from tests.inventory.reports import GUID_A, OLGA, enrolled, port, said


def scope(*headers, **changes):
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return {
        "type": "http", "method": "POST", "path": "/register/v1/enr\u00f6l", "query_string": b"a=b", "headers": pairs,
        "client": ("10.1.2.3", 4711), "server": ("10.0.0.1", 8001), "scheme": "https", "http_version": "1.1", **changes,
    }  # fmt: skip


async def ask(app, body=b"{}", **changes):
    """The status and content that `app` answers."""
    messages = [
        {"type": "http.request", "body": body[:1], "more_body": True},
        {"type": "http.request", "body": body[1:]},
    ]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    await app(scope(**changes), receive, send)
    return sent[0]["status"], sent[1]["body"]


class Answers:
    """Answers each request with its body; the first time it waits until the others are in line."""

    def __init__(self):
        self.groups, self.threads, self.may_go = [], set(), threading.Event()

    def __call__(self, environs):
        bodies = [environ["wsgi.input"].read() for environ in environs]
        self.groups.append(len(bodies))
        self.threads.add(threading.get_ident())
        assert self.may_go.wait(timeout=20)
        if b"bad" in bodies:
            raise ZeroDivisionError
        return [(201, [(b"x-one", b"1")], body) for body in bodies]


async def in_line(door, count):
    """Until the door works on one request and `count` wait."""
    async with asyncio.timeout(20):
        while len(door._waiting) < count or not door.answers.groups:
            await asyncio.sleep(0.001)


def test_one_alone_is_answered_at_once_and_who_comes_meanwhile_together():
    answers = Answers()
    door = InGroups(answers, threads=1)

    async def storm():
        first = asyncio.ensure_future(ask(door, b"{0}"))
        while not answers.groups:
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(ask(door, b"{%d}" % number)) for number in range(1, MOST + 3)]
        await in_line(door, MOST + 2)
        answers.may_go.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(storm()) == [(201, b"{%d}" % number) for number in range(MOST + 3)]
    assert answers.groups == [1, MOST, 2]
    assert len(answers.threads) == 1


def test_a_group_that_cannot_be_answered_is_told_so_and_the_next_one_is_served():
    answers = Answers()
    answers.may_go.set()
    door = InGroups(answers, threads=2)

    async def two():
        return [await ask(door, b"bad"), await ask(door, b"good")]

    (status, told), good = asyncio.run(two())
    assert (status, b"FabricUI could not answer" in told) == (500, True)
    assert good == (201, b"good")


def test_who_leaves_while_it_waits_takes_nobody_along():
    answers = Answers()
    door = InGroups(answers, threads=1)

    async def one_leaves():
        first, second = (asyncio.ensure_future(ask(door, body)) for body in (b"{1}", b"{2}"))
        await in_line(door, 0)
        first.cancel()
        answers.may_go.set()
        return await second

    assert asyncio.run(one_leaves()) == (201, b"{2}")


def test_a_client_that_leaves_is_not_answered():
    door = InGroups(lambda _: pytest.fail("was asked"), threads=1)

    async def receive():
        return {"type": "http.disconnect"}

    asyncio.run(door(scope(), receive, None))


def test_it_speaks_http_only():
    with pytest.raises(ValueError, match="not websocket"):
        asyncio.run(InGroups(lambda _: [], threads=1)({"type": "websocket"}, None, None))


@pytest.mark.django_db
@pytest.mark.urls("fabricui.register_urls")
def test_django_answers_a_group_with_its_middleware_and_one_failure_is_its_own(monkeypatch):
    def environ(path, value, secret=""):
        headers = [("content-type", "application/json"), ("authorization", f"Bearer {secret}"), ("host", "localhost")]
        pairs = [(name.encode(), text.encode()) for name, text in headers]
        return environ_of(scope() | {"path": path, "client": ("127.0.0.1", 1), "headers": pairs}, value)

    monkeypatch.setattr(in_groups, "close_old_connections", lambda: None)  # the test holds a transaction open
    subnet = create_subnet(name="lab", actor=OLGA)
    _, secret = enrolled(subnet, "srv-1")
    broken, other_secret = enrolled(subnet, "srv-2")
    known = register.register_with_others

    def breaks_for_one(*, server, report):
        if server == broken:
            raise ZeroDivisionError
        return known(server=server, report=report)

    monkeypatch.setattr(register, "register_with_others", breaks_for_one)
    body = json.dumps(said(port(GUID_A), hostname="srv-1")).encode()
    told = ByDjango()(
        [
            environ("/register/v1/reports", body, secret),
            environ("/register/v1/reports", body, other_secret),
            environ("/register/v1/reports", body, "nobody's"),
            environ("/register/v1/elsewhere", b"{}"),
        ]
    )
    assert [status for status, _, _ in told] == [200, 500, 401, 404]
    assert json.loads(told[0][2])["ports"][0]["outcome"] == "new"
    for _, pairs, content in told[:3]:
        headers = dict(pairs)
        assert headers[b"content-length"] == str(len(content)).encode()
        assert headers[b"content-type"] == b"application/json"
        assert headers[b"x-content-type-options"] == b"nosniff"
    requests = [dict(pairs)[b"x-request-id"].decode() for _, pairs, _ in told]
    assert len(set(requests)) == 4
    assert Event.objects.get(action="inventory:server:register").request_id == requests[0]
    assert dict(told[2][1])[b"www-authenticate"] == b"Bearer"


@pytest.mark.parametrize(
    "error", [OperationalError("gone"), InterfaceError("gone"), TrailUnwritable("the disk is full")]
)
def test_a_server_is_told_to_come_again_when_the_fault_is_ours_and_passes(monkeypatch, caplog, error):
    def raising(asked):
        raise error

    def steps():
        yield Wish(raising, None, frozenset())

    monkeypatch.setattr(in_groups, "close_old_connections", lambda: None)
    answers = ByDjango()
    monkeypatch.setattr(answers.handler, "get_response", lambda request: Unfinished(steps()))
    monkeypatch.setattr(Unfinished, "close", lambda self: None)  # it would ask every database
    [(status, headers, body)] = answers([environ_of(scope(), b"{}")])
    assert (status, dict(headers)[b"retry-after"]) == (503, b"10")
    assert json.loads(body)["error"] == "busy"
    assert f"told to come again: {error}" in caplog.text
    assert "Traceback" not in caplog.text  # thousands of them would hide everything else


def test_headers_are_taken_for_what_they_are():
    found = environ_of(
        scope(
            ("content-type", "application/json"), ("content-length", "999"), ("x-forwarded-for", "1.1.1.1"),
            ("x_forwarded_for", "10.0.0.1"), ("x-forwarded-for", "2.2.2.2"),
        ),
        b"abc",
    )  # fmt: skip
    assert found["HTTP_X_FORWARDED_FOR"] == "1.1.1.1,2.2.2.2"  # the one with underscores names nothing
    assert (found["CONTENT_TYPE"], found["CONTENT_LENGTH"]) == ("application/json", "3")
    assert (found["REMOTE_ADDR"], found["wsgi.url_scheme"]) == ("10.1.2.3", "https")
    assert found["PATH_INFO"].encode("latin-1").decode() == "/register/v1/enr\u00f6l"


def test_a_unix_socket_has_no_address_and_a_body_too_large_no_length():
    found = environ_of(scope(client=None, server=("/run/door.sock", None), **{TOO_LARGE: True}), b"")
    assert (found["REMOTE_ADDR"], found["SERVER_PORT"], found[TOO_LARGE]) == ("", "0", True)
    assert "CONTENT_LENGTH" not in found
