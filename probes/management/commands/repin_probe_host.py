"""`manage.py repin_probe_host`: pin a probe host anew after an upgrade of its program, or withdraw it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from probes.errors import ProbesError
from probes.models import ProbeHost
from probes.operations import change_probe_host, withdraw_probe_host


class Command(BaseCommand):
    """Pin a probe host to what a person has installed or checked there; what is left out stays pinned as it is."""

    help = "Pin a probe host to a new address, host key, program or wrapper, or withdraw it from probes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the host and what is new about it."""
        parser.add_argument("server", help="its name, as it registered")
        parser.add_argument("--address")
        parser.add_argument("--ssh-port", type=int)
        parser.add_argument("--ssh-user")
        parser.add_argument("--host-key", help="one line: ssh-ed25519 AAAA…")
        parser.add_argument("--program-digest", help="SHA-256 of the installed on-host program")
        parser.add_argument("--wrapper-digest", help="SHA-256 of the installed wrapper")
        parser.add_argument("--withdraw", action="store_true", help="let no probe reach it any more")
        parser.add_argument("--reason", required=True, help="what was done there, for the audit trail")

    def handle(self, *args: Any, **options: Any) -> None:
        """Pin or withdraw, and print."""
        host = ProbeHost.objects.usable().filter(server__hostname=options["server"]).first()
        if host is None:
            raise CommandError(f"No probe host called {options['server']} is there.")
        given = ("address", "ssh_port", "ssh_user", "host_key", "program_digest", "wrapper_digest")
        try:
            if options["withdraw"]:
                withdraw_probe_host(host=host, actor=SYSTEM, reason=options["reason"])
            else:
                pinned = {name: options[name] for name in given}
                change_probe_host(host=host, actor=SYSTEM, reason=options["reason"], **pinned)
        except ProbesError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{host} is {'withdrawn from probes' if options['withdraw'] else 'pinned anew'}.")
