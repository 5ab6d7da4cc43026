"""A signed qualification report for the rows of a test, written without events: the room's own tests make real ones."""

import hashlib

from django.utils import timezone

from deploy.models import Qualification
from deploy.qualification import canonical
from inventory.models import ManagerHost, Subnet


def qualify(
    subnet: Subnet, *, version: str = "", options: str = "", is_fit: bool = True, rate: int | None = None
) -> Qualification:
    """Make the report on the manager hosts that are enrolled now; "" leaves version or options open."""
    managers = {
        host.name: {"public_id": host.public_id, "port_guid": str(host.port_guid), "opensm_version": version,
                    "options_digest": options}
        for host in ManagerHost.objects.filter(subnet=subnet)
    }  # fmt: skip
    findings = [] if is_fit else [{"check": "owner", "severity": "refuse", "sentence": "It is UFM's.", "where": "m1"}]
    report = {
        "version": 1, "source": "site", "subnet": subnet.name, "managers": managers, "findings": findings,
        "is_fit": is_fit, "fabric": None, "sweeps": None if rate is None else {"rate": rate},
    }  # fmt: skip
    now = timezone.now()
    return Qualification.objects.create(
        subnet=subnet, state="DONE", requested_by_key="test", requested_by_name="a test", requested_at=now,
        finished_at=now, report=report, digest=hashlib.sha256(canonical(report)).hexdigest(), is_fit=is_fit,
        signed_at=now if is_fit else None, signed_by_name="a test" if is_fit else "", answers={},
    )  # fmt: skip
