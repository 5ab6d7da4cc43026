"""`manage.py retire_manager_host`: take a manager host out for good, dead or alive."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import ManagerHost
from inventory.operations import retire_manager_host


class Command(BaseCommand):
    """Retire a manager host. The machine is not asked; stop OpenSM there, or it is told as a stranger."""

    help = "Take a manager host out: FabricUI never asks it again, and its SM counts as unregistered."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the host and the reason."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what pages call the host")
        parser.add_argument("--reason", required=True, help="why, for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        """Retire and say what is left to do."""
        host = ManagerHost.objects.filter(subnet__name=options["subnet"], name=options["name"]).first()
        if host is None:
            raise CommandError(f"No manager host called {options['name']} is in subnet {options['subnet']}.")
        try:
            retire_manager_host(manager_host=host, actor=SYSTEM, reason=options["reason"])
        except InventoryError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Manager host {host.name} is retired. If the machine still runs, stop OpenSM there and remove FabricUI's "
            "line from authorized_keys. Enrol another standby if it was the last one, and qualify the subnet again."
        )
