"""`fabricui rollout`: start the rollout of the plan that was looked at, once, and with --wait see it end."""

import argparse
from typing import Any, Final

from fabricui.client import planning
from fabricui.client.door import Answer, Door, new_key
from fabricui.client.failures import Exit, Failure
from fabricui.client.printing import Printer, plain

EVERY_S: Final = 1.0
MOST_SENTENCES: Final = 5


def rollout(door: Door, arguments: argparse.Namespace, printer: Printer) -> Exit:
    """Start it, and with --wait wait for its end. Raises Failure, and then none was started (but see `_start`)."""
    key = arguments.key or new_key()
    if arguments.digest and arguments.look:
        # Sent again after a cut connection: the same request with the same key. What has to be looked at was then.
        body = _body(arguments, arguments.digest, arguments.look)
    else:
        drawn = planning.draw(door, arguments, printer)
        _refuse(drawn, arguments)
        for line in (str(drawn["sentence"]), *planning.others(drawn)):
            printer.tell(line)
        body = _body(arguments, drawn["digest"], drawn["look"])
    answer = _start(door, body, key)
    known = "was started already by the same request" if answer.is_replayed else "is started"
    started: dict[str, Any] = answer.body
    printer.tell(f"Rollout {started['id']} {known}.")
    exit_code = follow(door, printer, started, arguments)
    return exit_code if arguments.wait else Exit.DONE


def follow(door: Door, printer: Printer, shown: dict[str, Any], arguments: argparse.Namespace) -> Exit:
    """Show a rollout, with --wait when it is over; give what its state means. Ctrl+C ends the waiting, nothing else."""
    key = str(shown["id"])
    if arguments.wait:
        try:
            shown = _wait(door, printer, key, arguments.within)
        except KeyboardInterrupt:
            sentence = f"The rollout goes on without this program. Ask for it: fabricui status {key} --wait"
            raise Failure(Exit.INTERRUPTED, sentence, code="interrupted", where=key) from None
    printer.show({"rollout": shown}, in_words(printer, shown))
    return exit_of(shown)


def exit_of(shown: dict[str, Any]) -> Exit:
    """What a rollout in this state means for a script."""
    state = shown["state"]
    if state == "PROVEN":
        return Exit.DONE
    if state == "REFUSED":
        return Exit.REFUSED
    return Exit.NOT_PROVEN if is_settled(shown) else Exit.STILL_RUNNING


def is_settled(shown: dict[str, Any]) -> bool:
    """Whether nothing more becomes of it by itself: over, or waiting for a person."""
    return bool(shown["is_over"]) or shown["state"] == "STUCK"


def in_words(printer: Printer, shown: dict[str, Any]) -> list[str]:
    """A rollout for a reader."""
    lines = [f"Rollout {plain(shown['id'])} of revision {shown['revision_number']}: {printer.state(shown['state'])}"]
    if shown["cause"]:
        lines.append(plain(shown["cause"]))
    counts = shown.get("counts") or {}
    if counts.get("ports") is not None:
        lines.append(f"{counts['proven']} of {counts['ports']} ports proven.")
    lines += [plain(sentence) for sentence in (shown.get("discrepancies") or [])[:MOST_SENTENCES]]
    if shown["confirm_by"] and not shown["confirmed_at"]:
        lines.append(f"It is taken back unless somebody confirms it by {plain(shown['confirm_by'])}.")
    return lines


def _refuse(drawn: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Raise Failure for a plan that is another one, that a rule refuses, or whose hazards nobody has accepted."""
    if arguments.digest and drawn["digest"] != arguments.digest:
        raise Failure(
            Exit.REFUSED, "The plan is not the one with this digest any more. Nothing was rolled out.",
            mend="Look at it again with `fabricui plan`, then give its digest.", code="stale_plan", where="--digest",
        )  # fmt: skip
    told = planning.refusals(drawn)
    if told:
        failure = Failure(Exit.REFUSED, "A rule refuses this plan. Nothing was rolled out.", code="refused")
        failure.more = tuple(told)
        raise failure
    open_hazards = [
        one for one in drawn["hazards"] if not one["needs_takeover"] and one["kind"] not in arguments.accept
    ]
    if open_hazards:
        kinds = list(dict.fromkeys(str(one["kind"]) for one in open_hazards))
        failure = Failure(
            Exit.REFUSED, "The plan has hazards that nobody has accepted. Nothing was rolled out.",
            mend=f"If they are meant, add: {' '.join(f'--accept {plain(kind)}' for kind in kinds)}",
            code="hazard_not_accepted", where="--accept",
        )  # fmt: skip
        failure.more = tuple(f"{one['kind']}: {one['sentence']}" for one in open_hazards)
        raise failure
    if drawn["needs_reason"] and not arguments.reason:
        raise Failure(
            Exit.REFUSED, f"The plan needs a reason. {drawn['needs_reason']} Nothing was rolled out.",
            mend="If it is meant, say why with --reason.", code="reason_needed", where="--reason",
        )  # fmt: skip


def _body(arguments: argparse.Namespace, digest: object, look: object) -> dict[str, Any]:
    body: dict[str, Any] = {
        "selection": arguments.selection,
        "plan_digest": digest,
        "look": look or "",
        "reason": arguments.reason,
    }
    if arguments.subnet:
        body["subnet"] = getattr(arguments, "subnet_id", arguments.subnet)
    if arguments.confirm_within is not None:
        body["confirm_within_s"] = arguments.confirm_within
    if arguments.without:
        body["without"] = list(arguments.without)
    return body


def _start(door: Door, body: dict[str, Any], key: str) -> Answer:
    """The rollout as it was started. When nobody answered, the failure says how to ask again without a second one."""
    try:
        return door.post("rollouts", body=body, key=key)
    except KeyboardInterrupt:
        raise _unknown(Exit.INTERRUPTED, "Interrupted while it was being started.", body, key) from None
    except Failure as failure:
        if failure.exit_code is not Exit.UNREACHABLE:
            raise
        raise _unknown(failure.exit_code, failure.sentence, body, key) from failure


def _unknown(exit_code: Exit, sentence: str, body: dict[str, Any], key: str) -> Failure:
    return Failure(
        exit_code, f"{sentence} Whether the rollout was started is not known.", code="unreachable",
        mend=(
            "The same command with these options starts it at most once, for 24 hours:\n  "
            f"--digest {body['plan_digest']} --look {body['look']} --key {key}"
        ),
    )  # fmt: skip


def _wait(door: Door, printer: Printer, key: str, within_s: float) -> dict[str, Any]:
    """The rollout when it is over, waits for a person, or the time is up; what happens is told on the way."""
    until = door.clock() + within_s
    told, state = 0, ""
    while True:
        try:
            shown: dict[str, Any] = door.get("rollouts", key)
        except Failure as failure:
            if failure.exit_code is not Exit.UNREACHABLE:
                raise
            raise Failure(
                failure.exit_code, f"{failure.sentence} The rollout goes on without this program.", code=failure.code,
                mend=f"Ask for it: fabricui status {key} --wait",
            ) from failure  # fmt: skip
        if shown["state"] != state:
            state = str(shown["state"])
            printer.tell(state)
        for step in shown["steps"][told:]:
            host = f"{step['host']}: " if step["host"] else ""
            printer.tell(f"  {host}{step['text']}")
        told = max(told, len(shown["steps"]))
        if is_settled(shown):
            return shown
        if door.clock() > until:
            printer.warn(
                f"It is not over after {within_s:.0f} s and goes on by itself. Ask for it: fabricui status {key} --wait"
            )
            return shown
        door.sleep(EVERY_S)
