"""The sentences of the pages' scripts: found in static/js, and handed to the browser as a module of each language.

A script says `phrase("…", {name})`, or `counted("{n} …", "{n} …", n)` where a number is in it (static/js/words.js).
The English is a literal there, so that a pattern finds it; the module of another language is written here, and is
static like every other script: no address of its own, no query, nothing inline.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lab.words.messages import ROOT, Message

CONTEXT: Final = "script"
SCRIPTS: Final = ROOT / "static/js"
WRITTEN: Final = SCRIPTS / "words"  # the modules that are written here
PLURALS: Final = ("one", "few", "many")  # what Intl.PluralRules calls the forms of the catalogue's Plural-Forms
_LITERAL: Final = r'"(?:[^"\\\n]|\\.)*"'
_CALL: Final = re.compile(rf"\b(?:phrase\(\s*({_LITERAL})|counted\(\s*({_LITERAL})\s*,\s*({_LITERAL}))")
# A comment, a string, or a template literal up to its first value: what stands in the one is nothing of the others.
_TOKEN: Final = re.compile(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{_LITERAL})|(?P<template>`[^`]*`)", re.DOTALL)


def paths() -> list[Path]:
    """The scripts of our own, in order."""
    return [path for path in sorted(SCRIPTS.glob("**/*.js")) if WRITTEN not in path.parents]


def of_script(source: str) -> Iterator[Message]:
    """The sentences that a script says in its reader's language."""
    for phrase, one, other in _CALL.findall(without_comments(source)):
        yield Message(CONTEXT, json.loads(phrase or one), json.loads(other) if other else None)


def without_comments(source: str) -> str:
    """The same script without what is said to its reader only."""
    return _TOKEN.sub(lambda token: " " if token["comment"] else token[0], source)


def literals(source: str) -> Iterator[str]:
    """What stands in strings and template literals outside of such calls: nothing of it is translated."""
    rest = _CALL.sub("", without_comments(source))
    for token in _TOKEN.finditer(rest):
        text = token["string"] or token["template"]
        yield re.sub(r"\$\{[^}]*\}", "0", text[1:-1])


def module(language: str, translations: Mapping[Message, tuple[str, ...]]) -> str:
    """The module that teaches a page `language`."""
    pairs = [
        f"  {_json([one.english, list(forms) if one.plural is not None else forms[0]])},"
        for one, forms in translations.items()
        if one.context == CONTEXT and all(forms)
    ]
    head = "// Written by `python -m lab.words` from the catalogue in locale/; change it there.\n"
    lines = [
        head,
        'import { learn } from "../words.js";\n',
        f"learn({_json(language)}, {_json(PLURALS)}, [",
        *pairs,
        "]);",
    ]
    return "\n".join(lines) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
