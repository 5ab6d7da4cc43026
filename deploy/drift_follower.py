"""A rollout that has ended may have ended drift too, or made some: its subnet is watched at the next tick."""

from typing import Final

from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from deploy import drifting
from deploy.models import Rollout

FOLLOWED: Final = frozenset({Action.ROLLOUT_PROVEN, Action.ROLLOUT_RESTORED, Action.ROLLOUT_RELEASE})


def follow(event: Event) -> None:
    """Have the subnet of the rollout that the event is about watched soon; the follower's function."""
    rollout = Rollout.objects.filter(public_id=event.subject_key).select_related("subnet").first()
    if rollout is not None:
        drifting.watch_soon(subnet=rollout.subnet, now=timezone.now())
