"""The web door reads no more than 1 MiB of what is sent to the API, and leaves pages alone."""

import asyncio
import json

import pytest

from fabricui.api_body import ApiBodyLimit


def send(path, chunks, headers=()):
    """Play a request of several chunks; what was answered, how many chunks were read, and what got through."""
    sent, read, through = [], [], []

    async def app(scope, receive, send):
        message = await receive()
        through.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        read.append(1)
        last = len(read) >= len(chunks)
        return {"type": "http.request", "body": chunks[min(len(read), len(chunks)) - 1], "more_body": not last}

    async def answer(message):
        sent.append(message)

    scope = {"type": "http", "path": path, "headers": list(headers)}
    asyncio.run(ApiBodyLimit(app)(scope, receive, answer))
    return sent, len(read), through


@pytest.mark.parametrize(
    ("chunks", "headers", "most_read"),
    [([b"x" * 400_000] * 100, (), 3), ([b"x"], [(b"content-length", b"9999999")], 0)],
)
def test_a_body_that_is_too_large_is_not_read_to_its_end(chunks, headers, most_read):
    sent, read, through = send("/api/v1/partitions", chunks, headers)
    assert (sent[0]["status"], through) == (413, [])
    assert read <= most_read
    assert json.loads(sent[1]["body"])["code"] == "body_too_large"


def test_a_body_that_is_not_goes_through_whole():
    sent, _, through = send("/api/v1/partitions", [b'{"name": ', b'"x"}'])
    assert (sent[0]["status"], through) == (200, [b'{"name": "x"}'])


def test_pages_are_left_alone():
    assert send("/labels/", [b"x" * 2_000_000])[2] == [b"x" * 2_000_000]
