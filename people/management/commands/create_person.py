"""`manage.py create_person`: the first operator, or any further person, from the command line."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from people.errors import PeopleError
from people.models import User
from people.operations import create_person, new_password


class Command(BaseCommand):
    """Create a person with a random password and print it, this once."""

    help = "Create a person with a random password, which is printed once and stored nowhere in clear."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the user name, the role and the name."""
        parser.add_argument("username")
        parser.add_argument("--role", choices=[role.lower() for role in User.Role.values], default="none")
        parser.add_argument("--name", default="", help="what pages call them; the user name if left out")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and print."""
        password = new_password()
        try:
            person = create_person(
                username=options["username"],
                password=password,
                name=options["name"],
                role=options["role"].upper(),
                actor=SYSTEM,
                is_given=True,
            )
        except PeopleError as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(f"{person.get_role_display()} {person.username}, password {password}")
        self.stdout.write("The password is shown this once. The first login asks for another.")
