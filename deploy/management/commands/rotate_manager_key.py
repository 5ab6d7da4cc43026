"""`manage.py rotate_manager_key`: change FabricUI's own key for the manager hosts, in steps that can be repeated."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from deploy import manager_key, rotation
from deploy.errors import KeyUnusable
from inventory.models import ManagerHost


class Command(BaseCommand):
    """Make a new key, say which line lets it in, and switch once every host has answered to it.

    Run it as the workers' account, as often as you like: until the last host takes the new key nothing changes.
    """

    help = "Change the key for the manager hosts: make, let in on each host, verify, switch, and then --retired."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the two files."""
        parser.add_argument("--new", required=True, metavar="FILE", help="the new private key; made if not there")
        parser.add_argument(
            "--retired",
            action="store_true",
            help="FILE is an old key: say which hosts still take it (exit 1 while one does)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Go as far as the hosts allow."""
        hosts = list(ManagerHost.objects.order_by("subnet__name", "name"))
        if not hosts:
            raise CommandError("No manager host is enrolled, so there is nothing to change a key on.")
        new, current = Path(options["new"]), Path(settings.MANAGER_KEY_FILE)
        try:
            if options["retired"]:
                self._retired(hosts, new)
                return
            why = manager_key.complaint(settings.MANAGER_KEY_FILE)
            if why:
                raise CommandError(f"As this account: {why}")
            if not new.exists():
                manager_key.make(new)
                self.stdout.write(f"A new key is in {new}.")
            why = manager_key.complaint(str(new))
            if why:
                raise CommandError(why)
            self._switch(hosts, new, current)
        except KeyUnusable as error:
            raise CommandError(str(error)) from error

    def _switch(self, hosts: list[ManagerHost], new: Path, current: Path) -> None:
        missing = [answer for answer in rotation.try_key(hosts, new) if not answer.is_taken]
        if missing:
            lines = rotation.lines_for([answer.host for answer in missing], new, current)
            for answer in missing:
                self.stdout.write(f"{answer.host.name} does not take the new key yet: {answer.sentence}")
                self.stdout.write(f"  append to authorized_keys of {answer.host.ssh_user} there:")
                self.stdout.write(f"  {lines[answer.host.name]}")
            raise CommandError("The old key stays in use. Let the new one in on those hosts, then run this again.")
        kept = rotation.switch(hosts=hosts, new=new, current=current, actor=SYSTEM)
        self.stdout.write(
            f"Every host takes the new key, and the workers use it from their next connection on. The old one is kept "
            f"in {kept}: remove its line from authorized_keys on each host, check with --retired --new {kept}, and "
            "then delete that file."
        )

    def _retired(self, hosts: list[ManagerHost], old: Path) -> None:
        takers = [answer.host.name for answer in rotation.try_key(hosts, old) if answer.is_taken]
        if takers:
            raise CommandError(f"Still takes the old key: {', '.join(takers)}. Remove its line from authorized_keys.")
        self.stdout.write("No manager host takes the old key any more: delete the file.")
