"""`fabricui move --wait`: a tenant's moves go out in turns by themselves; see the one end in which these go."""

from collections.abc import Collection
from typing import Any, Final

from fabricui.client.door import Door
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, plain

EVERY_S: Final = 1.0


def in_words(printer: Printer, turn: dict[str, Any]) -> list[str]:
    """A turn for a reader."""
    said = [f"Turn {plain(turn['id'])}: {printer.state(turn['state'])}"]
    return [*said, plain(turn["sentence"])] if turn["sentence"] else said


def exit_of(turn: dict[str, Any] | None) -> Exit:
    """What a turn in this state means for a script; None: nothing goes out by itself, somebody rolls it out."""
    if turn is not None and not turn["is_over"]:
        return Exit.STILL_RUNNING
    return Exit.DONE if turn is not None and turn["state"] == "PROVEN" else Exit.NOT_PROVEN


def wait(
    door: Door, printer: Printer, turn: dict[str, Any] | None, servers: Collection[str], within_s: float
) -> dict[str, Any] | None:
    """The turn in which the moves of `servers` went, when it is over or the time is up. Raises Failure.

    A turn that was rolling out already when they were staged does not carry them; the next one does.
    """
    until = door.clock() + within_s
    said = ""
    while turn is not None:
        told = f"{turn['state']} {turn['sentence']}".strip()
        if told != said:
            said = told
            printer.tell(plain(told))
        if turn["is_over"]:
            newer = _next(door, turn, servers)
            if newer is None:
                return turn
            turn = newer
            continue
        if door.clock() > until:
            printer.warn(f"It is not over after {within_s:.0f} s and goes on by itself: turn {plain(turn['id'])}.")
            return turn
        try:
            door.sleep(EVERY_S)
            turn = door.get("turns", str(turn["id"]))
        except KeyboardInterrupt:
            raise Failure(
                Exit.INTERRUPTED, f"Turn {turn['id']} goes on without this program.", code="interrupted",
                where=str(turn["id"]),
            ) from None  # fmt: skip
        except Failure as failure:
            if failure.exit_code is Exit.UNREACHABLE:
                failure.more = (*failure.more, f"Turn {turn['id']} goes on without this program.")
            raise
    return turn


def _next(door: Door, turn: dict[str, Any], servers: Collection[str]) -> dict[str, Any] | None:
    """The turn that carries what this one has not; None when it has carried all, or nothing goes out by itself."""
    if turn["state"] != "PROVEN" or not any(row["server"] in servers for row in door.items("staged-changes")):
        return None
    newest = next(iter(door.items("turns", tenant=str(turn["tenant"]), most=1)), None)
    if newest is None or newest["id"] == turn["id"]:
        sentence = "What was staged is staged still, and does not go out by itself."
        raise Failure(Exit.NOT_PROVEN, sentence, mend="Ask your provider, or stage it again.", code="left_behind")
    return dict(newest)
