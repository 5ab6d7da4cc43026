"""Receipt: what became of a report, port by port, as the agent is told."""

from dataclasses import dataclass
from typing import Any

from inventory.models import Server
from inventory.reconcile import Outcome
from subnet.guid import GUID


@dataclass(frozen=True, slots=True)
class PortOutcome:
    """What became of one reported port."""

    device: str
    number: int
    guid: GUID | None
    outcome: Outcome
    sentence: str
    is_confirmed: bool

    def to_json(self) -> dict[str, Any]:
        """The outcome as the agent gets it."""
        return {
            "device": self.device,
            "port": self.number,
            "port_guid": None if self.guid is None else str(self.guid),
            "outcome": self.outcome.value,
            "sentence": self.sentence or None,
            "confirmed": self.is_confirmed,
        }


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a report: an outcome per port, and the known ports of the server it did not mention."""

    server: Server
    outcomes: tuple[PortOutcome, ...]
    not_reported: tuple[GUID, ...]
    is_changed: bool  # whether anything but `reported_at` was written
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """The receipt as the agent gets it."""
        return {
            "server": self.server.public_id,
            "hostname": self.server.hostname,
            "changed": self.is_changed,
            "ports": [outcome.to_json() for outcome in self.outcomes],
            "not_reported": [str(guid) for guid in self.not_reported],
            "sentence": self.sentence or None,
        }
