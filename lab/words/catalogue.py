"""A catalogue as gettext writes it (.po) and as Django reads it (.mo), without gettext's programs."""

import ast
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from lab.words.messages import Message

HEADER: Final = (
    "Project-Id-Version: FabricUI\n"
    "Language: ru\n"
    "MIME-Version: 1.0\n"
    "Content-Type: text/plain; charset=UTF-8\n"
    "Content-Transfer-Encoding: 8bit\n"
    "Plural-Forms: nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 "
    "&& (n%100<12 || n%100>14) ? 1 : 2);\n"
)
FORMS: Final = 3

type Translations = dict[Message, tuple[str, ...]]


def read(path: Path) -> Translations:
    """Each message with its translation, three forms where it has a plural; those left empty with empty ones."""
    found: Translations = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            head, quote, rest = line.partition('"')
            key = head.strip() or key
            fields[key] = fields.get(key, "") + ast.literal_eval(quote + rest)
        if not fields.get("msgid"):
            continue
        message = Message(fields.get("msgctxt"), fields["msgid"], fields.get("msgid_plural"))
        plural = tuple(fields.get(f"msgstr[{form}]", "") for form in range(FORMS))
        found[message] = plural if message.plural is not None else (fields.get("msgstr", ""),)
    return found


def write(path: Path, translations: Translations, places: Mapping[Message, list[str]]) -> None:
    """The catalogue, a message a block with the files that use it."""
    blocks = ['msgid ""\nmsgstr ""\n' + "\n".join(_quoted(line) for line in HEADER.splitlines(keepends=True))]
    for message, forms in translations.items():
        lines = [f"#: {' '.join(places.get(message, []))}"]
        if message.context is not None:
            lines.append(f"msgctxt {_quoted(message.context)}")
        lines.append(f"msgid {_quoted(message.english)}")
        if message.plural is None:
            lines.append(f"msgstr {_quoted(forms[0])}")
        else:
            lines.append(f"msgid_plural {_quoted(message.plural)}")
            lines += [f"msgstr[{at}] {_quoted(form)}" for at, form in enumerate(forms)]
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def compiled(translations: Translations) -> bytes:
    """The .mo file of those that are translated: sorted keys, so the same catalogue gives the same bytes."""
    pairs = {b"": HEADER.encode()}
    for message, forms in translations.items():
        if all(forms):
            key = message.english if message.plural is None else f"{message.english}\0{message.plural}"
            key = key if message.context is None else f"{message.context}\x04{key}"
            pairs[key.encode()] = "\0".join(forms).encode()
    return _mo(sorted(pairs.items()))


def _mo(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    rows = list(pairs)
    start = 28 + 16 * len(rows)
    keys, values, table_of_keys, table_of_values = b"", b"", b"", b""
    for key, _ in rows:
        table_of_keys += struct.pack("<II", len(key), start + len(keys))
        keys += key + b"\0"
    for _, value in rows:
        table_of_values += struct.pack("<II", len(value), start + len(keys) + len(values))
        values += value + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(rows), 28, 28 + 8 * len(rows), 0, 0)
    return head + table_of_keys + table_of_values + keys + values
