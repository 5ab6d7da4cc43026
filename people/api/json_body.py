"""What a body may be: JSON of at most 1 MiB, not deep, with nothing in it that two readers take for two things."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from rest_framework.parsers import BaseParser

from people.api.problems import Problem

MOST_BYTES: Final = 1024 * 1024
DEEPEST: Final = 12  # of objects and lists in one another; nothing here needs more than four


class StrictJSONParser(BaseParser):
    """Refuses what a lenient reader would guess at: twins of a field, NaN, half characters, bytes that are no UTF-8."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The object in the body; raise Problem for anything else."""
        body: bytes = stream.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise Problem("body_too_large", f"The body has more than {MOST_BYTES} bytes.")
        try:
            value = json.loads(
                body.decode("utf-8"), parse_constant=_constant, parse_float=_number, object_pairs_hook=_object
            )
        except RecursionError as error:
            raise _too_deep() from error
        except ValueError as error:
            raise Problem("malformed", f"The body is not JSON: {str(error)[:120]}.") from error
        if not isinstance(value, dict):
            raise Problem("malformed", "The body is not a JSON object.")
        _look_through(value)
        return value


def _look_through(value: Any) -> None:
    """Raise Problem for what is too deep, or for a text that no database keeps."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                _text(one)
            elif isinstance(one, dict):
                for name in one:
                    _text(name)
                below += one.values()
            elif isinstance(one, list):
                below += one
        if not below:
            return
        level = below
    raise _too_deep()


def _text(text: str) -> None:
    if "\0" in text:
        raise Problem("malformed", "A text in the body holds a NUL.")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Problem("malformed", "A text in the body holds half a character (a lone surrogate).")


def _too_deep() -> Problem:
    return Problem("malformed", f"The body is more than {DEEPEST} levels deep.")


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is larger than any number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands there twice")
    return found
