"""settle: run a change in a transaction again when another writer got there first.

Unique constraints decide races, not locks: the loser's transaction is rolled back whole and run again, and then sees
what the winner wrote.
"""

from collections.abc import Callable

from django.db import IntegrityError, OperationalError, transaction

from audit.errors import ChainMoved

ATTEMPTS = 20
_LOST = {"40P01", "40001"}  # PostgreSQL: deadlock detected, serialization failure
_WAITED = {"55P03", "57014"}  # PostgreSQL: lock not available, query canceled (by `statement_timeout`)


def is_waiting_over(error: Exception) -> bool:
    """Whether `error` says that the time to wait for the database was over: to ask again at once would wait again."""
    return getattr(error.__cause__, "sqlstate", "") in _WAITED or "database is locked" in str(error)


def settle[T](change: Callable[[], T]) -> T:
    """Run `change` in a transaction until no other writer is in its way; give what it gives.

    Raises the last IntegrityError or ChainMoved after 20 attempts, which no honest race needs.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            with transaction.atomic():
                return change()
        except (IntegrityError, ChainMoved):
            continue
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") not in _LOST:
                raise
    with transaction.atomic():
        return change()
