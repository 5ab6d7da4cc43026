"""The sentences of the shell program on manager hosts, found in its quoted texts: pages show what it answers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lab.words.messages import Message
from people.said import CONTEXT

PATHS: Final = (Path("remote/host/fabricui-host"),)
# "${missing:+These programs are missing:$missing.}" says its text when there is a value.
WHEN_THERE: Final = re.compile(r"\$\{\w+:\+([^}]*)\}")
QUOTED: Final = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'")
VALUE: Final = re.compile(r"\$\(id -un\)|\$\{(\w+)[^}]*\}|\$(\w+|#)")
SENTENCE: Final = re.compile(r"[a-z]{2,} [a-z].*\.$|^[A-Z$].*[a-z]{2,} .*\.$")


def of_program(source: str) -> Iterator[Message]:
    """Everything that a person may read, values as names in braces as `people.said` knows them."""
    for line in source.splitlines():
        if line.lstrip().startswith("#"):
            continue
        for double, single in QUOTED.findall(line):
            text = WHEN_THERE.sub(r"\1", double or single)
            if SENTENCE.search(text) and "$(" not in text.replace("$(id -un)", ""):
                yield Message(CONTEXT, VALUE.sub(_named, text), None)


def _named(value: re.Match[str]) -> str:
    name = str(value[1] or value[2] or "account")
    return f"{{{'count' if name == '#' else f'value{name}' if name.isdigit() else name}}}"
