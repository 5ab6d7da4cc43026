"""What commit-confirmed asks of a rollout: that going back takes nothing from anybody, and which one still waits.

Reads only. The deadline itself is a row, `Rollout.confirm_by`, that `deploy/confirmation.py` looks at.
"""

from datetime import timedelta
from typing import Final

from deploy.errors import DeadlineOutOfRange, NotReversible
from deploy.models import Revision, Rollout
from subnet.moves import given

SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=7)


def require_reversible(revision: Revision, within: timedelta) -> None:
    """Raise NotReversible unless the parent's table may come back by itself, DeadlineOutOfRange for an odd time.

    It never gives a tenant a port that the revision took from them: by then the server may be promised to another.
    """
    if not SHORTEST <= within <= LONGEST:
        raise DeadlineOutOfRange("The time to confirm a rollout is one minute at least and seven days at most.")
    parent = revision.parent
    if parent is None or parent.table_digest == revision.table_digest:
        raise NotReversible(
            f"{str(revision).capitalize()} gives no port another table, so there is nothing to take back. Roll it out "
            "without a time to confirm."
        )
    back = given(revision.partition_table(), parent.partition_table())
    if back:
        guid, tenant = back[0]
        more = f" (and {len(back) - 1} more)" if len(back) > 1 else ""
        raise NotReversible(
            f"Going back would give port {guid}{more} to {tenant} again, and what a tenant has lost must not come back "
            "by itself. Roll this change out without a time to confirm."
        )


def unconfirmed(revision: Revision) -> Rollout | None:
    """The rollout that proved `revision` and waits to be confirmed, if one does. One query."""
    return Rollout.objects.filter(
        revision=revision, state=Rollout.State.PROVEN, confirm_by__isnull=False, confirmed_at__isnull=True
    ).first()
