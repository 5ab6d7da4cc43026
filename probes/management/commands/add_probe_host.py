"""`manage.py add_probe_host`: let probes reach a server, with what the installer on it printed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from inventory.models import Server
from probes.errors import ProbesError
from probes.models import ProbeHost, ProbeScope
from probes.operations import add_probe_host, add_to_probe_set


class Command(BaseCommand):
    """Add a probe host, and put it into a probe set if one is named."""

    help = "Let probes reach a server, with its host key and the digests that install-probe printed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take everything that is pinned."""
        parser.add_argument("server", help="its name, as it registered")
        parser.add_argument("--address", required=True)
        parser.add_argument("--ssh-port", type=int, default=22)
        parser.add_argument("--ssh-user", default="fabricui-probe")
        parser.add_argument("--host-key", required=True, help="one line: ssh-ed25519 AAAA…")
        parser.add_argument("--program-digest", required=True, help="SHA-256 of the installed on-host program")
        parser.add_argument("--wrapper-digest", required=True, help="SHA-256 of the installed wrapper")
        parser.add_argument("--probe-set", help="name of a probe set that it joins")
        parser.add_argument(
            "--device", default="", help="its device there, for example mlx5_0 (default: an active one)"
        )
        parser.add_argument("--port", type=int, default=0, help="port of that device")

    def handle(self, *args: Any, **options: Any) -> None:
        """Add and print."""
        server = Server.objects.filter(hostname=options["server"]).first()
        if server is None:
            raise CommandError(f"No server called {options['server']} has registered.")
        scope = None
        if options["probe_set"]:
            scope = ProbeScope.objects.named().filter(probe_set__name=options["probe_set"]).first()
            if scope is None:
                raise CommandError(f"There is no probe set called {options['probe_set']}. Create it first.")
        pinned = ("address", "ssh_port", "ssh_user", "host_key", "program_digest", "wrapper_digest")
        try:
            host: ProbeHost = add_probe_host(server=server, actor=SYSTEM, **{name: options[name] for name in pinned})
            if scope is not None:
                add_to_probe_set(scope=scope, host=host, device=options["device"], port=options["port"], actor=SYSTEM)
        except ProbesError as error:
            raise CommandError(str(error)) from error
        where = f" and in probe set {scope}" if scope is not None else ""
        self.stdout.write(f"{host} is a probe host{where}.")
