"""System checks: the key for probe hosts, when this process is given one, is fit for use and is not the managers'."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def probe_key(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The key is a file that nobody else can read; who may start probes on servers may not place files on managers."""
    name = settings.PROBE_KEY_FILE
    if not name:
        return []  # only the worker `probe` has one
    file = Path(name)
    if not file.is_file():
        hint = "Name the Ed25519 key of the worker probe, or leave the variable empty in every other process."
        return [Error(f"FABRICUI_PROBE_KEY_FILE names {name}, which is no file.", hint=hint, id="probes.E001")]
    found: list[CheckMessage] = []
    if file.stat().st_mode & 0o077:
        hint = f"chmod 600 {name}, and let it belong to the worker's account."
        found.append(
            Error(f"The key for probe hosts, {name}, can be read by other accounts.", hint=hint, id="probes.E002")
        )
    if settings.MANAGER_KEY_FILE and Path(settings.MANAGER_KEY_FILE).resolve() == file.resolve():
        hint = "Make a key of its own for probe hosts (docs/probe-hosts.md)."
        found.append(Error("Probe hosts and manager hosts have one and the same key.", hint=hint, id="probes.E003"))
    return found
