"""The words of docs/glossary.md for pages: what each means, from the one place where they are explained."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from people.said import said

_ROW: Final = re.compile(r"^\| (?P<words>[^|]+?) \| (?P<meaning>[^|]+?) \| (?P<avoided>[^|]*?) ?\|$")
_SPLIT: Final = re.compile(r"[,;] ")
_BESIDE: Final = re.compile(r" ?\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Word:
    """One row: the words as they are written together, and what they mean, in Markdown."""

    words: str
    meaning: str

    @property
    def names(self) -> tuple[str, ...]:
        """Each word by itself, in lower case and without what stands in brackets."""
        return tuple(_BESIDE.sub("", name).strip().lower() for name in _SPLIT.split(self.words))

    @property
    def html(self) -> SafeString:
        """The meaning as a page shows it, in the reader's language: code and emphasis stay, links become their text."""
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", str(escape(str(said(self.meaning)))))
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
        return mark_safe(text)  # noqa: S308  escaped above, and our own file


@cache
def words() -> tuple[Word, ...]:
    """All rows in the order of the page; none when the file is not there: help is missing then, and nothing else."""
    try:
        text = (settings.BASE_DIR / "docs" / "glossary.md").read_text(encoding="utf-8")
    except OSError:
        return ()
    rows = [match for line in text.splitlines() if (match := _ROW.match(line))]
    return tuple(Word(row["words"], row["meaning"]) for row in rows if row["words"] not in ("word", "---"))


def meaning_of(name: str) -> Word | None:
    """The row that explains `name`, in any case."""
    return next((word for word in words() if name.lower() in word.names), None)
