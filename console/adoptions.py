"""What the adoption page shows: the step the subnet stands at, each partition with its owner, and the ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from console.plans import Key, table_keys
from deploy import queries
from deploy.models import Observation
from inventory.models import Server, Subnet
from partitions.adoption import Adoption, adopted_revision, explain_look
from partitions.closing import closing_of
from people.models import Tenant
from subnet.adoption import AdoptedPartition
from subnet.pkey import PKey

MOST_PORTS: Final = 200  # rows of the table of ports
OWNER: Final = "owner-"  # + P_Key: the name of a partition's choice in the form
STEPS: Final = (("look", "Look"), ("adopt", "Adopt"), ("place", "Place"), ("close", "Close Default"))


class NoSuchTenant(Exception):
    """The form names a tenant that is not there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the track: `at` is done, now or later."""

    name: str
    word: str
    at: str


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of the file, with the name of its choice in the form and its owner now ("" : the provider)."""

    partition: AdoptedPartition
    field: str
    owner: str

    @property
    def keywords(self) -> str:
        """“ALL=full, SELF=full”, or nothing."""
        return ", ".join(map(str, self.partition.keywords))


@dataclass(frozen=True, slots=True)
class PortRow:
    """One port: what it holds, and what a freshly read file of ours gives it (the same keys, or it is refused)."""

    guid: str
    label: str
    before: tuple[Key, ...]


def shown(subnet: Subnet) -> dict[str, Any]:
    """The context of the page. Explains the newest look as long as nothing was adopted: some readings of the file."""
    current = queries.current_revision(subnet)
    waiting = adopted_revision(subnet)
    observation = queries.latest_observation(subnet)
    newest = queries.newest_request(subnet)
    if current is not None and waiting is None:
        now = closing_of(subnet)
        return {
            "step": "close",
            "steps": _steps("close"),
            "current": current,
            "closing": now,
            "servers": Server.objects.filter(subnet=subnet).order_by("hostname"),
        }
    step = "look" if observation is None else "adopt" if waiting is None else "place"
    context: dict[str, Any] = {
        "step": step,
        "steps": _steps(step),
        "waiting": waiting,
        "observation": observation,
        "is_fresh": observation is not None and is_fresh(observation, subnet),
        "failed": newest if newest is not None and newest.state == Observation.State.FAILED else None,
        "fresh_s": settings.OBSERVATION_FRESH_S,
    }
    if observation is not None:
        explained = explain_look(observation=observation)
        context |= {"adoption": explained, **_explained(explained)}
    return context


def is_fresh(observation: Observation, subnet: Subnet) -> bool:
    """Whether a rollout may stand on it: young enough, and read after the last rollout had ended."""
    since = queries.tables_were_true_since(subnet)
    if observation.read_at is None or (since is not None and observation.read_at < since):
        return False
    return timezone.now() - observation.read_at < timedelta(seconds=settings.OBSERVATION_FRESH_S)


def chosen_owners(form: QueryDict) -> dict[PKey, Tenant]:
    """The tenants that the form chooses, by P_Key. Raises NoSuchTenant, InvalidPKey."""
    chosen = {name.removeprefix(OWNER): form.get(name) for name in form if name.startswith(OWNER)}
    slugs = {pkey: str(slug) for pkey, slug in chosen.items() if slug}
    tenants = {tenant.slug: tenant for tenant in Tenant.objects.filter(slug__in=slugs.values())}
    if set(slugs.values()) - tenants.keys():
        raise NoSuchTenant
    return {PKey.of_partition(pkey): tenants[slug] for pkey, slug in slugs.items()}


def _explained(adoption: Adoption) -> dict[str, Any]:
    explanation = adoption.explanation
    if explanation is None:
        return {}
    partitions = () if explanation.adopted is None else explanation.adopted.partitions
    owners = {pkey: tenant.slug for pkey, tenant in adoption.owners.items()}
    names = {int(partition.pkey): partition.name for partition in partitions}
    return {
        "explanation": explanation,
        "rows": [PartitionRow(row, f"{OWNER}{row.pkey}", owners.get(row.pkey, "")) for row in partitions],
        "ports": _ports(adoption, names),
        "more_ports": max(0, len(explanation.reading.tables) - MOST_PORTS),
        "findings": sorted(explanation.reading.findings, key=lambda finding: (finding.line, finding.column)),
        "written": explanation.data.decode("ascii"),
    }


def _ports(adoption: Adoption, names: Mapping[int, str]) -> list[PortRow]:
    fabric = queries.observed_fabric(adoption.observation)
    labels = adoption.table.labels if adoption.explanation is not None and adoption.explanation.adopted else {}
    ports = [port for _, port in sorted(fabric.ports.items()) if port.is_read]
    return [
        PortRow(port.guid, labels.get(port.guid) or port.description, table_keys(port.pkeys, names))
        for port in ports[:MOST_PORTS]
    ]


def _steps(now: str) -> list[Step]:
    names = [name for name, _ in STEPS]
    at = names.index(now)
    return [
        Step(name, word, "done" if place < at else "now" if place == at else "later")
        for place, (name, word) in enumerate(STEPS)
    ]
