"""Sentences of ours in the reader's language, at the page's edge: what rooms compose and keep stays English.

The pure rooms know no reader, and what is stored (a rollout's story, a drift, the trail) has many. So their sentences
are English everywhere, and a page that shows one recognises it by the pattern it was made from: the catalogue's
messages of the context “said” are those patterns, `Rollout {public_id} holds the subnet: {word}.`, with a name where
a value stands. The translation puts the values back: `{word}` as it is, `{word:said}` in the reader's language too,
`{n:порт|порта|портов}` the form of a word that belongs to the number, `{n:#|порт|порта|портов}` the number with it.
What no pattern knows is shown as it is. `python -m lab.words` finds the patterns in the sources (docs/languages.md).
"""

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Final, NamedTuple

from django.utils import translation
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import trans_real

CONTEXT: Final = "said"
_EOT: Final = "\x04"  # between a context and its message in gettext's catalogues
_HOLE: Final = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_BETWEEN: Final = re.compile(r"(?<=[.!?:;,·]) +")
_LEADING_NUMBER: Final = re.compile(r"\s*(-?[\d,]+)")


class Pattern(NamedTuple):
    """How one English sentence is made, and what it is in another language."""

    is_it: re.Pattern[str]
    translated: str


def said(value: object) -> object:
    """`value` in the reader's language when it is a sentence of ours; lists item by item; all else as it is."""
    if isinstance(value, list | tuple):
        return [said(one) for one in value]
    if isinstance(value, SafeString) or not isinstance(value, str | Promise):
        return value
    language = translation.get_language() or "en"
    text = str(value)
    return text if language.startswith("en") else in_language(text, language)


@lru_cache(maxsize=8192)
def in_language(text: str, language: str) -> str:
    """`text` in `language`: whole, else in the longest stretches of sentences that are known."""
    if not text.strip():
        return text
    found = _whole(text, language)
    if found is not None:
        return found
    parts = _BETWEEN.split(text)
    if not 1 < len(parts) <= 24:
        return text
    out, at = [], 0
    while at < len(parts):
        for end in range(len(parts), at, -1):
            found = _whole(" ".join(parts[at:end]), language)
            if found is not None:
                out.append(found)
                at = end
                break
        else:
            out.append(parts[at])
            at += 1
    return " ".join(out)


def _whole(text: str, language: str) -> str | None:
    exact, by_first, others = patterns(language)
    if text in exact:
        return exact[text]
    first = text.split(" ", 1)[0]
    for pattern in (*by_first.get(first, ()), *others):
        match = pattern.is_it.fullmatch(text)
        if match is not None:
            return _HOLE.sub(_filling(match, language), pattern.translated)
    return None


def _filling(match: re.Match[str], language: str) -> Callable[[re.Match[str]], str]:
    def fill(hole: re.Match[str]) -> str:
        value, how = match[hole[1]], hole[2] or ""
        if how == "said":
            return in_language(value, language)
        if "|" in how:
            return _counted(value, how.split("|"), language)
        return value

    return fill


def _counted(value: str, forms: list[str], language: str) -> str:
    """The form of a word that belongs to the number at the beginning of `value`, after the number if forms say “#”."""
    number = _LEADING_NUMBER.match(value)
    if number is None:
        return in_language(value, language)
    count = int(number[1].replace(",", ""))
    shown = f"{number[1]} " if forms[0] == "#" else ""
    forms = forms[1:] if forms[0] == "#" else forms
    return shown + forms[min(_plural_of(language)(count), len(forms) - 1)]


def _plural_of(language: str) -> Callable[[int], int]:
    rule: Callable[[int], int] = trans_real.translation(language).plural
    return rule


type Known = tuple[dict[str, str], dict[str, list[Pattern]], list[Pattern]]


@cache
def patterns(language: str) -> Known:
    """The catalogue's sentences: those without values, those by their first word, and those that begin with a value."""
    exact: dict[str, str] = {}
    by_first: dict[str, list[Pattern]] = {}
    others: list[Pattern] = []
    for english, translated in sorted(_messages(language), key=lambda pair: -len(_HOLE.sub("", pair[0]))):
        if "{" not in english:
            exact[english] = translated
            continue
        pattern = Pattern(compiled(english), translated)
        begin = english.partition("{")[0]
        if " " in begin:
            by_first.setdefault(begin.split(" ", 1)[0], []).append(pattern)
        else:
            others.append(pattern)
    return exact, by_first, others


def _messages(language: str) -> Iterable[tuple[str, str]]:
    catalogue = trans_real.translation(language)._catalog  # type: ignore[attr-defined]  # gettext has no other way
    mark = CONTEXT + _EOT
    for key in catalogue.keys():  # noqa: SIM118  it is no mapping
        if isinstance(key, str) and key.startswith(mark) and catalogue[key]:
            yield key[len(mark) :], catalogue[key]


def compiled(english: str) -> re.Pattern[str]:
    """The sentences that `english` can make; a name that stands twice has one value."""
    out, at, seen = "", 0, set[str]()
    for hole in _HOLE.finditer(english):
        out += re.escape(english[at : hole.start()])
        out += f"(?P={hole[1]})" if hole[1] in seen else f"(?P<{hole[1]}>.*?)"
        seen.add(hole[1])
        at = hole.end()
    return re.compile(out + re.escape(english[at:]), re.DOTALL)
