"""Fixtures of the room live: a real broker, and a way to play with a hub on an event loop of its own."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabricui import broker as brokers


class Broker:
    """A private broker that a test may end and start again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fui-broker-"))
        self.chosen = brokers.choose(redis_url="", directory=self.folder)
        self.url = self.chosen.url
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self.chosen.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            with socket.socket(socket.AF_UNIX) as asked:
                if asked.connect_ex(self.url.removeprefix("unix://")) == 0:
                    return
            assert time.monotonic() < deadline, "the broker does not listen"
            time.sleep(0.01)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A running broker."""
    found = Broker()
    found.start()
    yield found
    found.stop()
    shutil.rmtree(found.folder, ignore_errors=True)


class Page:
    """What one open page hears."""

    def __init__(self, hub, audiences, session_key="k", unsure_s=0.0) -> None:
        self.heard: list[str] = []
        self.is_over = False
        self.stream = hub.listen(session_key, frozenset(audiences), unsure_s=unsure_s)
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self.stream:
            self.heard.append(message.decode())
        self.is_over = True

    @property
    def events(self) -> list[str]:
        return [text.partition("event: ")[2].partition("\n")[0] for text in self.heard]

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.stream.aclose()


async def until(holds: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.005)
