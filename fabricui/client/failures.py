"""What ends a command otherwise than well: exit codes for scripts, and one error that carries them."""

from enum import IntEnum
from typing import Any, Final


class Exit(IntEnum):
    """What `fabricui` ends with; docs/client.md has the table, and their meaning stays."""

    DONE = 0  # of a rollout that was waited for: PROVEN
    FAULT = 1  # a mistake of FabricUI's, or an answer that is none of its
    USAGE = 2  # the command line or the configuration
    REFUSED = 3  # a rule, a stale plan, a hazard that nobody accepted: nothing was changed
    NOT_PROVEN = 4  # the rollout ended otherwise than PROVEN, or waits for a person
    UNAUTHORISED = 5
    NOT_FOUND = 6
    CONFLICT = 7  # as things stand: another rollout, a frozen subnet, a changed row
    UNREACHABLE = 8
    STILL_RUNNING = 9  # the time to wait is over and the rollout is not
    INTERRUPTED = 130


# By the API's code; where a code is new, by its status.
_BY_CODE: Final = {
    "refused": Exit.REFUSED,
    "stale_plan": Exit.REFUSED,
    "stale": Exit.REFUSED,
    "no_revision": Exit.REFUSED,
    "nothing_to_do": Exit.REFUSED,
    "refused_by_rule": Exit.REFUSED,
    "reason_needed": Exit.REFUSED,
}
_BY_STATUS: Final = {
    400: Exit.USAGE, 401: Exit.UNAUTHORISED, 403: Exit.UNAUTHORISED, 404: Exit.NOT_FOUND, 409: Exit.CONFLICT,
    412: Exit.CONFLICT, 413: Exit.USAGE, 422: Exit.CONFLICT, 428: Exit.CONFLICT, 429: Exit.UNREACHABLE,
    502: Exit.UNREACHABLE, 503: Exit.UNREACHABLE, 504: Exit.UNREACHABLE,
}  # fmt: skip


class Failure(Exception):
    """A sentence of what, where and how to mend it, with the exit code; `code` and `where` as the API told them."""

    def __init__(
        self, exit_code: Exit, sentence: str, *, mend: str = "", code: str = "", where: str = "", request_id: str = ""
    ) -> None:
        super().__init__(sentence)
        self.exit_code, self.sentence, self.mend = exit_code, sentence, mend
        self.code, self.where, self.request_id = code, where, request_id
        self.more: tuple[str, ...] = ()

    @classmethod
    def of_problem(cls, problem: dict[str, Any]) -> "Failure":
        """The failure that an answer of the API tells of (people/api/problems.py)."""

        def told(name: str) -> str:
            return str(problem.get(name) or "")

        status = problem.get("status")
        by_status = _BY_STATUS.get(status, Exit.FAULT) if isinstance(status, int) else Exit.FAULT
        failure = cls(
            _BY_CODE.get(told("code"), by_status), told("detail") or told("title"), mend=told("mend"),
            code=told("code"), where=told("where"), request_id=told("request_id"),
        )  # fmt: skip
        errors = problem.get("errors")
        listed = [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
        failure.more = tuple(f"{one.get('where')}: {one.get('detail')}" for one in listed if len(listed) > 1)
        return failure

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        return {
            "error": {
                "exit": int(self.exit_code), "code": self.code, "detail": self.sentence, "where": self.where,
                "mend": self.mend, "errors": list(self.more), "request_id": self.request_id,
            }
        }  # fmt: skip

    def in_words(self) -> str:
        """What stands on stderr."""
        lines = [self.sentence, *self.more[:20], *([self.mend] if self.mend else [])]
        if self.exit_code is Exit.FAULT and self.request_id:
            lines.append(f"The operator finds it by request {self.request_id}.")
        return "\n".join(lines)
