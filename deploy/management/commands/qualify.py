"""`manage.py qualify`: find out whether FabricUI may write to a subnet, and print the report."""

import json
import time
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from deploy import qualification, qualifying
from deploy.errors import DeployError
from deploy.hosts import connected
from deploy.models import Qualification
from inventory.models import Subnet
from people.actor import actor_of
from people.models import User
from subnet.qualification import CHECKLIST

POLL_S: Final = 0.5
_MARKS: Final = {"refuse": "REFUSES", "warn": "warns  ", "note": "note   "}


class Command(BaseCommand):
    """Ask the managers' worker for a qualification, wait for the report, and say whether it refuses. Exit 1 then."""

    help = "Measure whether FabricUI may write to a subnet, and print the report; --sign puts a name under it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet and how far to go."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument(
            "--allow-sweeps",
            action="store_true",
            help="cause some heavy sweeps on the master (SIGHUP) to measure them; write mode needs that",
        )
        parser.add_argument(
            "--here", action="store_true", help="ask the hosts from this process, which must be the workers' account"
        )
        parser.add_argument("--wait", type=float, default=900.0, metavar="SECONDS", help="how long to wait (900)")
        parser.add_argument(
            "--sign", action="store_true", help="confirm every item of the checklist of what only hardware can show"
        )
        parser.add_argument("--by", default="", metavar="USERNAME", help="with --sign: who confirms it")
        parser.add_argument("--reason", default="", help="with --sign: how and on which servers it was tried")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, wait, print; or sign the newest report."""
        subnet = Subnet.objects.filter(name=options["subnet"]).first()
        if subnet is None:
            raise CommandError(f"There is no subnet called {options['subnet']}. manage.py create_subnet makes one.")
        if options["sign"]:
            self._sign(subnet, options["by"], options["reason"])
            return
        request = qualification.request(subnet=subnet, actor=SYSTEM, may_sweep=options["allow_sweeps"])
        if options["here"]:
            with connected(subnet) as hosts:
                qualifying.qualify(request=request, hosts=hosts)
        self._wait(request, options["wait"])
        if options["json"]:
            report = {**(request.report or {}), "digest": request.digest}
            self.stdout.write(json.dumps(report, indent=1, ensure_ascii=False))
        else:
            self._print(request)
        if not request.is_fit:
            raise SystemExit(1)

    def _wait(self, request: Qualification, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            request.refresh_from_db()
            if not request.is_pending:
                return
            if time.monotonic() > deadline:
                raise CommandError(
                    f"No worker has finished it within {seconds:.0f} s. Is the worker of the queue observe running, "
                    "and does a rollout hold the subnet? The request stays; look at the page Qualification."
                )
            time.sleep(POLL_S)

    def _print(self, request: Qualification) -> None:
        report = request.report or {}
        for name, item in report["managers"].items():
            unit = item["opensm_unit"] or "a plain process"
            version = item["opensm_version"] or "none"
            self.stdout.write(
                f"{name}: {item['role'] or 'no role'}, OpenSM {version}, {unit}, account {item['account']}"
            )
        for finding in report["findings"]:
            where = f"{finding['where']}: " if finding["where"] else ""
            self.stdout.write(f"{_MARKS[finding['severity']]}  {where}{finding['sentence']}")
        self.stdout.write(f"report {request.digest}")
        if request.is_fit:
            self.stdout.write("Nothing refuses. Try on this site what only hardware can show, then sign:")
            for item, sentence in CHECKLIST.items():
                self.stdout.write(f"  {item}: {sentence}")
        else:
            self.stdout.write("FabricUI only observes this subnet until that is mended.")

    def _sign(self, subnet: Subnet, username: str, reason: str) -> None:
        person = User.objects.operators().filter(username=username).first()
        if person is None:
            raise CommandError(f"“{username}” is no operator. Name who confirms the checklist: --by USERNAME.")
        newest = Qualification.objects.filter(subnet=subnet, state="DONE").order_by("-id").first()
        if newest is None:
            raise CommandError(f"Subnet {subnet} has no report yet. Run manage.py qualify {subnet} first.")
        try:
            qualification.sign(
                qualification=newest, answers=dict.fromkeys(CHECKLIST, True), actor=actor_of(person), reason=reason
            )
        except DeployError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{person} signed the report {newest.digest}.")
