"""Pages by cursor: {"items", "next_cursor"}. A page begins behind the last row of the one before, at any size.

A cursor is signed, holds only what its reader has just seen, and is good for the list and the person it was made for:
no number of a row is in it, and nobody can make one.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.core import signing
from django.db.models import Q, QuerySet
from rest_framework.request import Request

from people.api.problems import Problem

USUAL: Final = 50
MOST: Final = 200
LONGEST: Final = 1000  # characters of a cursor
_SALT: Final = "people.api.cursor"


def page[Row: Any](
    rows: "QuerySet[Row]", request: Request, *, by: str, tie: str = "public_id", newest_first: bool = False
) -> tuple[list[Row], str | None]:
    """One page of `rows` in the order of the field `by`, then of `tie`, and the cursor of the next one.

    `by` is a text or a time; both together are never the same for two rows, and may be shown to whoever sees these.
    Raises Problem for a cursor that is none of this list.
    """
    limit = limit_of(request)
    key = asked_cursor(request)
    if key is not None:
        rows = rows.filter(_behind(by, tie, key, newest_first=newest_first))
    sign = "-" if newest_first else ""
    found = list(rows.order_by(*dict.fromkeys((f"{sign}{by}", f"{sign}{tie}")))[: limit + 1])
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], next_cursor(request, [_plain(_value(last, by)), str(_value(last, tie))])


def limit_of(request: Request) -> int:
    """How many items a page is to have, as asked. Raises Problem."""
    text = request.query_params.get("limit", str(USUAL))
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and 1 <= int(text) <= MOST):
        raise Problem("invalid", f"“limit” is a number from 1 to {MOST}.", where="limit")
    return int(text)


def asked_cursor(request: Request) -> list[str] | None:
    """What the cursor holds that came with the request; None at the first page. Raises Problem."""
    text = request.query_params.get("cursor", "")
    if not text:
        return None
    try:
        if len(text) > LONGEST or not text.isascii():
            raise signing.BadSignature
        key = signing.loads(text, salt=_salt(request))
    except (signing.BadSignature, ValueError) as error:
        raise Problem("bad_cursor", "This cursor is not one of this list, or not yours.", where="cursor") from error
    assert isinstance(key, list)  # noqa: S101  nobody else signs with this salt
    return [str(part) for part in key]


def next_cursor(request: Request, key: Sequence[str]) -> str:
    """The cursor that leads on from `key`."""
    return signing.dumps(list(key), salt=_salt(request))


def _salt(request: Request) -> str:
    # Other filters are another list; another person sees other rows.
    asked = sorted(
        (name, value)
        for name, values in request.query_params.lists()
        for value in values
        if name not in ("cursor", "limit")
    )
    return f"{_SALT}:{request.user.pk}:{request.path}:{asked}"


def _behind(by: str, tie: str, key: list[str], *, newest_first: bool) -> Q:
    word = "lt" if newest_first else "gt"
    first, second = key
    return Q(**{f"{by}__{word}": first}) | Q(**{by: first, f"{tie}__{word}": second})


def _value(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
