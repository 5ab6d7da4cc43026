"""Reports and enrolled servers for tests, as short as the test that reads them."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from audit.values import Actor, ActorKind

OLGA = Actor(kind=ActorKind.PERSON, key="olga", name="Olga")
GUID_A = "0x0002c90300010001"
GUID_B = "0x0002c90300020001"


def port(guid: str | None, **changes: Any) -> dict[str, Any]:
    """One reported InfiniBand port; its node GUID is the port GUID with the last digit 0."""
    value = {
        "device": "mlx5_0",
        "port": 1,
        "link_layer": "InfiniBand",
        "port_guid": guid,
        "node_guid": None if guid is None else guid[:-1] + "0",
        "system_image_guid": None if guid is None else guid[:-1] + "0",
        "subnet_prefix": "0xfe80000000000000",
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate_gbps": 200.0,
        "rate_text": "200 Gb/sec (4X HDR)",
        "lid": 7,
        "sm_lid": 1,
        "pkeys": {"0": "0x7fff"},
        "partition_candidate": True,
        "why_not": None,
    }
    return value | changes


def said(*ports: dict[str, Any], hostname: str = "srv-001", **changes: Any) -> dict[str, Any]:
    """A report's JSON."""
    value = {"schema": 1, "hostname": hostname, "boot_id": "boot-1", "ports": list(ports), "skipped": [], "note": None}
    return value | changes


def enrolled(subnet: Any, hostname: str = "srv-001") -> tuple[Any, str]:
    """A server that has enrolled, and its credential."""
    from inventory.operations import create_enrolment_token, enrol_server

    token = create_enrolment_token(subnet=subnet, name="rack 1", uses=1, lifetime=timedelta(hours=1), actor=OLGA)
    credential = f"secret of {hostname}"
    digest = hashlib.sha256(credential.encode()).hexdigest()
    return enrol_server(token=token, hostname=hostname, credential_digest=digest), credential


def registers(server: Any, *ports: dict[str, Any], **changes: Any) -> Any:
    """What became of `ports`, reported by `server` under its own name."""
    from inventory.operations import register_report
    from inventory.report import parse_report

    return register_report(server=server, report=parse_report(said(*ports, **{"hostname": server.hostname, **changes})))


def outcomes(receipt: Any) -> list[str]:
    """The outcome of each port."""
    return [outcome.outcome.value for outcome in receipt.outcomes]


def everything() -> dict[str, list[dict[str, Any]]]:
    """Every row of the room and of the trail: for tests that say nothing changed."""
    from django.apps import apps

    from audit.models import Event

    models = [*apps.get_app_config("inventory").get_models(), Event]
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}
