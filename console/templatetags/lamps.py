"""Filters that make a Lamp of a state; `{% lamp … %}` of the page's tags draws it."""

from django import template

from console import lamps

register = template.Library()
register.filter("rollout_lamp", lamps.rollout)
register.filter("observation_lamp", lamps.observation)
register.filter("sm_lamp", lamps.subnet_manager)
register.filter("link_lamp", lamps.link)
register.filter("verdict_lamp", lamps.verdict)
