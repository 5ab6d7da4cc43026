"""Filters that make a Lamp of a state (`{% lamp … %}` of the page's tags draws it), and how long a rollout took."""

from django import template
from django.utils import timezone

from console import lamps
from deploy.models import Rollout

register = template.Library()
register.filter("rollout_lamp", lamps.rollout)
register.filter("sm_lamp", lamps.subnet_manager)
register.filter("link_lamp", lamps.link)


@register.filter
def elapsed(rollout: Rollout) -> str:
    """From the button to the end, or until now: “4.2 s”, “3 min 10 s”, “2 h 5 min”."""
    seconds = ((rollout.finished_at or timezone.now()) - rollout.requested_at).total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
