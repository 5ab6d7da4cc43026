"""System checks: what would end a rollout before it begins, said at start and by `manage.py check --database`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

from deploy.manager_key import complaint
from deploy.qualification import why_not
from inventory.models import ManagerHost, Subnet


@register()
def manager_key(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The key for the manager hosts, when this process is given one, is a file that nobody else can read."""
    name = settings.MANAGER_KEY_FILE
    if not name:
        return []  # the web process has none, and must have none
    if not Path(name).is_file():
        return [
            Error(
                f"FABRICUI_MANAGER_KEY_FILE names {name}, which is no file.",
                hint="Name the Ed25519 key of the worker, or leave the variable empty in the web process.",
                id="deploy.E001",
            )
        ]
    why = complaint(name)
    if why:
        hint = f"chmod 600 {name}, and let it and its folder belong to the worker's account alone."
        return [Error(f"{why[0].upper()}{why[1:]}", hint=hint, id="deploy.E002")]
    return []


@register(Tags.database)
def manager_hosts(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Every subnet that may be written to has a master and at least one standby to write to."""
    if not databases:
        return []
    try:
        return _of_subnets()
    except DatabaseError:  # `migrate` asks before the tables, or their newest columns, are made
        return []


def _of_subnets() -> list[CheckMessage]:
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
        unqualified = why_not(subnet)
        if unqualified:
            hint = "Until then every rollout there is refused."
            found.append(Warning(unqualified, hint=hint, id="deploy.W002"))
    return found
