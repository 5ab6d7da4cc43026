"""Together: many threads ask the same thing, and one of them does it for all that wait.

A boot storm spends its time on statements and commits. Here whoever comes first works for everybody who came meanwhile,
in one transaction; nobody waits on purpose, so a caller who is alone is served at once and alone.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final

from django.db import connection

from inventory.races import settle

log = logging.getLogger(__name__)

MOST: Final = 24  # asked at once; more would only make the first ones wait


class _Waiting[Asked, Answer]:
    """One caller: what it asks, what that touches, and what became of it."""

    def __init__(self, asked: Asked, names: Set[object]) -> None:
        self.asked, self.names = asked, names
        self.woken = threading.Event()  # it has its answer, or it is the next to work
        self.is_done = False
        self.answer: Answer
        self.error: BaseException | None = None


class Together[Asked, Answer]:
    """Call `work` with what several threads ask at the same time; each gets its own answer, or its own exception.

    `work` answers in order, with an exception in the place of who shall get it; what it raises, everybody gets.
    `names` says what an asked thing touches: no two that share a name are worked on together, and of those the one
    that came first is first.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Sequence[Answer | Exception]],
        *,
        names: Callable[[Asked], Iterable[object]],
    ) -> None:
        self._work, self._names = work, names
        self._lock = threading.Lock()
        self._queue: deque[_Waiting[Asked, Answer]] = deque()
        self._is_led = False

    def __call__(self, asked: Asked) -> Answer:
        """The answer to `asked`, worked out together with whatever else is waiting."""
        mine = _Waiting[Asked, Answer](asked, set(self._names(asked)))
        with self._lock:
            self._queue.append(mine)
            leads, self._is_led = not self._is_led, True
        if not leads:
            mine.woken.wait()
        if not mine.is_done:  # so it is this thread's turn
            try:
                while not mine.is_done:
                    self._serve(self._taken())
            finally:
                self._hand_on()
        if mine.error is not None:
            raise mine.error
        return mine.answer

    def _taken(self) -> list[_Waiting[Asked, Answer]]:
        """The first of those that wait, and who else can be worked for beside it; never an empty list for a leader."""
        with self._lock:
            taken: list[_Waiting[Asked, Answer]] = []
            left: deque[_Waiting[Asked, Answer]] = deque()
            touched: set[object] = set()
            for waiting in self._queue:
                if len(taken) < MOST and touched.isdisjoint(waiting.names):
                    taken.append(waiting)
                else:
                    left.append(waiting)
                touched |= waiting.names  # whoever comes after one that is left over stays behind it
            self._queue = left
        return taken

    def _serve(self, taken: Sequence[_Waiting[Asked, Answer]]) -> None:
        try:
            for waiting, answer in zip(taken, self._work([one.asked for one in taken]), strict=True):
                if isinstance(answer, Exception):
                    waiting.error = answer
                else:
                    waiting.answer = answer
        except BaseException as error:
            for waiting in taken:
                waiting.error = error
        for waiting in taken:
            waiting.is_done = True
            waiting.woken.set()

    def _hand_on(self) -> None:
        """Let the next one that waits work, if anybody does."""
        with self._lock:
            if self._queue:
                self._queue[0].woken.set()
            else:
                self._is_led = False


def all_or_each[Asked, Answer](
    change: Callable[[Sequence[Asked]], Sequence[Answer | Exception]], asked: Sequence[Asked]
) -> Sequence[Answer | Exception]:
    """An answer of `change` for each of `asked`, worked on in one transaction.

    Where one of them stops that transaction, each has one of its own: the others get through, and the one that cannot
    be written gets its exception for an answer.
    """
    if len(asked) > 1:
        try:
            return settle(lambda: change(asked))
        except Exception as error:
            log.warning("%d cannot be written together (%s); each is tried alone", len(asked), error)
            connection.close_if_unusable_or_obsolete()  # it may have been the connection that broke
    answers: list[Answer | Exception] = []
    for one in asked:
        try:
            answers.extend(settle(lambda one=one: change([one])))  # type: ignore[misc]
        except Exception as error:
            answers.append(error)
            connection.close_if_unusable_or_obsolete()
    return answers
