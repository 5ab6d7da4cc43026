"""Adoption: take over a running fabric whose manager hosts hold hand-written files, without changing any port.

A look (an Observation) is explained: what OpenSM makes of the file, what FabricUI would write, and whatever stands in
the way. `adopt` makes that the first revision; `place` rolls it out. Reaches no machine: the look was the worker's.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Subject
from deploy import files, queries
from deploy import operations as deploy
from deploy.models import Observation, Revision, Rollout
from inventory.models import ManagerHost, Port, Subnet
from partitions import mirror
from partitions.doer import Doer, as_actor
from partitions.errors import AdoptionRefused, StalePlan
from partitions.models import Partition
from partitions.staleness import is_fresh
from people.models import Tenant
from subnet import policy
from subnet.adoption import AdoptedPartition
from subnet.adoption_proof import Explanation, Obstacle, compare, explain
from subnet.default import keywords_to_json
from subnet.guid import GUID
from subnet.observed import ObservedFabric
from subnet.opensm_reading import Fabric
from subnet.partitions_conf import NEWEST, NO_PARENT, Header, table_digest
from subnet.pkey import PKey
from subnet.plan import unified_diff
from subnet.policy import Limits
from subnet.table import PartitionTable

LOOK: Final = "adoption"  # why the observation was asked for

type Owners = Mapping[PKey, Tenant]  # partitions that are not named are the provider's


@dataclass(frozen=True)
class Adoption:
    """One look, explained. `found` is the master's file; `obstacles` are all reasons against adopting it."""

    subnet: Subnet
    observation: Observation
    owners: Owners
    found: bytes = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)  # manager host → bytes
    explanation: Explanation | None
    obstacles: tuple[Obstacle, ...]

    @property
    def is_adoptable(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles and self.explanation is not None and self.explanation.is_adoptable

    @property
    def table(self) -> PartitionTable:
        """The table that would be the first revision; raises AdoptionRefused when there is none."""
        if self.explanation is None or self.explanation.adopted is None:
            raise AdoptionRefused(" ".join(f"{obstacle.sentence} {obstacle.mend}" for obstacle in self.obstacles))
        return self.explanation.adopted.table

    @cached_property
    def diff(self) -> str:
        """From the file found to the file FabricUI would write, as `diff -u` shows it; "" when there is none."""
        if self.explanation is None or not self.explanation.data:
            return ""
        return unified_diff(self.found, self.explanation.data, "partitions.conf")

    @property
    def digest(self) -> str:
        """64 hex digits that name what the person looked at: the files, the table, the names and the look.

        Owners are not in it: they are chosen while looking, and sent along.
        """
        looked_at = {
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(self.files.items())},
            "table": None if self.explanation is None else self._table_looked_at(),
            "observation": self.observation.public_id,
        }
        return hashlib.sha256(json.dumps(looked_at).encode()).hexdigest()

    def _table_looked_at(self) -> list[Any]:
        adopted = self.explanation.adopted if self.explanation is not None else None
        if adopted is None:
            return []
        return [table_digest(adopted.table), [[str(row.pkey), row.name, row.found_name] for row in adopted.partitions]]


def look_for_adoption(*, subnet: Subnet, actor: Doer) -> Observation:
    """Have all managers' files and all tables read; the explanation can be asked for once the look is done."""
    return deploy.request_observation(subnet=subnet, why=LOOK, actor=as_actor(actor))


def explain_look(*, observation: Observation, owners: Owners | None = None) -> Adoption:
    """Explain a finished look at the subnet; rows are read and nothing is written. Seconds for a large file.

    A look that failed has one obstacle: its failure.
    """
    subnet = observation.subnet
    rows = {pkey: row for pkey, row in Partition.objects.filter(subnet=subnet).by_pkey().items() if not row.retired_at}
    chosen = {pkey: tenant for pkey, tenant in (owners or {}).items() if pkey not in rows}
    chosen |= {pkey: row.tenant for pkey, row in rows.items() if row.tenant is not None}
    if observation.state != Observation.State.DONE:
        failure = Obstacle("look-failed", observation.failure or "The look is not finished.", "Look again.")
        return Adoption(subnet, observation, chosen, b"", {}, None, (failure,))
    managers = {row["host"]: row for row in observation.managers}
    contents = files.contents(subnet, [row["digest"] for row in managers.values()])
    found = {name: contents[row["digest"]] for name, row in managers.items() if row["digest"] in contents}
    fabric = queries.observed_fabric(observation)
    hosts = {host.name: GUID(host.port_guid) for host in ManagerHost.objects.filter(subnet=subnet).order_by("name")}
    master = next((name for name, guid in hosts.items() if [sm.guid for sm in fabric.masters] == [guid]), None)
    obstacles = [
        *_of_hosts(hosts, managers, found),
        *_of_census(observation, fabric, hosts, master),
        *_of_owners(rows, owners or {}),
    ]
    if master is None or master not in found:
        return Adoption(subnet, observation, chosen, b"", found, None, tuple(obstacles))
    obstacles += _of_differing(found, master, fabric, hosts)
    explanation = _explanation(subnet, found[master], fabric, hosts, master, chosen)
    obstacles += explanation.obstacles
    if explanation.adopted is not None:
        obstacles += _of_policy(explanation.adopted.table, fabric, hosts.values())
    return Adoption(subnet, observation, chosen, found[master], found, explanation, tuple(obstacles))


@transaction.atomic
def adopt(
    *, observation: Observation, digest: str, actor: Doer, owners: Owners | None = None, reason: str = ""
) -> Revision:
    """Make what `observation` found the first revision, if it is still what the person looked at (`digest`).

    Creates the partitions' rows under their owners and the rows of ports that no server reports; places nothing.
    Raises StalePlan, AdoptionRefused with every obstacle, and what `deploy.operations` raises.
    """
    subnet = Subnet.objects.select_for_update(no_key=True).get(pk=observation.subnet_id)
    require_not_managed(subnet)
    _require_fresh(observation)
    adoption = explain_look(observation=observation, owners=owners)
    if adoption.digest != digest:
        raise StalePlan("What would be adopted has changed since you looked at it. Look again; nothing was done.")
    if adoption.obstacles:
        raise AdoptionRefused(" ".join(f"{obstacle.sentence} {obstacle.mend}" for obstacle in adoption.obstacles))
    table, who = adoption.table, as_actor(actor)
    _create_ports(subnet, table)
    assert adoption.explanation is not None and adoption.explanation.adopted is not None  # noqa: S101, PT018  `table`
    _create_partitions(subnet, adoption.explanation.adopted.partitions, table, adoption.owners, who)
    revision = deploy.record_adopted_revision(
        subnet=subnet, table=table, found=adoption.files, actor=who, reason=reason
    )
    mirror.catch_up(subnet)
    return revision


@transaction.atomic
def place(*, subnet: Subnet, observation: Observation, actor: Doer, reason: str = "") -> Rollout:
    """Start the rollout that writes the adopted table in our words; it may change no port.

    Raises AdoptionRefused when nothing is waiting to be placed, and what `deploy.operations` raises.
    """
    current = queries.current_revision(subnet)
    if current is None or not files.Standing.of(current).is_adopted:
        raise AdoptionRefused(f"Subnet {subnet} has no adopted file that waits to be placed. Look at it again.")
    who = as_actor(actor)
    said = reason or "Place the adopted table in FabricUI's words; no port changes."
    revision = deploy.propose(subnet=subnet, table=current.partition_table(), parent=current, actor=who, reason=said)
    return deploy.start(revision=revision, observation=observation, actor=who, reason=said)


def adopted_revision(subnet: Subnet) -> Revision | None:
    """The current revision as long as it stands for a hand-written file that has not been placed in our words."""
    current = queries.current_revision(subnet)
    return current if current is not None and files.Standing.of(current).is_adopted else None


def require_not_managed(subnet: Subnet) -> None:
    """Raise AdoptionRefused when a revision of FabricUI's own is current: then there is nothing to take over."""
    current = queries.current_revision(subnet)
    if current is not None and not files.Standing.of(current).is_adopted:
        raise AdoptionRefused(f"Subnet {subnet} is managed by FabricUI already: {current} is current.")


def _require_fresh(observation: Observation) -> None:
    if not is_fresh(observation, timezone.now()):
        raise StalePlan(
            f"This look is more than {settings.OBSERVATION_FRESH_S} seconds old, and files can be edited at any time. "
            "Take a new look, then adopt."
        )


def _explanation(
    subnet: Subnet,
    found: bytes,
    fabric: ObservedFabric,
    hosts: Mapping[str, GUID],
    master: str,
    owners: Owners,
) -> Explanation:
    rows = Partition.objects.filter(subnet=subnet)
    in_use = {PKey(row.pkey): row.name for row in rows if row.retired_at is None}
    newest = Revision.objects.filter(subnet=subnet).aggregate(number=Max("number"))["number"] or 0
    parent = queries.current_revision(subnet)
    servers = Port.objects.filter(subnet=subnet, hca__isnull=False).values_list("guid", "hca__server__hostname")
    return explain(
        found,
        fabric,
        master=hosts[master],
        sm_ports=tuple(hosts.values()),
        header=Header(subnet.name, newest + 1, NO_PARENT if parent is None else parent.digest, NEWEST),
        labels={GUID(guid): hostname for guid, hostname in servers},
        names=in_use,
        reserved=[row.name for row in rows if row.retired_at is not None],
        tenants={pkey: tenant.slug for pkey, tenant in owners.items()},
    )


def _of_owners(rows: Mapping[PKey, Partition], owners: Owners) -> Iterator[Obstacle]:
    """Who has another owner chosen than the row says: its ports are known to be the former one's."""
    for pkey, tenant in sorted(owners.items()):
        row = rows.get(pkey)
        if row is not None and row.tenant != tenant:
            whose = "the provider" if row.tenant is None else row.tenant.name
            yield Obstacle(
                "owner",
                f"Partition {row.name} ({pkey}) is {whose}'s already, so it cannot become {tenant.name}'s by adoption.",
                "Leave its owner as it is.",
            )


def _of_hosts(
    hosts: Mapping[str, GUID], managers: Mapping[str, Mapping[str, Any]], found: Mapping[str, bytes]
) -> Iterator[Obstacle]:
    """What is wrong with the manager hosts themselves, as the look told it."""
    if not hosts:
        yield Obstacle(
            "no-manager-host",
            "The subnet has no manager host.",
            "Enrol every machine that runs OpenSM there (./run manage enrol_manager_host), then look.",
        )
    for name in hosts:
        row = managers.get(name)
        if row is None:
            yield Obstacle("not-read", f"Manager host {name} was enrolled after this look.", "Take a new look.")
        elif row["error"]:
            yield Obstacle("not-read", row["error"], "Mend that and take a new look.")
        elif row["problems"]:
            yield Obstacle("host", " ".join(row["problems"]), "Mend that and take a new look.")
        elif name not in found:
            yield Obstacle(
                "not-kept",
                f"Manager host {name}: its partition file is larger than {files.LARGEST_KEPT >> 20} MiB and was not "
                "kept.",
                "Such a file is not taken over; look whether it is the right one.",
            )


def _of_census(
    observation: Observation, fabric: ObservedFabric, hosts: Mapping[str, GUID], master: str | None
) -> Iterator[Obstacle]:
    """Whose SMs run: a stranger's could take the fabric over while we say it is ours."""
    for row in observation.census:
        if GUID(row["guid"]) not in hosts.values():
            at = f", cabled to switch {row['leaf']} port {row['leaf_port']}" if row["leaf"] else ""
            yield Obstacle(
                "unregistered-sm",
                f"Port {row['guid']}{at} runs a subnet manager ({row['state']}, priority {row['priority']}) that is no "
                "registered manager host: it can take the fabric over with a file that nobody has seen.",
                "Enrol that host as a manager host, or stop OpenSM there; then take a new look.",
            )
    if master is None and hosts:
        yield Obstacle(
            "no-master",
            "No registered manager host's SM is the only master."
            if fabric.masters
            else "No subnet manager on the fabric is master.",
            "Wait for the takeover, or look at OpenSM on the manager hosts; then take a new look.",
        )
    elif hosts and not any(sm.state == "STANDBY" and sm.guid in hosts.values() for sm in fabric.sms):
        yield Obstacle(
            "no-standby",
            "No registered SM is standby: while FabricUI places files, a dead master would leave the fabric alone.",
            "Start OpenSM on a second manager host with the same partition file, enrol it, and take a new look.",
        )


def _of_differing(
    found: Mapping[str, bytes], master: str, fabric: ObservedFabric, hosts: Mapping[str, GUID]
) -> Iterator[Obstacle]:
    """A standby's file that is not the master's: the fabric would change at a takeover, and nobody would know why."""
    for name, data in found.items():
        if data != found[master]:
            changed = compare(found[master], data, Fabric.from_observed(fabric, sm_port=hosts[name]))
            ports = "no port's table" if not changed else f"the tables of {len(changed)} ports"
            yield Obstacle(
                "files-differ",
                f"Manager host {name} holds another partition file than the master {master}; a takeover by it would "
                f"change {ports}.",
                f"Find out which one is right. If it is {master}'s, copy it to {name} (it is read only at a takeover, "
                "so nothing happens); then take a new look.",
            )


def _of_policy(table: PartitionTable, fabric: ObservedFabric, registered: Iterable[GUID]) -> Iterator[Obstacle]:
    limits = Limits(capacity={guid: port.capacity for guid, port in fabric.ports.items()})
    for violation in policy.check(table, limits, sm_ports_registered=registered, standing=table):
        if violation.severity == "refuse" and violation.rule not in deploy.TOLERATED_IN_ADOPTION:
            mend = "Choose other owners for the partitions, or the provider for all, or mend the file first."
            yield Obstacle(violation.rule, violation.sentence, mend)
    for partition in table.partitions:
        # Who is a member by keyword is no row of anybody's: no rule could keep another tenant's port out of it.
        if partition.tenant is not None and partition.keywords:
            yield Obstacle(
                "keyword-of-a-tenant",
                f"Partition {partition.name} ({partition.pkey}) names its members by {partition.keywords[0].keyword}, "
                f"so it holds ports of others than {partition.tenant}, and every port that comes later.",
                "Leave it to the provider, or name its ports by GUID in the file on every manager host first.",
            )


def _create_ports(subnet: Subnet, table: PartitionTable) -> None:
    """Give every port that the file names a row; those that no server reports have none."""
    named = {*table.by_port(), *(member.guid for member in table.default.members)}
    known = set(Port.objects.filter(subnet=subnet).values_list("guid", flat=True))
    missing = [guid for guid in sorted(named) if guid not in known]
    Port.objects.bulk_create([Port(subnet=subnet, guid=guid) for guid in missing], batch_size=mirror.BATCH)


def _create_partitions(
    subnet: Subnet, adopted: Iterable[AdoptedPartition], table: PartitionTable, owners: Owners, who: Any
) -> None:
    """Give every partition of the file a row; one that is there already keeps its name and owner."""
    rows = Partition.objects.filter(subnet=subnet, retired_at=None).by_pkey()
    says = {partition.pkey: partition for partition in table.partitions}
    for found in adopted:
        if found.pkey in rows:
            continue
        partition, tenant = says[found.pkey], owners.get(found.pkey)
        row = Partition.objects.create(
            subnet=subnet,
            tenant=tenant,
            name=found.name,
            found_name=found.found_name if found.found_name != found.name else "",
            pkey=int(found.pkey),
            flags=partition.flags.to_json(),
            keywords=keywords_to_json(partition.keywords),
            mgids=list(partition.mgids),
        )
        record(
            action=Action.PARTITION_ADOPT,
            actor=who,
            subject=Subject(kind="partition", key=row.public_id, label=row.name),
            after={
                "pkey": str(found.pkey),
                "subnet": subnet.name,
                "tenant": None if tenant is None else tenant.name,
                "found_name": found.found_name,
            },
            tenant_key="" if tenant is None else tenant.public_id,
        )
