"""`manage.py create_subnet`: name the subnet that manager hosts and servers will belong to."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import DEFAULT_PREFIX
from inventory.operations import create_subnet
from subnet.errors import InvalidGUID


class Command(BaseCommand):
    """Create a subnet in mode observe."""

    help = "Create a subnet in mode observe; its name stands in the header of partitions.conf."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name and the prefix."""
        parser.add_argument("name")
        parser.add_argument("--prefix", default=DEFAULT_PREFIX, help="OpenSM's subnet_prefix (default %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print."""
        try:
            subnet = create_subnet(name=options["name"], prefix=options["prefix"], actor=SYSTEM)
        except (InventoryError, InvalidGUID) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Subnet {subnet.name} is there, in mode {subnet.get_mode_display()}.")
