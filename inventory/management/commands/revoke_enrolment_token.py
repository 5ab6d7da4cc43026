"""`manage.py revoke_enrolment_token`: a token got into the wrong hands, or the rack is done."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.models import EnrolmentToken
from inventory.operations import revoke_enrolment_token


class Command(BaseCommand):
    """Make every living enrolment token of a name worthless; servers it let in stay enrolled."""

    help = "Revoke the enrolment tokens of a name; servers that enrolled with them stay enrolled."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet, the token's name and the reason."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what the token was called")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke and print."""
        tokens = list(EnrolmentToken.objects.filter(subnet__name=options["subnet"], name=options["name"]))
        if not tokens:
            raise CommandError(f"No enrolment token called {options['name']} is in subnet {options['subnet']}.")
        count = sum(revoke_enrolment_token(token=token, actor=SYSTEM, reason=options["reason"]) for token in tokens)
        self.stdout.write(f"{options['name']}: {count} token(s) revoked; {len(tokens) - count} were worth nothing.")
