"""Some ports' tables against the current revision: what differs, and whether isolation is lost. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from deploy.drift_findings import Finding
from deploy.drift_models import Drift
from subnet.observed import ObservedFabric
from subnet.readback import compare
from subnet.table import PartitionTable

FEW: Final = 64  # ports; a smaller part alone says nothing of the whole fabric
MOST_TOLD: Final = 50
_ARMED: Final = frozenset({"ARMED", "ACTIVE"})  # states of a port whose keys its SM has set
_NOTHING: Final = ObservedFabric(ports={}, sms=(), topology="list", list_mtime_ns=None, smps=0, seconds=0.0, timeouts=0)


@dataclass(frozen=True, slots=True)
class PartJudgement:
    """What one part of a scan says. `wrong`: port GUID → sentences; `read`: the HCA ports whose table was read.

    `isolation` is a sentence when every port that was read is in OpenSM's fallback and should not be.
    """

    wrong: Mapping[str, tuple[str, ...]]
    read: frozenset[str]
    present: frozenset[str]  # those that the reading names, read or not
    armed: int  # how many of those read its SM has armed: only they say anything of isolation
    isolation: str

    def confirmed_by(self, again: "PartJudgement") -> "PartJudgement":
        """What both readings say: a port in the middle of a sweep is not drift."""
        wrong = {guid: again.wrong[guid] for guid in self.wrong.keys() & again.wrong.keys()}
        return PartJudgement(wrong, again.read, again.present, again.armed, again.isolation if self.isolation else "")


def judge_part(table: PartitionTable, reading: ObservedFabric) -> PartJudgement:
    """Judge every HCA port of a reading by the table alone: what it held before does not count.

    Only a port that the SM has armed speaks against the table (ADR 9).
    """
    ports = reading.end_ports
    # A hall that is switched on shows the hardware's 0xffff on every port until the SM arms it.
    armed = {guid: port for guid, port in reading.ports.items() if port.node_type != "CA" or port.state in _ARMED}
    after = replace(reading, ports=armed)
    compared = compare(wanted=table, before=_NOTHING, after=after, affected=after.end_ports.keys(), predictions={})
    wrong: dict[str, list[str]] = {}
    isolation = ""
    for discrepancy in compared.discrepancies:
        if discrepancy.kind == "isolation_lost":
            isolation = discrepancy.sentence
        elif discrepancy.is_contrary and discrepancy.guid in ports:
            wrong.setdefault(str(discrepancy.guid), []).append(discrepancy.sentence)
    return PartJudgement(
        wrong={guid: tuple(sentences) for guid, sentences in wrong.items()},
        read=frozenset(str(guid) for guid, port in ports.items() if port.is_read),
        present=frozenset(map(str, ports)),
        armed=sum(port.is_read for port in after.end_ports.values()),
        isolation=isolation,
    )


def merged(
    before: Mapping[str, Any], judged: PartJudgement, *, after: str, last: str, has_more: bool, at: str
) -> dict[str, Any]:
    """The ports known to be wrong once a part was read: `before`, with what that part says about its stretch of GUIDs.

    {port GUID: {"sentences": […], "since": ISO time}}. A port of the stretch that is not on the fabric any more is let
    go: OpenSM sets its table anew when it comes back.
    """

    def is_gone(guid: str) -> bool:
        return guid not in judged.present and after < guid and (guid <= last or not has_more)

    kept = {guid: entry for guid, entry in before.items() if guid not in judged.read and not is_gone(guid)}
    for guid, sentences in judged.wrong.items():
        since = before.get(guid, {}).get("since", at)
        kept[guid] = {"sentences": list(sentences), "since": since}
    return dict(sorted(kept.items()))


def finding_of(ports: Mapping[str, Any], *, cause: str) -> Finding | None:
    """The one finding about tables; None when no port is known to be wrong."""
    if not ports:
        return None
    sentences = [sentence for entry in ports.values() for sentence in entry["sentences"]]
    count = len(ports)
    head = f"{count} {'port holds' if count == 1 else 'ports hold'} other P_Keys than the current revision says."
    more = len(sentences) - MOST_TOLD
    told = [head, *sentences[:MOST_TOLD], *([f"And {more} more."] if more > 0 else [])]
    return Finding(Drift.Kind.TABLE, "fabric", tuple(told), cause, {"ports": dict(ports)})
