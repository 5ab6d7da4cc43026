"""What a read-back leaves behind for people: plain JSON values, never a judgement of their own.

Shape of `Rollout.read_back`:
{"counts": {"ports", "proven", "absent", "unreadable", "discrepant", "discrepancies", "unaffected_ports_changed"},
 "discrepancies": [sentence], "owed": [port GUID], "drifted": [port GUID], "not_checked": [sentence],
 "census": [{"guid", "lid", "state", "priority", "registered", "leaf", "leaf_port"}], "census_problems": [sentence],
 "log": [line], "hosts": [{"name", "role", "digest"}],
 "seconds": {"barrier", "tables"}, "ages": {"before_s"}, "smps", "moved", "absent",
 "second_reading": {"host", "ports" read by it and by the master, "differ"}}
Lists of ports and sentences are cut after 100; the counts are of all. Whole are "moved" {port GUID: [LID, state]}, the
unaffected ports with another LID or state than before, and "absent", the affected ports that are (`decisions.accept`).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from deploy.look import HostView, Look
from deploy.proof import Judgement
from deploy.readiness import binding
from deploy.story import Evidence
from subnet.guid import GUID
from subnet.observed import ObservedFabric

MOST: Final = 100


def read_back(judgement: Judgement, *, registered: Collection[GUID], before_at: datetime | None) -> dict[str, Any]:
    """The evidence of one judgement; `before_at` is when the tables compared with were read."""
    reading, compared = judgement.reading, judgement.compared
    second = reading.second
    not_checked = [*compared.not_checked, *(text for text in (reading.log_failure, second.failure) if text)]
    return {
        "counts": compared.counts,
        "discrepancies": [discrepancy.sentence for discrepancy in compared.discrepancies][:MOST],
        "owed": list(compared.owed)[:MOST],
        "drifted": list(compared.drifted)[:MOST],
        "moved": {guid: list(place) for guid, place in sorted(compared.moved.items())},
        "absent": [guid for guid in compared.owed if guid not in reading.fabric.ports],
        "not_checked": not_checked,
        "census": census_rows(reading.fabric, registered=registered),
        "census_problems": [problem.sentence for problem in judgement.problems],
        "log": [*judgement.lines.partition, *judgement.lines.ports],
        "hosts": [{"name": view.name, "role": view.role, "digest": view.digest} for view in reading.hosts.views],
        "seconds": {"barrier": round(reading.settled.waited_s, 3), "tables": round(reading.fabric.seconds, 3)},
        "ages": {"before_s": None if before_at is None else round((reading.read_at - before_at).total_seconds(), 1)},
        "smps": reading.fabric.smps,
        "second_reading": {"host": second.host, "ports": second.ports, "differ": len(second.differ)},
    }


def kept(judgement: Judgement, *, known: Mapping[str, int], registered: Collection[GUID]) -> Evidence:
    """The reading as an Observation keeps it."""
    reading = judgement.reading
    return Evidence(
        tables=reading.data,
        fabric=reading.fabric,
        read_at=reading.read_at,
        managers=manager_rows(reading.hosts.views, known=known),
        census=census_rows(reading.fabric, registered=registered),
    )


def outcomes(look: Look) -> dict[str, dict[str, Any]]:
    """What stood on each host at the end, as columns of HostOutcome."""
    return {
        view.name: {"role_at_proof": view.role, "digest": view.digest, "failure": view.failure} for view in look.views
    }


def manager_rows(views: Iterable[HostView], *, known: Mapping[str, int]) -> list[dict[str, Any]]:
    """One row a manager host: what lies in its file, who its SM is, what is wrong there. `known`: digest → number."""
    return [
        {
            "host": view.name,
            "digest": view.digest,
            "revision": known.get(view.digest),
            "role": view.role,
            "error": view.failure or None,
            "problems": [] if view.failure else list(binding(view)),
            **(
                {}
                if view.identity is None
                else {"opensm_version": view.identity.opensm_version, "options_digest": view.identity.options_digest}
            ),
        }
        for view in views
    ]


def census_rows(fabric: ObservedFabric, *, registered: Collection[GUID]) -> list[dict[str, Any]]:
    """One row for each SM that answered, with the place where its port is plugged."""
    rows = []
    for sm in fabric.sms:
        port = fabric.ports.get(sm.guid)
        leaf = port.leaf if port is not None else None
        rows.append(
            {
                "guid": sm.guid,
                "lid": sm.lid,
                "state": sm.state,
                "priority": sm.priority,
                "registered": sm.guid in registered,
                "leaf": leaf.guid if leaf is not None else None,
                "leaf_port": leaf.port if leaf is not None else None,
            }
        )
    return rows
