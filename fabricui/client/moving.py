"""`fabricui move`: stage that servers move. An operator's go out with `fabricui rollout`, a tenant's by themselves."""

import argparse
from typing import Any, Final

from fabricui.client import finding, turning
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, count, table

MOST: Final = 480  # servers of one request (docs/api.md): all of them are staged, or none


def move(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """Stage it, all or nothing. Raises Failure."""
    names = list(dict.fromkeys(arguments.servers))
    if len(names) > MOST:
        raise Failure(Exit.USAGE, f"{len(names)} servers are too many for one move. Move at most {MOST} at once.")
    partitions = finding.Partitions(door)
    target = None if arguments.out else partitions.named(arguments.to)
    source = partitions.named(arguments.source) if arguments.source is not None else None
    moves = []
    for name in names:
        found = finding.server(door, name)
        leaves = _source(door, found, source, target, partitions, arguments)
        moves.append({"server": found["id"], "source": leaves})
    body: dict[str, Any] = {
        "moves": moves, "target": None if target is None else target["id"], "keep": arguments.add,
        "reason": arguments.reason,
    }  # fmt: skip
    if arguments.membership:
        body["membership"] = arguments.membership
    answer = door.post("staged-changes", body=body, key=arguments.key or "")
    staged = answer.body["items"]
    ports = len({row["port"] for row in staged})
    servers = count(len(moves), "server", "servers")
    rows = sorted(
        (row["port"], partitions.name_of(row["partition"]), row["membership_from"] or "-", row["membership_to"] or "-")
        for row in staged
    )
    lines = table(("PORT", "PARTITION", "FROM", "TO"), rows) if rows else []
    turn: dict[str, Any] | None = answer.body.get("turn")
    goes = "Nothing has reached the fabric yet." if turn is None else "It goes out by itself."
    said = f"Staged: {servers}, {count(ports, 'port', 'ports')}. {goes}"
    if not rows:
        said = f"{servers} stay as they are on the fabric: what was staged before is undone."
    lines.append(said)
    exit_code = Exit.DONE
    if arguments.wait and rows:
        printer.tell(said)
        turn = turning.wait(door, printer, turn, {str(one["server"]) for one in moves}, arguments.within)
        exit_code = turning.exit_of(turn)
        if turn is None:
            printer.warn("It does not go out by itself: an operator rolls it out (`fabricui rollout`).")
    if turn is not None:
        lines += turning.in_words(printer, turn)
    printer.show({"moved": moves, "target": body["target"], "staged": staged, "turn": turn}, lines)
    return exit_code


def _source(
    door: Door, server: dict[str, Any], named: dict[str, Any] | None, target: dict[str, Any] | None,
    partitions: finding.Partitions, arguments: argparse.Namespace,
) -> str | None:  # fmt: skip
    """The id of the partition that the server leaves; None when it leaves none. Raises Failure when is to say."""
    if named is not None:
        return str(named["id"])
    if arguments.add:
        return None
    wanted = _wanted(door, str(server["id"]))
    goal = None if target is None else str(target["id"])
    if goal in wanted and arguments.membership:
        return goal  # it is there, and only its membership changes
    others = sorted(wanted - {goal})
    # A server stays in what its tenant shares with others when it moves between the tenant's own partitions.
    own = [key for key in others if partitions.by_id.get(key, {}).get("tenant") is not None]
    choice = own or others
    if goal in wanted and not choice:
        return goal  # FabricUI says that it is there already
    if len(choice) > 1:
        names = ", ".join(sorted(partitions.name_of(key) for key in choice))
        raise Failure(
            Exit.USAGE, f"{server['hostname']} is in {names}.", code="ambiguous",
            mend="Say which one it leaves with --from, or that it stays in all of them with --add.",
        )  # fmt: skip
    if not choice and target is None:
        raise Failure(Exit.REFUSED, f"{server['hostname']} is in no partition: there is nothing to take it out of.")
    return choice[0] if choice else None


def _wanted(door: Door, server: str) -> set[str]:
    """The partitions that any port of the server is to be in, once everything is rolled out that is staged."""
    places = {(row["port"], row["partition"]) for row in door.items("memberships", server=server)}
    for row in door.items("staged-changes", server=server):
        place = (row["port"], row["partition"])
        places = places - {place} if row["membership_to"] is None else places | {place}
    return {str(partition) for _, partition in places}
