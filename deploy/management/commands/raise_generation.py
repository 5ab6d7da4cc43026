"""`manage.py raise_generation`: after a database was restored from an older copy, let it place files again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from deploy.errors import DeployError
from deploy.generation import raise_generation
from inventory.models import Subnet


class Command(BaseCommand):
    """Raise the fencing generation of a subnet to what its manager hosts have seen."""

    help = "Raise a subnet's fencing generation to what its manager hosts have seen (docs/audit.md, “After a restore”)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet, the generation that the refusal named, and the reason."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("generation", type=int, help="the newest generation that a refused rollout named")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise and print."""
        subnet = Subnet.objects.filter(name=options["subnet"]).first()
        if subnet is None:
            raise CommandError(f"There is no subnet called {options['subnet']}.")
        try:
            fence = raise_generation(
                subnet=subnet, generation=options["generation"], actor=SYSTEM, reason=options["reason"]
            )
        except DeployError as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"Subnet {subnet}: the next rollout takes generation {fence.generation + 1}.")
        self.stdout.write("Next: docs/audit.md, “After a restore”, step 6.")
