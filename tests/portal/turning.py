"""Playing turns: a tenant's move, and what the tick makes of it."""

from datetime import timedelta

from django.utils import timezone

from deploy.models import Rollout
from portal import moves, turns
from portal.models import Turn
from portal.words import sentence


def move(portal, who="max", number=0, source=None, target=None):
    site = portal.site
    moves.move(
        seat=portal.seats[who], server=site.provider.servers[number], source=source or site.training,
        target=target or site.inference,
    )  # fmt: skip
    return Turn.objects.latest("pk")


def later(seconds=61):
    """Behind the rest after the last rollout, which has just been."""
    return timezone.now() + timedelta(seconds=seconds)


def advance(turn, now=None):
    now = now or later()
    Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
    turns.advance(turn_id=turn.pk, now=now)
    turn.refresh_from_db()
    return turn


def waits(turn, why, state="WAITING"):
    assert (turn.state, turn.why) == (state, why.value), turn.told
    assert not Rollout.objects.filter(pk=turn.rollout_id).exists()
    assert sentence(turn.why, until=turn.until)
