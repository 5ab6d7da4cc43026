"""The follower of the trail: what is committed is told to the web processes."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from audit.models import Event
from live.channel import publish
from live.hints import hints_of


def follow(events: Sequence[Event]) -> None:
    """Tell of `events`, after the commit of the follower's cursor: a broker that is slow holds no lock of ours."""
    transaction.on_commit(partial(publish, hints_of(events)), robust=True)
