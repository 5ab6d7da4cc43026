"""What `./run doctor` says of people: settings under which a stolen password is enough."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register


@register(deploy=True)
def left_out(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Tell of a second factor that nobody is asked for, and of rollouts for which nobody is asked again."""
    found: list[CheckMessage] = []
    if settings.MFA == "off":
        found.append(
            Warning("FABRICUI_MFA=off: a password alone signs operators in. ./run up refuses it.", id="people.W001")
        )
    if not settings.FRESH_LOGIN_MIN:
        found.append(
            Warning(
                "FABRICUI_FRESH_LOGIN_MIN=0: a session left open is enough for a rollout. ./run up refuses it.",
                id="people.W002",
            )
        )
    return found
