"""One way to write a value down, so that the same event has the same bytes on every machine and database. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from audit.errors import NotRecordable
from audit.verifier import GENESIS, canonical
from subnet.pkey import PKey

__all__ = ["GENESIS", "JSON", "canonical", "clean", "plain", "utc_text"]

_REFUSED: Final = re.compile(r"[\x00\ud800-\udfff]")

type JSON = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None


def plain(value: object, *, where: str = "value") -> JSON:
    """Turn `value` into JSON that survives a round trip through SQLite and PostgreSQL unchanged.

    Enums become their value, times UTC text, dataclasses and mappings objects, other collections lists (sets
    sorted), whole floats ints (jsonb keeps no exponent: 1e16 would come back as an int), and the two kinds of
    characters PostgreSQL refuses become U+FFFD. Anything else raises NotRecordable: guessing with `str()` would
    let a password or a whole row slip into the trail.
    """
    if type(value) is str:  # most of what an event holds
        return clean(value)
    match value:
        case None | bool():
            return value
        case PKey():
            return str(value)  # prints as 0x2c41; a bare number would be read as decimal
        case Enum():
            return plain(value.value, where=where)
        case str():
            return clean(value)
        case int():
            return int(value)
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise NotRecordable(f"{where} is {value}, which JSON cannot hold. Record None or a sentence instead.")
            return int(value) if value.is_integer() else value
        case datetime():
            return utc_text(value)
        case Mapping():
            return {_key(key, where): plain(item, where=f"{where}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [plain(item, where=f"{where}[{index}]") for index, item in enumerate(value)]
        case set() | frozenset():
            items = [plain(item, where=where) for item in value]
            return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), where=f"{where}.{field.name}") for field in fields(value)}
    raise NotRecordable(f"{where} is a {type(value).__name__}, which an event cannot hold. Record its text or parts.")


def _key(key: object, where: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, str):
        raise NotRecordable(f"{where} has the key {key!r}, which is not text. GUIDs and P_Keys are text in events.")
    return clean(key)


def clean(text: str) -> str:
    """Replace NUL and lone surrogates, which PostgreSQL refuses: a hostile name must not stop the recording."""
    return _REFUSED.sub("\ufffd", text)


def utc_text(at: datetime) -> str:
    """Write a moment with microseconds in UTC: 2026-12-01T13:59:00.000123Z."""
    if at.tzinfo is None:
        raise NotRecordable(f"{at} has no time zone.")
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
