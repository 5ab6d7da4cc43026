"""`manage.py set_subnet_mode`: say how far FabricUI may go in a subnet."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import Subnet
from inventory.operations import set_mode


class Command(BaseCommand):
    """Set the mode; write needs a valid, signed qualification, and the refusal says what is missing."""

    help = "Let FabricUI observe, propose or write in a subnet."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet and the mode."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("mode", choices=[mode.lower() for mode in Subnet.Mode.values])
        parser.add_argument("--reason", default="", help="why, for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        """Set and print."""
        subnet = Subnet.objects.filter(name=options["subnet"]).first()
        if subnet is None:
            raise CommandError(f"There is no subnet called {options['subnet']}.")
        try:
            set_mode(subnet=subnet, mode=options["mode"].upper(), actor=SYSTEM, reason=options["reason"])
        except InventoryError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Subnet {subnet} is in mode {options['mode']}.")
