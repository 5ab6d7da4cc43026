"""Sentences of ours in the reader's language, at the page's edge: what rooms compose and keep stays English.

The pure rooms know no reader, and what is stored (a rollout's story, a drift, the trail) has many. So their sentences
are English everywhere, and a page that shows one recognises it by the pattern it was made from: the catalogue's
messages of the context “said” are those patterns, `Rollout {public_id} holds the subnet: {word}.`, with a name where
a value stands. The translation puts the values back, and says what they may be:

- `{word}` as it is; `{server:name}` too, without commas, colons and the end of a sentence; `{servers:names}` too, each
  without a blank
- `{word:said}` in the reader's language too, `{word:said ревизия→ревизии}` in another case
- `{n:#}` a number, `{n:#|порт|порта|портов}` with the form of a word that belongs to it, `{n:порт|порта|портов}` that
  form alone

What no pattern knows is shown as it is. `python -m lab.words` finds the patterns in the sources (docs/languages.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

from django.utils import translation
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import trans_real

from people.moments import in_zone, marked

CONTEXT: Final = "said"
MOST_PARTS: Final = 24  # of one text that are looked up by themselves
_EOT: Final = "\x04"  # between a context and its message in gettext's catalogues
_HOLE: Final = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_BETWEEN: Final = re.compile(r"(?<=[.!?:;,·]) +")
_SENTENCES: Final = re.compile(r"(?<=[.!?]) +(?=[^a-z])")
_WORD: Final = re.compile(r"\w+")
_LEADING_NUMBER: Final = re.compile(r"\s*(-?[\d,]+)")


class Pattern(NamedTuple):
    """How one English sentence is made, and what it is in another language."""

    is_it: re.Pattern[str]
    translated: str


def said(value: object) -> object:
    """`value` in the reader's language and time zone when it is a sentence of ours; lists item by item; all else as it
    is.
    """
    if isinstance(value, list | tuple):
        return [said(one) for one in value]
    worded = in_words(value)
    return in_zone(worded) if isinstance(worded, str) and not isinstance(worded, SafeString) else worded


def told(value: object) -> object:
    """The same for a page's text, where a moment is a `<time>` with UTC on hover; never for an attribute."""
    worded = in_words(value)
    return marked(worded) if isinstance(worded, str) and not isinstance(worded, SafeString) else worded


def in_words(value: object) -> object:
    """`value` in the reader's language when it is a sentence of ours, its moments still in UTC."""
    if isinstance(value, SafeString) or not isinstance(value, str | Promise):
        return value
    language = translation.get_language() or "en"
    text = str(value)
    return text if language.startswith("en") else in_language(text, language)


@lru_cache(maxsize=8192)
def in_language(text: str, language: str) -> str:
    """`text` in `language`: whole, else sentence by sentence, else in the longest stretches that are known.

    A pattern takes a value that ends a sentence only where the sentences by themselves are not known.
    """
    bare = text.strip()
    if bare != text:
        before, _, after = text.partition(bare) if bare else (text, "", "")
        return before + in_language(bare, language) + after if bare else text
    found = _whole(text, language, narrow=True)
    if found is None and len(sentences := _SENTENCES.split(text)) in range(2, MOST_PARTS):
        each = [_whole(one, language, narrow=True) for one in sentences]
        found = None if None in each else " ".join(str(one) for one in each)
    if found is None:
        found = _whole(text, language)
    if found is not None:
        return found
    parts = _BETWEEN.split(text)
    if len(parts) > MOST_PARTS:
        return text
    out, at = [], 0
    while at < len(parts):
        for end in range(len(parts), at, -1):
            found = _stretch(" ".join(parts[at:end]), language)
            if found is not None:
                out.append(found)
                at = end
                break
        else:
            out.append(parts[at])
            at += 1
    return " ".join(out)


def _stretch(text: str, language: str) -> str | None:
    """A stretch of sentences, or what stands before a comma, a colon or the end of one."""
    for end in ("", ".", ",;:·", ",;:·."):
        bare = text.rstrip(f"{end} ") if end else text
        found = _whole(bare, language) if bare and (bare != text or not end) else None
        if found is not None:
            return found + text[len(bare) :]
    return None


def _whole(text: str, language: str, *, narrow: bool = False) -> str | None:
    """`text` as one sentence; one that begins with a capital only here has its translation begin with one."""
    found = _sentence(text, language, narrow=narrow)
    if found is None and text[:1].isupper():
        found = _sentence(text[0].lower() + text[1:], language, narrow=narrow)
        return None if found is None else found[:1].upper() + found[1:]
    return found


def _sentence(text: str, language: str, *, narrow: bool) -> str | None:
    exact, index = patterns(language)
    if text in exact:
        return exact[text]
    for rank in sorted(set(candidates(text, index))):
        pattern = index.patterns[rank]
        match = pattern.is_it.fullmatch(text)
        if match is not None and not (narrow and any(_SENTENCES.search(value) for value in match.groups())):
            return _HOLE.sub(_filling(match, language), pattern.translated)
    return None


def candidates(text: str, index: "Index") -> Iterator[int]:
    """The patterns whose rarest word stands in `text`, and those without a whole word."""
    yield from index.wordless
    for word in _WORD.findall(text):
        yield from index.by_word.get(word, ())


def _filling(match: re.Match[str], language: str) -> Callable[[re.Match[str]], str]:
    def fill(hole: re.Match[str]) -> str:
        value, how = match[hole[1]], hole[2] or ""
        if how.startswith("said"):
            found = in_language(value, language)
            before, arrow, after = how.removeprefix("said").strip().partition("→")
            return found.replace(before, after, 1) if arrow else found
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


class Index(NamedTuple):
    """Patterns, those with most text of their own first, and their places by the word that is rarest among them all.

    So one look-up tries a handful however many there are.
    """

    patterns: list[Pattern]
    by_word: dict[str, list[int]]
    wordless: list[int]


@cache
def patterns(language: str) -> tuple[dict[str, str], Index]:
    """The catalogue's sentences: those without values as they are, those with values by their words."""
    exact: dict[str, str] = {}
    made: list[tuple[str, str]] = []
    for english, translated in sorted(_messages(language), key=lambda pair: (-len(_HOLE.sub("", pair[0])), pair)):
        if "{" in english:
            made.append((english.strip(), translated.strip()))
        else:
            exact[english.strip()] = translated.strip()
    words = [_own_words(english) for english, _ in made]
    often = Counter(word for own in words for word in own)
    index = Index([Pattern(compiled(english, translated), translated) for english, translated in made], {}, [])
    for rank, own in enumerate(words):
        rarest = min(own, key=lambda word: (often[word], -len(word), word), default=None)
        (index.wordless if rarest is None else index.by_word.setdefault(rarest, [])).append(rank)
    return exact, index


def _own_words(english: str) -> set[str]:
    """The words that every sentence of this pattern has: those that no value touches."""
    return {word for word in _WORD.findall(_HOLE.sub("___", english)) if "___" not in word}


def _messages(language: str) -> Iterable[tuple[str, str]]:
    catalogue = trans_real.translation(language)._catalog  # type: ignore[attr-defined]  # gettext has no other way
    mark = CONTEXT + _EOT
    for key in catalogue.keys():  # noqa: SIM118  it is no mapping
        if isinstance(key, str) and key.startswith(mark) and catalogue[key]:
            yield key[len(mark) :], catalogue[key]


def compiled(english: str, translated: str = "") -> re.Pattern[str]:
    """The sentences that `english` can make; a name that stands twice has one value, of what `translated` says."""
    how = {hole[1]: hole[2] or "" for hole in _HOLE.finditer(translated or english)}
    out, at, seen = "", 0, set[str]()
    for hole in _HOLE.finditer(english):
        out += re.escape(english[at : hole.start()])
        out += f"(?P={hole[1]})" if hole[1] in seen else f"(?P<{hole[1]}>{_value(how.get(hole[1]))})"
        seen.add(hole[1])
        at = hole.end()
    return re.compile(out + re.escape(english[at:]), re.DOTALL)


def _value(how: str | None) -> str:
    """What a value may be, so that a short pattern takes no other sentence for one of its own.

    What the translation leaves out only makes an English form: “port{s}”, “{is} checked”.
    """
    if how is None:
        return r"[\w ’']{0,12}?"
    if "|" in how or how == "#":
        return r"-?\d[\d,.]*(?: \w+)?"
    return {"name": r"(?:[^,;:·.]|\.(?! ))*?", "names": r"\S+?(?:, \S+?)*?"}.get(how, ".*?")
