"""`manage.py adopt`: take over a running fabric from the command line; the worker does the looking and the placing."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.values import SYSTEM
from deploy.errors import DeployError
from deploy.models import PENDING, Observation, Rollout
from inventory.models import Subnet
from partitions import adoption
from partitions.adoption import Adoption
from partitions.adoption_json import adoption_json
from partitions.errors import PartitionsError
from people.models import Tenant
from subnet.errors import SubnetError
from subnet.pkey import PKey

POLL_S: Final = 0.2


class Command(BaseCommand):
    """Explain what stands on the manager hosts, and with --yes adopt and place it."""

    help = (
        "Explain the hand-written partition files of a running fabric and what FabricUI would write instead. With "
        "--yes, adopt them and roll out; no port's table changes. Exit status 0 when it can be adopted (or is PROVEN)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the subnet, owners, and how far to go."""
        parser.add_argument("subnet", help="name of the subnet")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--yes", action="store_true", help="adopt and place if nothing stands in the way")
        parser.add_argument("--owner", action="append", default=[], metavar="0xPKEY=TENANT",
                            help="a partition's tenant by its slug; the provider's by default; repeatable")  # fmt: skip
        parser.add_argument("--reason", default="", help="why; it stands in the audit trail")
        parser.add_argument("--wait", type=float, default=180, help="seconds to wait for the worker (default 180)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Look, explain, and go on if told to."""
        try:
            subnet = Subnet.objects.get(name=options["subnet"])
        except Subnet.DoesNotExist as error:
            raise CommandError(f"There is no subnet called {options['subnet']}.") from error
        rollout: Rollout | None = None
        try:
            owners = _owners(options["owner"])
            explained = self._explained(subnet, owners, options["wait"])
            if options["yes"] and explained.is_adoptable:
                revision = adoption.adopt(
                    observation=explained.observation, digest=explained.digest, actor=SYSTEM, owners=owners,
                    reason=options["reason"],
                )  # fmt: skip
                if not options["json"]:
                    self._tell(explained)
                    self.stdout.write(f"Adopted as {revision}. Placing it in FabricUI's words …")
                rollout = adoption.place(
                    subnet=subnet, observation=explained.observation, actor=SYSTEM, reason=options["reason"]
                )
                self._until(lambda: _has_ended(rollout), "the rollout ends", options["wait"])
            elif not options["json"]:
                self._tell(explained)
        except (PartitionsError, DeployError, SubnetError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(adoption_json(explained, rollout), indent=2))
        elif rollout is not None:
            self.stdout.write(
                f"{rollout.state}. {rollout.cause or 'No port changed; FabricUI manages the fabric now.'}"
            )
        if not explained.is_adoptable or (rollout is not None and rollout.state != Rollout.State.PROVEN):
            raise SystemExit(1)

    def _explained(self, subnet: Subnet, owners: adoption.Owners, wait_s: float) -> Adoption:
        """A new look at the hosts and the fabric, explained."""
        adoption.require_not_managed(subnet)
        observation = adoption.look_for_adoption(subnet=subnet, actor=SYSTEM)
        self._until(lambda: _is_read(observation), "the worker has looked", wait_s)
        return adoption.explain_look(observation=observation, owners=owners)

    def _until(self, is_so: Callable[[], bool], what: str, wait_s: float) -> None:
        deadline = time.monotonic() + wait_s
        while not is_so():
            if time.monotonic() > deadline:
                raise CommandError(
                    f"Waited {wait_s:.0f} s and not yet so: {what}. Only the worker reaches the manager hosts: start "
                    "FabricUI with ./run up, then try again."
                )
            time.sleep(POLL_S)

    def _tell(self, explained: Adoption) -> None:
        """The explanation for a person, the worst first."""
        write = self.stdout.write
        for obstacle in explained.obstacles:
            write(f"REFUSED  {obstacle.sentence}\n         {obstacle.mend}")
        explanation = explained.explanation
        if explanation is None:
            return
        for finding in explanation.reading.findings:
            write(f"{finding.severity:7}  line {finding.line}: {finding.message} {finding.fix}".rstrip())
        for note in explanation.notes:
            write(f"{note.severity:7}  {'' if note.line is None else f'line {note.line}: '}{note.message}")
        if explanation.adopted is not None:
            for partition in explanation.adopted.partitions:
                state = "" if partition.is_programmed else ", not programmed"
                write(f"{partition.pkey}  {partition.name}: {partition.members} ports by GUID{state}")
        write(
            f"{explanation.compared} ports hold what the file says, {explanation.not_compared} were not read; "
            f"{len(explanation.differences)} would change."
        )
        write(explained.diff)


def _owners(texts: list[str]) -> dict[PKey, Tenant]:
    owners = {}
    for text in texts:
        key, _, slug = text.partition("=")
        tenant = Tenant.objects.filter(slug=slug).first()
        if tenant is None:
            raise CommandError(f"--owner {text}: there is no tenant with the slug “{slug}”. Write 0x0010=SLUG.")
        owners[PKey.of_partition(key)] = tenant
    return owners


def _is_read(observation: Observation) -> bool:
    observation.refresh_from_db()
    return observation.state not in PENDING


def _has_ended(rollout: Rollout | None) -> bool:
    assert rollout is not None  # noqa: S101  it was started just before
    rollout.refresh_from_db()
    return rollout.finished_at is not None
