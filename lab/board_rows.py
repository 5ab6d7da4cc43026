"""A large site as rows, for the board's benchmark and for looking at: tenants, partitions, servers, staged changes.

Put straight into the tables, as a site of years has them; the first revision and its mirror are made by the product.
"""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from people.models import User

PEOPLE: Final = ("olga", "otto")
SM_PORTS: Final = ("0x0002c903000a0001", "0x0002c903000b0001")
TENANTS: Final = ("Acme", "Bert", "Cygnus", "Delphi", "Ember", "Fjord", "Gallium", "Helix", "Iris", "Juno")
KINDS: Final = ("training", "inference", "research", "batch", "dev", "eval", "serve", "data", "night", "spare")
UNASSIGNED_EVERY: Final = 20  # one server in so many is in no partition


@dataclass(frozen=True)
class Rows:
    """What was made: how many, and who may look at it."""

    servers: int
    ports: int
    partitions: int
    olga: "User"


def fill(*, servers: int, hcas: int, partitions: int, staged: int = 40) -> Rows:
    """Fill an empty database with a subnet of so many servers in so many partitions, some with staged changes."""
    from django.utils import timezone

    from audit.values import SYSTEM
    from deploy import operations as deploy
    from deploy.models import Watch
    from inventory.models import ManagerHost, Subnet
    from partitions import mirror
    from people.models import Tenant, User
    from subnet.table import PartitionTable

    now = timezone.now()
    subnet = Subnet.objects.create(name="hall", mode=Subnet.Mode.WRITE)
    for number, guid in enumerate(SM_PORTS, 1):
        ManagerHost.objects.create(
            subnet=subnet, name=f"m{number}", address="127.0.0.1", ssh_user="fabricui", host_key="ssh-ed25519 AAAA",
            port_guid=guid, wrapper_digest="0" * 64, reader_digest="0" * 64,
        )  # fmt: skip
    olga, otto = (
        User.objects.create(username=name, first_name=name.title(), role=User.Role.OPERATOR) for name in PEOPLE
    )
    tenants = [Tenant.objects.create(name=name, slug=name.lower()) for name in TENANTS]
    ports = _servers(subnet, servers, hcas, now)
    table = PartitionTable(sm_ports=_guids(SM_PORTS), partitions=_partitions(subnet, tenants, ports, partitions))
    revision = deploy.record_first_revision(subnet=subnet, table=table, actor=SYSTEM)
    mirror.catch_up(subnet)
    hosts = [{"host": f"m{number}", "digest": revision.digest, "revision": 1, "error": None} for number in (1, 2)]
    Watch.objects.create(
        subnet=subnet, next_at=now + timedelta(days=30), checked_at=now + timedelta(days=29), managers=hosts,
        covered_at=now + timedelta(days=29),
    )  # fmt: skip
    _stage(subnet, staged, (olga, otto))
    return Rows(servers=servers, ports=servers * hcas, partitions=partitions, olga=olga)


def _guids(texts: tuple[str, ...]) -> tuple:  # type: ignore[type-arg]
    from subnet.guid import GUID

    return tuple(GUID(text) for text in texts)


def _servers(subnet, servers: int, hcas: int, now) -> list[list[str]]:  # type: ignore[no-untyped-def]
    """The servers with their ports; gives each one's port GUIDs, in order of the servers."""
    from inventory.models import HCA, Port, Server

    rows = Server.objects.bulk_create(
        [Server(subnet=subnet, hostname=f"gpu-{at // 40:03}-{at % 40:02}") for at in range(servers)], batch_size=500
    )
    base = 0x0002C90500000000
    cards = HCA.objects.bulk_create(
        [
            HCA(server=row, node_guid=f"{base + (at * hcas + card) * 16:#018x}", device=f"mlx5_{card}")
            for at, row in enumerate(rows)
            for card in range(hcas)
        ],
        batch_size=500,
    )
    Port.objects.bulk_create(
        [
            Port(
                subnet=subnet, hca=card, guid=f"{base + at * 16 + 1:#018x}", state="ACTIVE" if at % 977 else "DOWN",
                confirmed_at=now, confirmed_how="person",
            )
            for at, card in enumerate(cards)
        ],
        batch_size=500,
    )  # fmt: skip
    return [[f"{base + (at * hcas + card) * 16 + 1:#018x}" for card in range(hcas)] for at in range(servers)]


def _partitions(subnet, tenants, ports: list[list[str]], count: int) -> tuple:  # type: ignore[no-untyped-def,type-arg]
    """Rows of partitions, ten kinds a tenant and more of each; gives them as values with their members."""
    from partitions.models import Partition as Row
    from subnet.pkey import Membership, PKey
    from subnet.table import Member, Partition

    chance = random.Random(20261202)  # noqa: S311  the same site in each run
    pkeys = chance.sample(range(1, 0x7FFE), count)
    members: list[list[Member]] = [[] for _ in range(count)]
    for at, guids in enumerate(ports):
        if (at // count + at) % UNASSIGNED_EVERY:
            members[at % count] += [Member(guid, Membership.FULL) for guid in guids]  # type: ignore[arg-type]
    values = []
    for at, pkey in enumerate(pkeys):
        tenant = tenants[at % len(tenants)]
        name = f"{tenant.slug}-{KINDS[at // len(tenants) % len(KINDS)]}"
        name += f"-{at // 100}" if count > 100 else ""
        Row.objects.create(subnet=subnet, tenant=tenant, name=name, pkey=pkey)
        values.append(Partition(PKey(pkey), name, tenant.slug, tuple(members[at])))
    return tuple(values)


def _stage(subnet, count: int, people) -> None:  # type: ignore[no-untyped-def]
    """Moves within a tenant, in turn by each person."""
    from inventory.models import Server
    from partitions import operations
    from partitions.models import Partition

    by_tenant: dict[int, list[Partition]] = {}
    for partition in Partition.objects.select_related("tenant").order_by("pk"):
        by_tenant.setdefault(partition.tenant_id or 0, []).append(partition)
    homes = [group for group in by_tenant.values() if len(group) > 1]
    for number in range(count if homes else 0):
        group = homes[number % len(homes)]
        source, target = group[number % len(group)], group[(number + 1) % len(group)]
        server = Server.objects.filter(hcas__ports__memberships__partition=source).order_by("pk").first()
        if server is not None and not server.hcas.filter(ports__staged_changes__isnull=False).exists():
            operations.stage_move(server=server, source=source, target=target, actor=people[number % len(people)])
