"""System checks: what would end a rollout before it begins, said at start and by `manage.py check --database`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from inventory.models import ManagerHost, Subnet


@register()
def manager_key(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The key for the manager hosts, when this process is given one, is a file that nobody else can read."""
    name = settings.MANAGER_KEY_FILE
    if not name:
        return []  # the web process has none, and must have none
    file = Path(name)
    if not file.is_file():
        return [
            Error(
                f"FABRICUI_MANAGER_KEY_FILE names {name}, which is no file.",
                hint="Name the Ed25519 key of the worker, or leave the variable empty in the web process.",
                id="deploy.E001",
            )
        ]
    if file.stat().st_mode & 0o077:
        return [
            Error(
                f"The key for the manager hosts, {name}, can be read by other accounts.",
                hint=f"chmod 600 {name}, and let it belong to the worker's account.",
                id="deploy.E002",
            )
        ]
    return []


@register(Tags.database)
def manager_hosts(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Every subnet that may be written to has a master and at least one standby to write to."""
    if not databases:
        return []
    found: list[CheckMessage] = []
    for subnet in Subnet.objects.filter(mode=Subnet.Mode.WRITE).order_by("name"):
        count = ManagerHost.objects.filter(subnet=subnet).count()
        if count < 2:
            found.append(
                Warning(
                    f"Subnet {subnet} is in mode write and has {count} manager "
                    f"{'host' if count == 1 else 'hosts'}: every rollout there is refused.",
                    hint="Enrol the host of the master and of at least one standby.",
                    id="deploy.W001",
                )
            )
    return found
