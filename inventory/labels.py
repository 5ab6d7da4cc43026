"""Labels of servers in and out of files: rack, unit, serial number, tenant. Text and values only; rows are elsewhere.

A file is CSV with a header (comma or semicolon, UTF-8) or a JSON list of objects. `hostname` names the server; only the
columns that are there are written, an empty cell clears one. Every error names its row, and a file with one error is
not taken at all. A cell that a spreadsheet would calculate goes out with an apostrophe in front, and comes in without.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from audit.cells import FORMULA

KEY: Final = "hostname"
LONGEST: Final[Mapping[str, int]] = {"rack": 40, "unit": 20, "serial": 64, "tenant": 40}
COLUMNS: Final = (KEY, *LONGEST)
MOST_BYTES: Final = 2_000_000
MOST_ROWS: Final = 5_000
_MOST_ERRORS: Final = 50


@dataclass(frozen=True, slots=True)
class LabelRow:
    """What a file says of one server: the labels it names, by column; empty text clears one."""

    number: int  # of the row in the file; the header of a CSV is row 1, the first object of a JSON list row 1
    hostname: str
    labels: Mapping[str, str]


@dataclass(slots=True)
class LabelFile:
    """What was read of a file. With any error nothing of it may be taken; each is a row's number and a sentence."""

    rows: list[LabelRow] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)


def read(data: bytes) -> LabelFile:
    """Read a file of labels; what cannot be read is in `errors`, by row. Never raises for any bytes."""
    found = LabelFile()
    if len(data) > MOST_BYTES:
        found.errors.append((0, f"The file has {len(data)} bytes; {MOST_BYTES} is the most. Split it."))
        return found
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found.errors.append((0, f"The file is not UTF-8 (byte {error.start}). Save it as “CSV UTF-8”."))
        return found
    try:
        raws = _json(text, found) if text.lstrip().startswith(("[", "{")) else _csv(text, found)
        _take(raws, found)
    except (csv.Error, RecursionError, ValueError) as error:
        found.errors.append((0, f"The file cannot be read: {str(error)[:120]}."))
    return found


def write_csv(rows: Iterable[Mapping[str, str]]) -> str:
    """The labels as CSV that a spreadsheet opens without calculating anything."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([harmless(row.get(name, "")) for name in COLUMNS] for row in rows)
    return out.getvalue()


def write_json(rows: Iterable[Mapping[str, str]]) -> str:
    """The labels as a JSON list."""
    return json.dumps([{name: row.get(name, "") for name in COLUMNS} for row in rows], indent=1) + "\n"


def harmless(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula; `_cell` takes the apostrophe away again."""
    return f"'{text}" if text.startswith((*FORMULA, "'")) else text


def _cell(text: str) -> str:
    text = text.strip(" ")
    return text[1:] if text.startswith("'") and text[1:].startswith((*FORMULA, "'")) else text


def _csv(text: str, found: LabelFile) -> Sequence[tuple[int, Mapping[str, Any]]]:
    head = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in head and "," not in head else ",")
    header = [name.strip().lower() for name in next(reader, [])]
    unknown = [name for name in header if name not in COLUMNS]
    twice = sorted({name for name in header if header.count(name) > 1})
    if KEY not in header:
        found.errors.append((1, f"The first row must name the columns, “{KEY}” among them: {', '.join(COLUMNS)}."))
    elif unknown:
        found.errors.append((1, f"Nobody asked for the column {ascii(unknown[0])[:60]}. Known: {', '.join(COLUMNS)}."))
    elif twice:
        found.errors.append((1, f"The column {twice[0]} is named twice."))
    if found.errors:
        return []
    raws: list[tuple[int, Mapping[str, Any]]] = []
    for number, cells in enumerate(reader, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            _error(found, number, f"It has {len(cells)} cells, and the first row names {len(header)} columns.")
            continue
        raws.append((number, {name: _cell(cell) for name, cell in zip(header, cells, strict=True)}))
        if len(raws) > MOST_ROWS:
            break
    return raws


def _json(text: str, found: LabelFile) -> Sequence[tuple[int, Mapping[str, Any]]]:
    value = json.loads(text)
    if not isinstance(value, list):
        found.errors.append((0, "The file is not a JSON list of objects."))
        return []
    raws: list[tuple[int, Mapping[str, Any]]] = []
    for number, item in enumerate(value[: MOST_ROWS + 1], start=1):
        if not isinstance(item, dict):
            _error(found, number, "It is not a JSON object.")
        elif unknown := sorted(set(item) - set(COLUMNS)):
            _error(found, number, f"Nobody asked for {ascii(unknown[0])[:60]}. Known: {', '.join(COLUMNS)}.")
        else:
            raws.append((number, item))
    return raws


def _take(raws: Sequence[tuple[int, Mapping[str, Any]]], found: LabelFile) -> None:
    """Check each row by itself, and that no two name one server."""
    if len(raws) > MOST_ROWS:
        found.errors.append((0, f"The file has more than {MOST_ROWS} rows. Split it."))
        return
    first: dict[str, int] = {}
    for number, raw in raws:
        bad = _what_is_wrong(raw)
        if bad:
            _error(found, number, bad)
            continue
        hostname = str(raw[KEY]).strip().lower()
        if hostname in first:
            _error(found, number, f"{hostname} is in row {first[hostname]} already.")
            continue
        first[hostname] = number
        labels = {name: str(raw[name] or "").strip() for name in LONGEST if name in raw}
        found.rows.append(LabelRow(number, hostname, labels))


def _what_is_wrong(raw: Mapping[str, Any]) -> str:
    hostname = raw.get(KEY)
    if not isinstance(hostname, str) or not hostname.strip():
        return f"It names no server: “{KEY}” is empty."
    for name, value in raw.items():
        if value is not None and not isinstance(value, str):
            return f"“{name}” is not text. Put it into quotes."
        if value and not value.isprintable():
            return f"“{name}” has a character that cannot be printed."
        if value and name in LONGEST and len(value) > LONGEST[name]:
            return f"“{name}” has {len(value)} characters; {LONGEST[name]} is the most."
    return ""


def _error(found: LabelFile, number: int, sentence: str) -> None:
    if len(found.errors) < _MOST_ERRORS:
        found.errors.append((number, sentence))
