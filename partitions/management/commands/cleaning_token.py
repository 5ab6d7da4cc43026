"""`manage.py cleaning_token`: a token with which the provisioning system may say that a server is clean."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from partitions.cleaned_door import SCOPE
from people.models import User
from people.operations import create_token


class Command(BaseCommand):
    """Make the token and print it; it is shown this once."""

    help = "Make a token of scope server:cleaned, in the name of an operator; it is printed once and kept nowhere."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose word it is, and for how long."""
        parser.add_argument("username", help="the operator whose word it counts as")
        parser.add_argument("--name", default="provisioning", help="what the trail calls the token")
        parser.add_argument("--days", type=int, default=90)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make and print."""
        person = User.objects.operators().filter(username=options["username"]).first()
        if person is None:
            raise CommandError(f"“{options['username']}” is no operator: only an operator's word makes a server clean.")
        if not 1 <= options["days"] <= 366:
            raise CommandError("A token is valid for 1 to 366 days.")
        _, text = create_token(
            person=person,
            name=options["name"],
            lifetime=timedelta(days=options["days"]),
            actor=SYSTEM,
            scopes=[SCOPE],
        )
        self.stdout.write(text)
