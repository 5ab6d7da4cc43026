"""Never more than 1 MiB of a body is taken in, whatever the sender says about it."""

import asyncio

import pytest

from inventory import body_limit
from inventory.body_limit import MOST_BYTES, TOO_LARGE, BodyLimit


def ask(*messages, length=None):
    """What the application behind the limit got, what was sent, and how many messages were taken in."""
    coming, got, sent = list(messages), {}, []

    async def app(scope, receive, send):
        got.update(scope=scope, message=await receive())

    async def receive():
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    async def send(message):
        sent.append(message)

    headers = [] if length is None else [(b"content-length", length)]
    asyncio.run(BodyLimit(app)({"type": "http", "headers": headers}, receive, send))
    return got, sent, len(messages) - len(coming)


def chunk(size, more=True):
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


def test_an_honest_body_is_handed_on_whole():
    got, _, _ = ask(chunk(3), chunk(MOST_BYTES - 3, more=False))
    assert len(got["message"]["body"]) == MOST_BYTES
    assert TOO_LARGE not in got["scope"]


def test_a_stated_length_is_believed_when_it_is_too_large():
    got, _, taken = ask(chunk(10), length=b"50000000")
    assert taken == 0
    assert got["scope"][TOO_LARGE]
    assert got["message"]["body"] == b""
    assert got["scope"]["headers"] == []


@pytest.mark.parametrize("length", [None, b"10", b"nonsense", b"9" * 40])
def test_a_body_that_turns_out_too_large_is_dropped_there(length):
    got, _, taken = ask(*[chunk(300_000)] * 10, length=length)
    assert got["scope"][TOO_LARGE]
    assert got["message"]["body"] == b""
    assert taken <= 4


def test_a_body_that_never_ends_is_given_up(monkeypatch):
    monkeypatch.setattr(body_limit, "BODY_DEADLINE_S", 0.05)
    got, sent, _ = ask(chunk(10))
    assert got == {}
    assert sent[0]["status"] == 408


def test_bodies_are_bounded_together_and_who_comes_beyond_is_told_to_come_again(monkeypatch, caplog):
    monkeypatch.setattr(body_limit, "MOST_HELD", 250)
    sent: dict[str, list] = {"first": [], "second": [], "third": [], "fourth": []}

    async def storm():
        answered = asyncio.Event()

        async def app(scope, receive, send):
            await receive()
            await answered.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        door = BodyLimit(app)

        async def post(name):
            async def receive():
                return chunk(100, more=False)

            async def send(message):
                sent[name].append(message)

            await door({"type": "http", "headers": []}, receive, send)

        waiting = [asyncio.ensure_future(post(name)) for name in ("first", "second")]
        await asyncio.sleep(0)
        await asyncio.wait_for(post("third"), timeout=5)  # at once: it waits for nobody
        assert not sent["first"]
        answered.set()
        await asyncio.gather(*waiting)
        await post("fourth")

    asyncio.run(storm())
    assert [messages[0]["status"] for messages in sent.values()] == [200, 200, 503, 200]
    assert (b"retry-after", b"10") in sent["third"][0]["headers"]
    assert b"comes again by itself" in sent["third"][1]["body"]
    assert "told to come again" in caplog.text


def test_a_sender_that_leaves_asks_nothing():
    got, sent, _ = ask(chunk(10), {"type": "http.disconnect"})
    assert (got, sent) == ({}, [])
