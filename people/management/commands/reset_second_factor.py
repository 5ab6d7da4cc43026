"""`manage.py reset_second_factor`: for who lost telephone and recovery codes, the last administrator too."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from audit.values import SYSTEM
from people import second_factor
from people.errors import PeopleError
from people.models import User
from people.operations import new_password, set_password


class Command(BaseCommand):
    """Take a second factor away, give a new password, and print it, this once."""

    help = (
        "Take the second factor of a person away and give a new password, which is printed once. Ends their sessions."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the user name and why."""
        parser.add_argument("username")
        parser.add_argument("--reason", required=True, help="for the audit trail: who asked, and how you knew them")

    def handle(self, *args: Any, **options: Any) -> None:
        """Reset and print."""
        person = User.objects.filter(username=options["username"]).first()
        if person is None:
            raise CommandError(f"There is nobody with the user name {options['username']}.")
        password = new_password()
        try:
            with transaction.atomic():
                set_password(person=person, password=password, actor=SYSTEM, is_given=True)
                second_factor.reset(person=person, actor=SYSTEM, reason=options["reason"])
        except PeopleError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{person.username}, password {password}")
        self.stdout.write(
            "The password is shown this once. The next login asks for another, and sets the second factor up anew."
        )
