"""Log lines as JSON, one object a line, with the request and the rollout they belong to.

Loaded before the rooms are: it knows none of their models. No line holds a secret; `tests/fabricui/test_canaries.py`
drives the product and looks.
"""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any, Final

from audit.about import current_rollout
from audit.request_id import current_request_id

LONGEST: Final = 20_000  # characters of a message or a traceback: a line stays one that every collector takes


class JSONLines(logging.Formatter):
    """`{"at", "level", "logger", "message", "pid"}`, and `request`, `rollout`, `task`, `error` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; whatever stands in a message, it holds no line break."""
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _cut(record.getMessage()),
            "pid": os.getpid(),
        }
        more = {
            "request": current_request_id(),
            "rollout": getattr(record, "rollout", "") or current_rollout(),
            **getattr(record, "told", {}),
        }
        said |= {name: value for name, value in more.items() if value != ""}
        if record.exc_info:
            said["error"] = _cut(self.formatException(record.exc_info))
        return json.dumps(said, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
