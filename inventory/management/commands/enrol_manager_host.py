"""`manage.py enrol_manager_host`: pin a machine that runs an SM of the subnet."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.errors import InventoryError
from inventory.models import Subnet
from inventory.operations import enrol_manager_host
from remote.errors import RemoteError
from remote.fingerprint import confirmed_host_key, fingerprint
from subnet.errors import InvalidGUID


class Command(BaseCommand):
    """Enrol a manager host with what the install command on it printed."""

    help = "Enrol a manager host with the host key and digests that the install command on it printed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take everything that is pinned."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what pages call the host")
        parser.add_argument("--address", required=True)
        parser.add_argument("--ssh-port", type=int, default=22)
        parser.add_argument("--ssh-user", default="root")
        pinned = parser.add_mutually_exclusive_group(required=True)
        pinned.add_argument("--host-key", default="", help="one line, read on the machine itself: ssh-ed25519 AAAA…")
        pinned.add_argument(
            "--fingerprint",
            default="",
            help="SHA256:… as “ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub” prints it on the machine itself; the "
            "key that the machine shows is pinned if it is this one",
        )
        parser.add_argument("--port-guid", required=True, help="the port its OpenSM is bound to")
        parser.add_argument("--wrapper-digest", required=True, help="SHA-256 of the installed wrapper")
        parser.add_argument("--reader-digest", required=True, help="SHA-256 of the installed table reader")

    def handle(self, *args: Any, **options: Any) -> None:
        """Enrol and print."""
        try:
            host_key = options["host_key"] or confirmed_host_key(
                options["address"], options["ssh_port"], expected=options["fingerprint"]
            )
            host = enrol_manager_host(
                subnet=Subnet.objects.get(name=options["subnet"]),
                name=options["name"],
                address=options["address"],
                ssh_port=options["ssh_port"],
                ssh_user=options["ssh_user"],
                host_key=host_key,
                port_guid=options["port_guid"],
                wrapper_digest=options["wrapper_digest"],
                reader_digest=options["reader_digest"],
                actor=SYSTEM,
            )
        except Subnet.DoesNotExist as error:
            raise CommandError(f"There is no subnet called {options['subnet']}.") from error
        except (InventoryError, InvalidGUID, RemoteError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Manager host {host.name} is enrolled with port {host.port_guid}.")
        self.stdout.write(
            f"Its host key is pinned: {fingerprint(host.host_key)}. Compare it with what the machine prints."
        )
