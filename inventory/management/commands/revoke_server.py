"""`manage.py revoke_server`: a server must enrol anew, after an installation or a theft."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.models import Server
from inventory.operations import revoke_credentials


class Command(BaseCommand):
    """Revoke every credential of a server; its ports and memberships stay."""

    help = "Revoke every credential of a server, so that it must enrol anew; its ports and memberships stay."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet, the host name and the reason."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("hostname")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke and print."""
        server = Server.objects.filter(subnet__name=options["subnet"], hostname=options["hostname"].lower()).first()
        if server is None:
            raise CommandError(f"No server called {options['hostname']} is in subnet {options['subnet']}.")
        count = revoke_credentials(server=server, actor=SYSTEM, reason=options["reason"])
        self.stdout.write(f"{server.hostname}: {count} credential(s) revoked. It can enrol anew with a token.")
