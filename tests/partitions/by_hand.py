"""A subnet that runs on hand-written files: rows without a first revision, and looks at a fabric on those files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from deploy import files, tables
from deploy.models import Observation
from inventory.models import HCA, ManagerHost, Port, Server, Subnet
from people.models import Tenant, User
from subnet.guid import GUID
from subnet.opensm_reading import read
from tests.qualified import qualify
from tests.subnet.test_adoption import LEAVES, SM_PORTS, N, fabric

HOSTS = ("m1", "m2")


@dataclass
class ByHand:
    """The rows; node01 and node02 run the SMs, node03 is a server's port that has reported itself."""

    subnet: Subnet
    acme: Tenant
    bert: Tenant
    olga: User
    server: Server

    def look(
        self,
        data: bytes,
        *,
        standby: bytes | None = None,
        tables_of: bytes | None = None,
        rogue: GUID | None = None,
        roles: tuple[str, str] = ("MASTER", "STANDBY"),
        change: Mapping[GUID, Mapping[int, int]] | None = None,
        columns: Mapping[str, Mapping[str, object]] | None = None,
        age: timedelta = timedelta(0),
    ) -> Observation:
        """A finished look: `data` on the master, `standby` on the other, the tables as OpenSM writes them.

        `tables_of` is the file the fabric really runs on, `columns` what else is to stand in a host's row.
        """
        held = {**read(tables_of or data, fabric()).tables, **(change or {})}
        found = (data, data if standby is None else standby)
        files.keep_read(found, known=())
        sms = [(guid, role) for guid, role in zip(SM_PORTS, roles, strict=True) if role]
        sms += [(rogue, "STANDBY")] if rogue else []
        at = timezone.now() - age
        return Observation.objects.create(
            subnet=self.subnet,
            state=Observation.State.DONE,
            why="adoption",
            requested_at=at,
            read_at=at,
            finished_at=at,
            tables=tables.store(_lines(held, sms), ports=len(held)),
            managers=[
                {
                    "host": name, "digest": hashlib.sha256(one).hexdigest(), "revision": None, "role": role,
                    "error": None, "problems": [], **(columns or {}).get(name, {}),
                }
                for name, one, role in zip(HOSTS, found, roles, strict=True)
            ],
            census=[
                {"guid": guid, "lid": 1, "state": role, "priority": 5, "registered": guid in SM_PORTS, "leaf": None,
                 "leaf_port": None}
                for guid, role in sms
            ],
        )  # fmt: skip


def _lines(held: Mapping[GUID, Mapping[int, int]], sms: list[tuple[GUID, str]]) -> bytes:
    """The reader's JSON lines."""
    lines: list[dict[str, object]] = [{"kind": "reading", "version": 1, "topology": "discovery", "list_mtime_ns": None}]
    for lid, (guid, keys) in enumerate(sorted(held.items()), start=1):
        lines.append(
            {
                "kind": "port", "port_guid": guid, "node_guid": guid, "system_guid": None, "port": 1, "lid": lid,
                "node_type": "SW" if guid in LEAVES else "CA", "state": "ACTIVE", "phys": "LinkUp", "master_sm_lid": 1,
                "is_sm": guid in SM_PORTS, "capacity": 8 if guid in LEAVES else 64, "description": "",
                "pkeys": {str(index): f"0x{number:04x}" for index, number in keys.items()},
                "leaf": None, "reading": "read", "error": None,
            }
        )  # fmt: skip
    for guid, role in sms:
        lines.append({"kind": "sm", "port_guid": guid, "lid": 1, "state": role, "priority": 5, "activity": 1})
    lines.append({"kind": "end", "ports": len(held), "smps": 1, "timeouts": 0, "seconds": 0.1})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def build(*, mode: str = Subnet.Mode.WRITE) -> ByHand:
    """The rows of a subnet that FabricUI has never placed anything on."""
    subnet = Subnet.objects.create(name="lab", mode=mode)
    for name, guid in zip(HOSTS, SM_PORTS, strict=True):
        ManagerHost.objects.create(
            subnet=subnet, name=name, address="127.0.0.1", ssh_user="fabricui", host_key="ssh-ed25519 AAAA",
            port_guid=guid, wrapper_digest="0" * 64, reader_digest="0" * 64,
        )  # fmt: skip
    qualify(subnet)
    server = Server.objects.create(subnet=subnet, hostname="srv-003")
    hca = HCA.objects.create(server=server, node_guid=GUID("0x0210fa0300a30000"), device="mlx5_0")
    now: datetime = timezone.now()
    Port.objects.create(subnet=subnet, hca=hca, guid=N[3], confirmed_at=now, confirmed_how="person")
    return ByHand(
        subnet=subnet,
        acme=Tenant.objects.create(name="Acme", slug="acme"),
        bert=Tenant.objects.create(name="Bert", slug="bert"),
        olga=User.objects.create(username="olga", first_name="Olga", role=User.Role.OPERATOR),
        server=server,
    )
