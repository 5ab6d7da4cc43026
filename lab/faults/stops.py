"""In a worker of the lab: stop at named moments, ask the lab, go on. The only place where product code is patched.

Everything else in such a worker is the product's own: the task, the story, the SSH connections.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import wraps
from multiprocessing.connection import Connection
from typing import Any

from lab.faults.points import Point

VERBS = ("stage", "place", "reload", "barrier", "read_tables")


class Stops:
    """The moments that are still to come, and the line to the lab.

    `hosts` says which manager host is meant by `master` and `standby`. The answer to a stop is the number of seconds by
    which this worker's clock jumps from now on.
    """

    def __init__(self, line: "Connection[Any, Any]", points: Sequence[Point], hosts: dict[str, str]) -> None:
        self._line = line
        self._points = list(points)
        self._hosts = hosts
        self._lock = threading.Lock()
        self.state = ""
        self.shift = timedelta()

    def reach(self, call: str, *, when: str, host: str = "", to: str = "") -> None:
        """Stop here if this is the next moment to stop at."""
        with self._lock:
            here = next((point for point in self._points[:1] if self._is(point, call, when, host, to)), None)
            if here is None:
                return
            self._points.remove(here)
            self._line.send(here)
            self.shift += timedelta(seconds=self._line.recv())

    def _is(self, point: Point, call: str, when: str, host: str, to: str) -> bool:
        wanted = self._hosts.get(point.host, "")
        return (point.state, point.call, point.when, point.to) == (self.state, call, when, to) and wanted in ("", host)

    def install(self) -> None:
        """Patch the host verbs and the transitions of this process."""
        from deploy.story import Story
        from remote.manager_host import ManagerHost

        for verb in VERBS:
            setattr(ManagerHost, verb, self._around_verb(verb, getattr(ManagerHost, verb)))
        advance, take_up = Story.advance, Story.take_up.__func__  # type: ignore[attr-defined]

        def advance_and_stop(story: Story, to: Any, *words: Any, **columns: Any) -> None:
            self.reach("advance", when="before", to=str(to))
            advance(story, to, *words, **columns)
            self.state = str(story.state)
            self.reach("advance", when="after", to=str(to))

        def take_up_and_note(
            cls: type[Story], /, rollout: Any, *, clock: Callable[[], datetime], **options: Any
        ) -> Story | None:
            story: Story | None = take_up(cls, rollout, clock=lambda: clock() + self.shift, **options)
            self.state = str(story.state) if story is not None else ""
            return story

        setattr(Story, "advance", advance_and_stop)  # noqa: B010  a patch, which the type checker need not like
        setattr(Story, "take_up", classmethod(take_up_and_note))  # noqa: B010

    def _around_verb(self, verb: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def stopping(host: Any, *arguments: Any, **options: Any) -> Any:
            self.reach(verb, when="before", host=host.name)
            answer = call(host, *arguments, **options)
            self.reach(verb, when="after", host=host.name)
            return answer

        return stopping
