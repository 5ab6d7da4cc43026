"""The web door reads no more than 1 MiB of what is sent to the API, and no more than 4 MiB of what is sent to pages."""

import asyncio
import json

import pytest

from fabricui.api_body import MOST_OF_A_PAGE, ApiBodyLimit
from inventory.labels import MOST_BYTES


def send(path, chunks, headers=()):
    """Play a request of several chunks; what was answered, how many chunks were read, and what got through."""
    sent, read, through = [], [], []

    async def app(scope, receive, send):
        message = await receive()
        while message.get("more_body"):
            message = {**(further := await receive()), "body": message["body"] + further.get("body", b"")}
        if message["type"] == "http.disconnect":
            return  # as Django does
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


@pytest.mark.parametrize("path", ["/labels/", "/account/login/", "/healthz"])
@pytest.mark.parametrize(
    ("chunks", "headers", "most_read"),
    [([b"x" * 1_000_000] * 100, (), 5), ([b"x"], [(b"content-length", b"9999999")], 0)],
)
def test_nobody_fills_the_disk_by_a_page(path, chunks, headers, most_read):
    sent, read, through = send(path, chunks, headers)
    assert (sent[0]["status"], through) == (413, [])
    assert read <= most_read


def test_a_file_of_labels_goes_through_whole():
    assert send("/labels/", [b"x" * 1_000_000, b"y" * 1_000_000])[2] == [b"x" * 1_000_000 + b"y" * 1_000_000]
    assert MOST_BYTES < MOST_OF_A_PAGE / 1.5
