"""`manage.py repin_manager_host`: pin a manager host anew, after an upgrade of its wrapper or a new installation."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import ManagerHost
from inventory.operations import repin_manager_host


class Command(BaseCommand):
    """Pin a manager host to what a person has installed or checked there; what is left out stays pinned as it is."""

    help = "Pin a manager host to a new host key, wrapper or reader, after a person has looked there."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the host and what is new about it."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what pages call the host")
        parser.add_argument("--host-key", default="", help="one line: ssh-ed25519 AAAA…")
        parser.add_argument("--wrapper-digest", default="", help="SHA-256 of the installed wrapper")
        parser.add_argument("--reader-digest", default="", help="SHA-256 of the installed table reader")
        parser.add_argument("--reason", required=True, help="what was done there, for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        """Pin and print."""
        host = ManagerHost.objects.filter(subnet__name=options["subnet"], name=options["name"]).first()
        if host is None:
            raise CommandError(f"No manager host called {options['name']} is in subnet {options['subnet']}.")
        try:
            repin_manager_host(
                manager_host=host,
                host_key=options["host_key"] or host.host_key,
                wrapper_digest=options["wrapper_digest"] or host.wrapper_digest,
                reader_digest=options["reader_digest"] or host.reader_digest,
                actor=SYSTEM,
                reason=options["reason"],
            )
        except InventoryError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Manager host {host.name} is pinned anew.")
