"""`fabricui servers`, `status`, `audit` and `activity`: what is, what becomes of it, and what happened."""

import argparse
from typing import Any, Final

from fabricui.client import finding, rolling_out
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, count, plain, table

NEWEST: Final = 5  # rollouts that `status` shows
FILTERS: Final = ("action", "actor", "subject", "tenant", "rollout", "request", "since", "until", "text")
OF_ACTIVITY: Final = ("tenant", "what", "who", "since", "until")


def servers(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """The servers, or one of them with its ports and where they are. Raises Failure."""
    if arguments.server:
        return _one_server(door, arguments.server, printer)
    query = {"hostname_contains": arguments.contains, "rack": arguments.rack, "tenant": arguments.tenant}
    asked = {name: value for name, value in query.items() if value}
    found = list(door.items("servers", most=arguments.most, **asked))
    if arguments.partition:
        key = str(finding.Partitions(door).named(arguments.partition)["id"])
        members = {row["server"] for row in door.items("memberships", partition=key)}
        found = [row for row in found if row["id"] in members]
    rows = [(row["hostname"], row["id"], row.get("rack", ""), row["reported_at"] or "never") for row in found]
    printer.show({"servers": found}, [*table(("HOST", "ID", "RACK", "REPORTED"), rows), _counted(found, "server")])
    return Exit.DONE


def _one_server(door: Door, name: str, printer: Printer) -> Exit:
    row = finding.server(door, name)
    key = str(row["id"])
    partitions = finding.Partitions(door)
    ports = list(door.items("ports", server=key))
    held = [_named(one, partitions) for one in door.items("memberships", server=key)]
    staged = [_named(one, partitions) for one in door.items("staged-changes", server=key)]
    lines = [f"{plain(row['hostname'])} ({plain(key)})"]
    lines += table(
        ("PORT", "DEVICE", "NO", "STATE", "PARTITIONS"),
        [
            (port["guid"], port["device"], port["number"], port["state"], _places(held, port["guid"]))
            for port in ports
        ],
    )  # fmt: skip
    lines += [
        f"staged: {plain(one['port'])} in {plain(one['partition_name'])}: "
        f"{plain(one['membership_from'] or 'no member')} to {plain(one['membership_to'] or 'no member')}"
        for one in staged
    ]
    printer.show({"server": row, "ports": ports, "memberships": held, "staged": staged}, lines)
    return Exit.DONE


def status(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """How the subnets stand and the newest rollouts; or one rollout, with an exit code that says how it ended."""
    if arguments.rollout:
        return rolling_out.follow(door, printer, _rollout(door, arguments.rollout), arguments)
    subnets = list(door.items("subnets"))
    rollouts = list(door.items("rollouts", most=NEWEST))
    drift = sum(int(row["open_drift"]) for row in subnets)
    lines = table(
        ("SUBNET", "MODE", "FROZEN", "ROLLOUT", "DRIFT", "LOOKED AT"),
        [
            (row["name"], row["mode"], _frozen(row), row["rollout"] or "-", row["open_drift"], row["looked_at"] or "-")
            for row in subnets
        ],
    )  # fmt: skip
    lines += ["", *table(
        ("ROLLOUT", "REVISION", "STATE", "BY", "ASKED AT"),
        [
            (row["id"], row["revision_number"], row["state"], row["started_by"], row["requested_at"])
            for row in rollouts
        ],
    )]  # fmt: skip
    if drift:
        lines.append(f"{count(drift, 'difference', 'differences')} from the current revision: see the page Drift.")
    printer.show({"subnets": subnets, "rollouts": rollouts}, lines)
    return Exit.DONE


def audit(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """Events of the trail, newest first."""
    asked = {name: getattr(arguments, name) for name in FILTERS if getattr(arguments, name)}
    events = list(door.items("audit", "events", most=arguments.most, **asked))
    rows = [
        (one["number"], one["at"], one["action"], one["actor"]["name"], one["subject"]["label"], one["reason"])
        for one in events
    ]
    lines = table(("NUMBER", "AT", "ACTION", "BY", "WHAT", "REASON"), rows)
    printer.show({"events": events}, [*lines, _counted(events, "event")])
    return Exit.DONE


def activity(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """The newest lines of a tenant's activity that match. Raises Failure."""
    asked = {name: value for name in OF_ACTIVITY if (value := getattr(arguments, name))}
    lines = list(door.items("activity", most=arguments.most, **asked))
    rows = [
        (
            one["at"],
            one["who"]["name"],
            f"{one['words']} {one['about']['name']}",
            "; ".join(one["details"]),
            one["reason"],
        )
        for one in lines
    ]
    shown = table(("AT", "BY", "WHAT", "DETAILS", "REASON"), rows)
    printer.show({"activity": lines}, [*shown, _counted(lines, "line")])
    return Exit.DONE


def _what(line: dict[str, Any]) -> str:
    return f"{line['words']} {line['about']['name']}"


def _rollout(door: Door, key: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = door.get("rollouts", key)
    except Failure as failure:
        if failure.exit_code is Exit.NOT_FOUND:
            sentence = f"There is no rollout {key} that you may see."
            raise Failure(Exit.NOT_FOUND, sentence, mend="`fabricui status` shows them.", code="not_found") from None
        raise
    return found


def _named(row: dict[str, Any], partitions: finding.Partitions) -> dict[str, Any]:
    return {**row, "partition_name": partitions.name_of(row["partition"])}


def _places(held: list[dict[str, Any]], port: object) -> str:
    return ", ".join(f"{one['partition_name']} ({one['membership']})" for one in held if one["port"] == port) or "-"


def _frozen(row: dict[str, Any]) -> str:
    return f"yes: {row['frozen_reason']}" if row["is_frozen"] else "no"


def _counted(found: list[Any], word: str) -> str:
    return f"{count(len(found), word, word + 's')}."
