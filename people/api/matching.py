"""ETag and If-Match: an edit says which state of a thing it edits, so that nobody overwrites what they never saw."""

import hashlib
from typing import Any, Final

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from people.api.problems import Problem

DIGITS: Final = 32


def etag_of(shown: Any) -> str:
    """The strong ETag of what is answered: a digest over its bytes, quoted. It says nothing else."""
    return f'"{hashlib.sha256(JSONRenderer().render(shown)).hexdigest()[:DIGITS]}"'


def require_match(request: Request, shown: Any) -> None:
    """Raise Problem unless If-Match names `shown`, what the person would get now; 428 without one, 412 for another.

    Ask it with the row held, in the transaction of the edit: nobody gets in between then.
    """
    asked = request.headers.get("If-Match", "").strip()
    if not asked:
        raise Problem("precondition_required", "This edit has no If-Match.", where="If-Match")
    if asked != "*" and etag_of(shown) not in _tags(asked):
        raise Problem("precondition_failed", "It is not what it was when you got it.", where="If-Match")


def is_known(request: Request, tag: str) -> bool:
    """Whether who asks has this state already (If-None-Match, compared weakly, RFC 9110 13.1.2)."""
    asked = request.headers.get("If-None-Match", "").strip()
    return asked == "*" or tag in {one.removeprefix("W/") for one in _tags(asked)}


def _tags(header: str) -> set[str]:
    return {one.strip() for one in header.split(",")}
