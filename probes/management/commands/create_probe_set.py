"""`manage.py create_probe_set`: a group of hosts that are probed with one another without a P_Key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.models import Subnet
from probes.errors import ProbesError
from probes.operations import create_probe_set
from probes.profiles import DEFAULT
from probes.settings_of_scope import ScopeSettings


class Command(BaseCommand):
    """Create a probe set."""

    help = "Create a probe set, for hosts that no partition names (RoCE)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take name and schedule."""
        parser.add_argument("subnet", help="name of the subnet its servers are registered in")
        parser.add_argument("name")
        parser.add_argument("--note", default="", help="what the reader of its numbers must know")
        parser.add_argument("--interval", type=int, default=300, help="seconds from one tick to the next")
        parser.add_argument("--profile", action="append", help="a profile; may be given several times")
        parser.add_argument("--enable", action="store_true", help="begin at once")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print."""
        subnet = Subnet.objects.filter(name=options["subnet"]).first()
        if subnet is None:
            raise CommandError(f"There is no subnet called {options['subnet']}.")
        try:
            settings = ScopeSettings(
                is_enabled=options["enable"],
                interval_s=options["interval"],
                profiles=tuple(options["profile"] or DEFAULT),
            )
            scope = create_probe_set(
                subnet=subnet, name=options["name"], note=options["note"], settings=settings, actor=SYSTEM
            )
        except ProbesError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Probe set {scope} is there and {'on' if scope.is_enabled else 'off'}.")
