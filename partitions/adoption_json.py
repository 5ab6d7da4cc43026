"""An adoption as JSON for programs: stable keys, P_Keys and GUIDs as text."""

import hashlib
from dataclasses import asdict
from typing import Any

from deploy.models import Rollout
from partitions.adoption import Adoption
from subnet.adoption_proof import Explanation, PortDifference


def adoption_json(adoption: Adoption, rollout: Rollout | None = None) -> dict[str, Any]:
    """Everything the page shows of one look, and how the rollout that followed ended."""
    explanation = adoption.explanation
    return {
        "subnet": adoption.subnet.name,
        "observation": adoption.observation.public_id,
        "adoptable": adoption.is_adoptable,
        "obstacles": [asdict(obstacle) for obstacle in adoption.obstacles],
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(adoption.files.items())},
        **(_explained(explanation) if explanation is not None else {}),
        "diff": adoption.diff,
        "rollout": None if rollout is None else {"state": rollout.state, "cause": rollout.cause},
    }


def _explained(explanation: Explanation) -> dict[str, Any]:
    partitions = () if explanation.adopted is None else explanation.adopted.partitions
    return {
        "findings": [asdict(finding) for finding in explanation.reading.findings],
        "notes": [asdict(note) for note in explanation.notes],
        "partitions": [
            {
                "pkey": str(partition.pkey),
                "name": partition.name,
                "found_name": partition.found_name,
                "auto_numbered": partition.is_auto_numbered,
                "programmed": partition.is_programmed,
                "members": partition.members,
                "keywords": [str(member) for member in partition.keywords],
            }
            for partition in partitions
        ],
        "ports": {
            "compared": explanation.compared,
            "not_compared": explanation.not_compared,
            "would_change": _differences(explanation.differences),
        },
        "after_takeover": {guid: _differences(ports) for guid, ports in explanation.after_takeover.items()},
    }


def _differences(ports: tuple[PortDifference, ...]) -> list[dict[str, Any]]:
    return [{"port": port.guid, "found": list(port.found), "written": list(port.written)} for port in ports]
