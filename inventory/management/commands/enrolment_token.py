"""`manage.py enrolment_token`: let servers in."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import Subnet
from inventory.operations import create_enrolment_token


def _lifetime(hours: float) -> timedelta:
    """`hours` as a span of time; a number that no span can hold is longer than any token lives."""
    try:
        return timedelta(hours=hours)
    except (OverflowError, ValueError):
        return timedelta.max


class Command(BaseCommand):
    """Create an enrolment token and print it, this once."""

    help = "Create an enrolment token and print it, and nothing else, on standard output; it is stored hashed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet, a name, how many servers and how long."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what the token is for, such as a rack")
        parser.add_argument("--uses", type=int, default=1, help="how many servers may use it (default 1)")
        parser.add_argument("--rack", default="", help="the rack it is for (default: its name, with more than one use)")
        parser.add_argument("--hostnames", default="", help="only servers called so, as in a shell: r12-*,r13-0?")
        parser.add_argument("--networks", default="", help="only servers that come from there: 10.1.12.0/24")
        parser.add_argument("--hours", type=float, default=24, help="how long it lives (default 24)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print."""
        try:
            subnet = Subnet.objects.get(name=options["subnet"])
            token = create_enrolment_token(
                subnet=subnet,
                name=options["name"],
                uses=options["uses"],
                lifetime=_lifetime(options["hours"]),
                rack=options["rack"],
                hostnames=options["hostnames"],
                networks=options["networks"],
                actor=SYSTEM,
            )
        except Subnet.DoesNotExist as error:
            raise CommandError(f"There is no subnet called {options['subnet']}.") from error
        except InventoryError as error:
            raise CommandError(str(error)) from error
        self.stderr.write("The token is shown this once.")
        self.stdout.write(token)
