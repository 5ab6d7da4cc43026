"""`fabricui plan`: draw the plan of a selection on a fresh look at the fabric, and say what it does."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from fabricui.client import finding
from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, count, plain, table

LOOK_WITHIN_S: Final = 180.0
LOOK_EVERY_S: Final = 1.0
LOOKS: Final = 3  # a rollout that ends between look and plan makes the look too old
MOST_LINES: Final = 40  # of index changes in the table; --json has all that the API shows


def plan(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """Draw it and show it. Raises Failure."""
    drawn = draw(door, arguments, printer, look=not arguments.no_look)
    printer.show({"plan": drawn, "index_changes": index_changes(drawn)}, in_words(drawn))
    return Exit.DONE


def draw(door: Door, arguments: argparse.Namespace, printer: Printer, *, look: bool = True) -> dict[str, Any]:
    """The plan; with `look` on a look at the fabric that a rollout may stand on. Raises Failure."""
    query = {}
    if arguments.subnet:
        arguments.subnet_id = finding.subnet(door, arguments.subnet)
        query["subnet"] = arguments.subnet_id
    for _ in range(LOOKS):
        drawn: dict[str, Any] = door.get("plans", arguments.selection, **query)
        if drawn["is_fresh"] or not look:
            return drawn
        _look(door, str(drawn["subnet"]), printer)
    return drawn


def _look(door: Door, subnet: str, printer: Printer) -> None:
    printer.tell("Looking at the fabric …")
    asked = door.post("looks", body={"subnet": subnet}).body
    until = door.clock() + LOOK_WITHIN_S
    while asked["state"] not in ("DONE", "FAILED"):
        if door.clock() > until:
            sentence = f"The look at the fabric did not end within {LOOK_WITHIN_S:.0f} s."
            raise Failure(Exit.CONFLICT, sentence, mend="See that the worker “observe” runs.", code="look_not_over")
        door.sleep(LOOK_EVERY_S)
        asked = door.get("looks", str(asked["id"]))
    if asked["state"] == "FAILED":
        raise Failure(Exit.CONFLICT, f"The fabric could not be read: {asked['failure']}", code="look_failed")


def index_changes(drawn: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each port the entries that leave an index, come to one, or cannot be foretold: {port, entry, before, after}.

    `before` and `after` are lists of indexes, null where the entry does not stand; an `after` of several is a set of
    possible ones.
    """
    found = []
    for port in drawn["ports"]:
        before = {one["entry"]: one["indexes"] for one in port["before"] or ()}
        after = {one["entry"]: one["indexes"] for one in port["after"] or ()}
        if port["before"] is None or port["after"] is None:
            found.append({"port": port["guid"], "entry": None, "before": None, "after": None})
            continue
        found += [
            {"port": port["guid"], "entry": entry, "before": before.get(entry), "after": after.get(entry)}
            for entry in sorted({*before, *after})
            if before.get(entry) != after.get(entry)
        ]
    return found


def in_words(drawn: dict[str, Any]) -> Iterator[str]:
    """The plan for a reader."""
    yield plain(drawn["sentence"])
    yield f"{count(drawn['affected_ports'], 'port changes', 'ports change')} on the fabric."
    changes = index_changes(drawn)
    rows = [(one["port"], one["entry"] or "not read", _at(one["before"]), _at(one["after"])) for one in changes]
    if rows:
        yield ""
        yield from table(("PORT", "ENTRY", "INDEX NOW", "INDEX THEN"), rows[:MOST_LINES])
    if len(rows) > MOST_LINES:
        yield f"… and {len(rows) - MOST_LINES} more; --json shows them."
    for told in (*refusals(drawn), *others(drawn)):
        yield ""
        yield told
    yield ""
    if not drawn["is_fresh"]:
        yield "The look that it stands on is too old for a rollout, which looks again."
    yield f"selection {plain(drawn['selection'])}"
    yield f"digest    {plain(drawn['digest'])}"
    yield f"look      {plain(drawn['look'] or '-')}"


def refusals(drawn: dict[str, Any]) -> list[str]:
    """What a rollout would be refused for."""
    return [
        f"REFUSED by {plain(one['rule'])}: {plain(one['sentence'])}"
        for one in drawn["violations"]
        if one["severity"] == "refuse"
    ]


def others(drawn: dict[str, Any]) -> Iterator[str]:
    """What else should be known: warnings, hazards, effects, and why it asks for a reason."""
    for one in drawn["violations"]:
        if one["severity"] != "refuse":
            yield f"{plain(one['severity'])} {plain(one['rule'])}: {plain(one['sentence'])}"
    for one in drawn["hazards"]:
        when = " (only at a takeover)" if one["needs_takeover"] else ""
        ports = count(len(one["ports"]), "port", "ports")
        yield f"HAZARD {plain(one['kind'])}{when}, {ports}: {plain(one['sentence'])}"
    for one in drawn["effects"]:
        yield f"effect {plain(one['kind'])}: {plain(one['sentence'])}"
    if drawn["needs_reason"]:
        yield f"It needs a --reason: {plain(drawn['needs_reason'])}"
    if drawn["waiting"]:
        yield f"{count(len(drawn['waiting']), 'server waits', 'servers wait')} to be marked clean first."


def _at(indexes: list[int] | None) -> str:
    if indexes is None:
        return "-"
    return "no room" if not indexes else str(indexes[0]) if len(indexes) == 1 else f"one of {_spans(indexes)}"


def _spans(indexes: list[int]) -> str:
    """1, 2, 3, 7 as 1–3, 7."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
