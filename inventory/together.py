"""Together: what several requests want at the same time is done once for all of them.

A boot storm spends its time on statements and commits. The door therefore answers what waits as one group
(`fabricui/in_groups.py`): each request is a conversation, a generator that yields what it wants of the database and is
sent the answer. Conversations go on in step, and what they want alike is worked on in one transaction.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connection

from audit.request_id import acting_for, current_address, current_request_id
from inventory.races import is_waiting_over, settle

log = logging.getLogger(__name__)

MOST: Final = 48  # worked on at once; more would only make the first ones wait


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """One thing that a conversation wants, what that touches, and who can do it for many at once.

    `work` answers in order, with an exception in the place of who shall get it; what it raises, everybody gets. No two
    wishes that share a name are worked on together, and of those the one that came first is first.
    """

    work: Callable[[Sequence[Any]], Sequence[Any]]
    asked: Any
    names: frozenset[object]


type Steps[Answer] = Generator[Wish, Any, Answer]


class _Conversation:
    """One conversation and what becomes of it."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self.wish: Wish | None = None  # what it waits for
        self.end: Any = None  # its answer, or the exception that ended it

    def go_on(self, answer: Any) -> None:
        """Tell it what became of its wish; an exception is raised in it."""
        try:
            is_bad = isinstance(answer, Exception)
            self.wish = self._steps.throw(answer) if is_bad else self._steps.send(answer)
        except StopIteration as stop:
            self.wish, self.end = None, stop.value
        except Exception as error:
            self.wish, self.end = None, error


def answer_all(conversations: Iterable[Steps[Any]]) -> list[Any]:
    """Let all `conversations` come to their end; give the answer of each, or the exception that ended it."""
    everyone = [_Conversation(steps) for steps in conversations]
    for one in everyone:
        one.go_on(None)
    while waiting := [(one, one.wish) for one in everyone if one.wish is not None]:
        for some in _parts(waiting):
            for (one, _), told in zip(some, _worked([wish for _, wish in some]), strict=True):
                one.go_on(told)
    return [one.end for one in everyone]


def answer[Answer](steps: Steps[Answer]) -> Answer:
    """Let one conversation come to its end alone; raises what it raises."""
    found: Answer | Exception = answer_all([steps])[0]
    if isinstance(found, Exception):
        raise found
    return found


def in_the_name_of_now[Answer](steps: Steps[Answer]) -> Steps[Answer]:
    """`steps`, taken under the request and address of this moment, whoever takes them and when."""
    return _named(steps, current_request_id(), current_address())


def _named[Answer](steps: Steps[Answer], request: str, address: str) -> Steps[Answer]:
    told: Any = None
    while True:
        with acting_for(request, address):
            try:
                wish = steps.throw(told) if isinstance(told, Exception) else steps.send(told)
            except StopIteration as stop:
                end: Answer = stop.value
                return end
        try:
            told = yield wish
        except Exception as error:
            told = error


type _Waiting = tuple[_Conversation, Wish]


def _parts(waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
    """`waiting` in parts that can be worked on together, of those with a name in common the first one first."""
    kinds: dict[object, list[_Waiting]] = {}
    for one in waiting:
        kinds.setdefault(one[1].work, []).append(one)
    for line in kinds.values():
        while line:
            taken: list[_Waiting] = []
            left: list[_Waiting] = []
            touched: set[object] = set()
            for one in line:
                names = one[1].names
                (taken if len(taken) < MOST and touched.isdisjoint(names) else left).append(one)
                touched |= names  # whoever comes after one that is left over stays behind it
            yield taken
            line = left


def _worked(wishes: Sequence[Wish]) -> Sequence[Any]:
    try:
        answers = wishes[0].work([wish.asked for wish in wishes])
    except Exception as error:
        return [error] * len(wishes)
    if len(answers) != len(wishes):
        return [RuntimeError(f"{len(answers)} answers to {len(wishes)} wishes")] * len(wishes)
    return answers


def all_or_each[Asked, Answer](
    change: Callable[[Sequence[Asked]], Sequence[Answer | Exception]], asked: Sequence[Asked]
) -> Sequence[Answer | Exception]:
    """An answer of `change` for each of `asked`, worked on in one transaction.

    Where one of them stops that transaction, each has one of its own: the others get through, and the one that cannot
    be written gets its exception for an answer. A database that is away, or a lock that does not come, is nobody's
    fault: then all are tried once more on a new connection, never each alone, and have the exception for an answer.
    """
    for _ in range(2):
        try:
            return settle(lambda: change(asked))
        except (OperationalError, InterfaceError) as error:
            away: Exception = error
            connection.close_if_unusable_or_obsolete()  # it may have been the connection that broke
            if is_waiting_over(error):
                break
        except Exception as error:
            if len(asked) == 1:
                return [error]
            log.warning("%d cannot be written together (%s); each is tried alone", len(asked), error)
            connection.close_if_unusable_or_obsolete()
            return _each(change, asked)
    log.warning("the database does not answer %d requests: %s", len(asked), str(away).strip())
    return [away] * len(asked)


def _each[Asked, Answer](
    change: Callable[[Sequence[Asked]], Sequence[Answer | Exception]], asked: Sequence[Asked]
) -> Sequence[Answer | Exception]:
    answers: list[Answer | Exception] = []
    for one in asked:
        try:
            answers.extend(settle(lambda one=one: change([one])))  # type: ignore[misc]
        except Exception as error:
            answers.append(error)
            connection.close_if_unusable_or_obsolete()
    return answers
