"""What FabricUI's database must know of a lab before anything can be rolled out there. Needs Django to be set up."""

import json
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

from lab.servers import AGENT, sysfs_root, write_tree
from lab.site import Site

if TYPE_CHECKING:
    from audit.values import Actor
    from inventory.models import Server, Subnet

LAB = "Made by the lab for itself. The fabric is simulated: it says nothing about a real one."


def lab_actor() -> "Actor":
    """Who made the rows that no person made."""
    from audit.values import Actor, ActorKind

    return Actor(kind=ActorKind.SYSTEM, key="lab", name="the lab")


def qualify(subnet: "Subnet") -> None:
    """Store and sign the lab's own report on `subnet`, for the manager hosts that are enrolled now.

    It measures nothing and says so. Versions and options stay open, because the lab changes them while it runs.
    """
    from deploy import qualification
    from inventory.models import ManagerHost
    from subnet.qualification import CHECKLIST

    lab = lab_actor()
    managers = {
        host.name: {"public_id": host.public_id, "port_guid": str(host.port_guid), "opensm_version": "",
                    "options_digest": ""}
        for host in ManagerHost.objects.filter(subnet=subnet)
    }  # fmt: skip
    request = qualification.request(subnet=subnet, actor=lab)
    report = {
        "version": 1, "source": "lab", "subnet": subnet.name, "managers": managers, "fabric": None, "sweeps": None,
        "findings": [{"check": "lab", "severity": "note", "sentence": LAB, "where": ""}], "is_fit": True,
    }  # fmt: skip
    stored = qualification.store(request=request, report=report)
    qualification.sign(qualification=stored, answers=dict.fromkeys(CHECKLIST, True), actor=lab, reason=LAB)


def enrol_site(site: Site, *, with_revision: bool = True) -> tuple["Subnet", str]:
    """Write subnet (in write mode), manager hosts and first revision; return the subnet and an enrolment token.

    The first revision is the file that both manager hosts began with; without one the site waits to be adopted.
    """
    from deploy import operations as deploy
    from inventory import operations as inventory
    from inventory.models import Subnet
    from subnet.table import PartitionTable

    lab = lab_actor()
    subnet = inventory.create_subnet(name="lab", actor=lab)
    for manager in site.managers:
        inventory.enrol_manager_host(
            subnet=subnet,
            name=manager.name,
            address=manager.address,
            ssh_port=manager.ssh_port,
            ssh_user=manager.user,
            host_key=manager.host_key,
            port_guid=manager.port_guid,
            wrapper_digest=manager.wrapper_digest,
            reader_digest=manager.reader_digest,
            actor=lab,
        )
    qualify(subnet)
    inventory.set_mode(subnet=subnet, mode=Subnet.Mode.WRITE, actor=lab, reason=LAB)
    if with_revision:
        table = PartitionTable(sm_ports=tuple(manager.port_guid for manager in site.managers))
        deploy.record_first_revision(subnet=subnet, table=table, actor=lab)
    token = inventory.create_enrolment_token(
        subnet=subnet, name="lab rack", uses=len(site.fabric.servers), lifetime=timedelta(hours=12), actor=lab
    )
    return subnet, token


def register_servers(site: Site, token: str) -> list["Server"]:
    """Register every server by what the real agent reads from its tree, without going through the door."""
    from inventory.operations import enrol_server, register_report
    from inventory.operations.enrolment import digest_of
    from inventory.report import parse_report

    reading = site.read_ports([guid for box in site.fabric.servers for guid in box.port_guids])
    servers = []
    for box in site.fabric.servers:
        root = sysfs_root(site, box)
        write_tree(root, box, reading)
        said = subprocess.run(
            [sys.executable, AGENT, "--dry-run", "--sysfs-root", str(root), "--hostname", box.hostname],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        server = enrol_server(token=token, hostname=box.hostname, credential_digest=digest_of(box.hostname))
        register_report(server=server, report=parse_report(json.loads(said.stdout)))
        servers.append(server)
    return servers
