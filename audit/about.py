"""Which rollout the code is at work on, for the lines of the log: in a context variable, as the request is.

Nothing of it reaches an event: `record()` is told by its caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_rollout: ContextVar[str] = ContextVar("rollout", default="")


def current_rollout() -> str:
    """Give the public id of the rollout that is being worked on; "" outside of one."""
    return _rollout.get()


@contextmanager
def rollout(public_id: str) -> Iterator[None]:
    """Let every line that is logged inside name the rollout."""
    token = _rollout.set(public_id)
    try:
        yield
    finally:
        _rollout.reset(token)
