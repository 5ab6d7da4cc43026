"""A small provider on rows: two tenants, two operators, servers of two ports, two manager hosts, a first revision."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from audit import follow
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM
from deploy import operations as deploy
from deploy import tables
from deploy.models import Fence, Observation, Rollout
from inventory.models import HCA, ManagerHost, Port, Server, Subnet
from lab.pictures.qualified import qualify
from partitions import operations
from partitions.models import Partition
from partitions.selection import Selection
from people.models import Tenant, User
from subnet.guid import GUID
from subnet.table import PartitionTable

SM_PORTS = (GUID("0x0002c903000a0001"), GUID("0x0002c903000b0001"))


@dataclass
class Provider:
    """The rows, and what the rooms below would do to them."""

    subnet: Subnet
    acme: Tenant
    bert: Tenant
    olga: User
    otto: User
    servers: list[Server] = field(default_factory=list)

    def partition(self, name: str, tenant: Tenant | None, pkey: int | None = None) -> Partition:
        return operations.create_partition(subnet=self.subnet, tenant=tenant, name=name, actor=self.olga, pkey=pkey)

    def server(self, number: int, *, ports: int = 2, **port_fields: object) -> Server:
        server = Server.objects.create(subnet=self.subnet, hostname=f"srv-{number:03}")
        fields = {"confirmed_at": timezone.now(), "confirmed_how": "person"} | port_fields
        for index in range(ports):
            base = 0x0002C90400000000 + number * 0x100 + index * 0x10
            hca = HCA.objects.create(server=server, node_guid=GUID(f"{base:#018x}"), device=f"mlx5_{index}")
            Port.objects.create(subnet=self.subnet, hca=hca, guid=GUID(f"{base + 1:#018x}"), **fields)
        self.servers.append(server)
        return server

    def observe(
        self,
        *,
        read_at: datetime | None = None,
        extra: dict[str, int] | None = None,
        held_default: int = 0x7FFF,
        unread: Collection[str] = (),
    ) -> Observation:
        """A finished look at the fabric as the current revision would have it, with `extra` entries; capacity 64.

        `held_default` is the entry at index 0 of every port but the manager hosts'; the ports `unread` answered no SMP.
        """
        current = Fence.objects.get(subnet=self.subnet).current
        assert current is not None  # noqa: S101  the first revision was made with it
        held = current.partition_table().by_port()
        mine = Port.objects.filter(subnet=self.subnet).order_by("guid")
        guids = [*SM_PORTS, *(port.guid for port in mine)]
        lines: list[dict[str, object]] = [{"kind": "reading", "version": 1, "topology": "list", "list_mtime_ns": 1}]
        for lid, guid in enumerate(guids, 1):
            keys = {0: 0xFFFF if guid in SM_PORTS else held_default}
            for index, (pkey, membership) in enumerate(sorted(held.get(guid, {}).items()), 1):
                keys[index] = int(pkey) | (0x8000 if membership == "full" else 0)
            if extra and guid in extra:
                keys[len(keys)] = extra[guid]
            lines.append(
                {
                    "kind": "port", "port_guid": guid, "node_guid": GUID(f"{guid.number + 0x10000:#018x}"),
                    "system_guid": GUID(f"{guid.number + 0x20000:#018x}"), "node_type": "CA", "port": 1, "lid": lid,
                    "state": "ACTIVE", "phys": "LinkUp", "master_sm_lid": 1, "is_sm": guid in SM_PORTS,
                    "capacity": 64, "pkeys": {str(index): f"{entry:#06x}" for index, entry in keys.items()},
                    "leaf": None, "description": "", "reading": "read", "error": None,
                    **({"pkeys": {}, "reading": "unreadable", "error": "timed out"} if guid in unread else {}),
                }
            )  # fmt: skip
        lines.append({"kind": "end", "ports": len(guids), "smps": 1, "timeouts": 0, "seconds": 0.1})
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        at = read_at or timezone.now()
        return Observation.objects.create(
            subnet=self.subnet,
            state=Observation.State.DONE,
            why="plan",
            requested_at=at,
            read_at=at,
            finished_at=at,
            tables=tables.store(data, ports=len(guids)),
            managers=[
                {"host": name, "digest": current.digest, "revision": current.number, "role": "MASTER", "error": None}
                for name in ("m1", "m2")
            ],
        )

    def plan(self, user: User, selection: Selection | None = None) -> operations.DrawnPlan:
        return operations.draw_up_plan(subnet=self.subnet, selection=selection or Selection.mine(), user=user)

    def roll_out(self, user: User, selection: Selection | None = None, *, reason: str = "") -> Rollout:
        """The button on the plan page, with a fresh look at the fabric."""
        selection = selection or Selection.mine()
        observation = self.observe()
        drawn = operations.draw_up_plan(subnet=self.subnet, selection=selection, user=user, observation=observation)
        return operations.roll_out(
            subnet=self.subnet, selection=selection, actor=user, plan_digest=drawn.digest, observation=observation,
            reason=reason,
        )  # fmt: skip

    @transaction.atomic
    def prove(self, rollout: Rollout) -> None:
        """What the worker leaves behind when a rollout is proven; the mirror has not seen it yet."""
        Fence.objects.filter(subnet=self.subnet).update(current=rollout.revision, rollout=None)
        Rollout.objects.filter(pk=rollout.pk).update(state=Rollout.State.PROVEN, finished_at=timezone.now())
        record(
            action=Action.ROLLOUT_PROVEN,
            actor=SYSTEM,
            subject=deploy.subject_of(rollout),
            after={"revision": rollout.revision.number, "state": "PROVEN"},
        )

    @transaction.atomic
    def end(self, rollout: Rollout, state: Rollout.State) -> None:
        """What the worker leaves behind when a rollout ends otherwise; a stuck one is let go of by a person."""
        now = timezone.now()
        released = now if state == Rollout.State.STUCK else None
        Fence.objects.filter(subnet=self.subnet).update(rollout=None)
        Rollout.objects.filter(pk=rollout.pk).update(state=state, finished_at=now, released_at=released)

    def settle(self, rollout: Rollout) -> None:
        """Proven, and shown on the board."""
        self.prove(rollout)
        follow.tick()

    def move(self, server: Server, source: Partition | None, target: Partition | None, by: User | None = None) -> None:
        operations.stage_move(server=server, source=source, target=target, actor=by or self.olga)

    def settled_move(self, server: Server, source: Partition | None, target: Partition | None) -> None:
        """A move that has gone all the way."""
        self.move(server, source, target)
        self.settle(self.roll_out(self.olga, reason="test"))


def build() -> Provider:
    """Everything in mode write, with an empty first revision."""
    subnet = Subnet.objects.create(name="lab", mode=Subnet.Mode.WRITE)
    for number, guid in enumerate(SM_PORTS, 1):
        ManagerHost.objects.create(
            subnet=subnet, name=f"m{number}", address="127.0.0.1", ssh_user="fabricui", host_key="ssh-ed25519 AAAA",
            port_guid=guid, wrapper_digest="0" * 64, reader_digest="0" * 64,
        )  # fmt: skip
    qualify(subnet)
    deploy.record_first_revision(subnet=subnet, table=PartitionTable(sm_ports=SM_PORTS), actor=SYSTEM)
    return Provider(
        subnet=subnet,
        acme=Tenant.objects.create(name="Acme", slug="acme"),
        bert=Tenant.objects.create(name="Bert", slug="bert"),
        olga=User.objects.create(username="olga", first_name="Olga", role=User.Role.OPERATOR),
        otto=User.objects.create(username="otto", first_name="Otto", role=User.Role.OPERATOR),
    )
