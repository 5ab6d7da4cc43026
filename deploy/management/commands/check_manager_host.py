"""`manage.py check_manager_host`: name every piece that is missing on one manager host."""

import time
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from deploy import host_check
from deploy.hosts import connected
from inventory.models import ManagerHost

POLL_S: Final = 0.3


class Command(BaseCommand):
    """Ask one manager host what is there; exit 1 when something is missing."""

    help = "Say what is there and what is missing on a manager host: programs, libraries, rights, OpenSM, options."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the host."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("name", help="what pages call the host")
        parser.add_argument("--here", action="store_true", help="ask from this process, of the workers' account")
        parser.add_argument("--wait", type=float, default=90.0, metavar="SECONDS", help="how long to wait (90)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, wait, print."""
        host = ManagerHost.objects.filter(subnet__name=options["subnet"], name=options["name"]).first()
        if host is None:
            raise CommandError(f"No manager host called {options['name']} is in subnet {options['subnet']}.")
        check = host_check.request(host=host, actor=SYSTEM)
        if options["here"]:
            with connected(host.subnet) as hosts:
                host_check.run(check=check, hosts=hosts)
        deadline = time.monotonic() + options["wait"]
        while check.is_pending:
            if time.monotonic() > deadline:
                raise CommandError("No worker has asked it. Is the worker of the queue observe running?")
            time.sleep(POLL_S)
            check.refresh_from_db()
        if check.facts is None:
            raise CommandError(check.failure)
        for name, is_there, sentence in check.facts["pieces"]:
            self.stdout.write(f"{'ok     ' if is_there else 'MISSING'}  {name}{f': {sentence}' if sentence else ''}")
        if not check.facts["is_pinned"]:
            self.stdout.write("MISSING  pins: wrapper or reader are not the pinned ones (manage.py repin_manager_host)")
        for name, value in sorted(check.facts["options"].items()):
            self.stdout.write(f"option   {name} {value}")
        if not check.facts["is_pinned"] or not all(is_there for _, is_there, _ in check.facts["pieces"]):
            raise SystemExit(1)
