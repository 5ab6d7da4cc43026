"""The registration door answers in a few threads that stay, and takes headers for what they are."""

import asyncio
import threading

import pytest

from fabricui.in_threads import InThreads, environ_of
from inventory.body_limit import TOO_LARGE


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


def test_many_requests_are_answered_by_the_same_few_threads():
    seen = set()
    closed = []

    class Content(list):
        def close(self):
            closed.append(1)

    def app(environ, start_response):
        seen.add(threading.get_ident())
        start_response("201 Created", [("X-One", "1")])
        return Content([environ["wsgi.input"].read(), b"!"])

    door = InThreads(app, threads=3)

    async def storm():
        return await asyncio.gather(*(ask(door) for _ in range(50)))

    assert asyncio.run(storm()) == [(201, b"{}!")] * 50
    assert len(seen) <= 3
    assert len(closed) == 50  # Django ends a request, and looks after its connection, only then


def test_a_client_that_leaves_is_not_answered():
    door = InThreads(lambda *_: pytest.fail("was asked"), threads=1)

    async def receive():
        return {"type": "http.disconnect"}

    asyncio.run(door(scope(), receive, None))


def test_it_speaks_http_only():
    with pytest.raises(ValueError, match="not websocket"):
        asyncio.run(InThreads(lambda *_: [], threads=1)({"type": "websocket"}, None, None))


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
