"""The examples of docs/api/: a `console` block holds a command and what it answers, as `curl -i` prints it.

In what is answered “…” stands for what is left out: for the rest of a text (an id, a time, a digest), for further items
of a list, and as a name of an object for further fields of it. Everything else stands there as it was answered.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api"
MORE = "…"
STAND_IN = Path(__file__).with_name("stand_in_for_curl.py")
LONGEST_S = 60
_BLOCK = re.compile(r"```console\n\$ (curl .*?)\n(HTTP/1\.1 \d{3}.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Answer:
    """What a command printed."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None


def answer(printed: str) -> Answer:
    """Read what `curl -si` prints, or what the docs show of it."""
    head, _, body = printed.replace("\r\n", "\n").partition("\n\n")
    line, *headers = head.splitlines()
    pairs = (header.partition(": ") for header in headers)
    named = {name.lower(): value.strip() for name, _, value in pairs}
    return Answer(int(line.split()[1]), named, json.loads(body) if body.strip() else None)


def pages() -> dict[str, list[tuple[str, Answer]]]:
    """The commands of each page with what the page says they answer."""
    found = {}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found[page.name] = [(command, answer(said)) for command, said in _BLOCK.findall(text)]
    return found


def blocks() -> dict[str, int]:
    """How many blocks each page has: all of them are examples."""
    return {page.name: page.read_text(encoding="utf-8").count("```") // 2 for page in sorted(DOCS.glob("*.md"))}


def as_said(said: object, shown: object) -> bool:
    """Whether an answer is what the docs say: the same fields, the same values, but for what is left out."""
    if isinstance(said, dict):
        if not isinstance(shown, dict):
            return False
        named = {name: value for name, value in said.items() if name != MORE}
        whole = MORE in said or set(named) == set(shown)
        return whole and all(name in shown and as_said(value, shown[name]) for name, value in named.items())
    if isinstance(said, list):
        if not isinstance(shown, list):
            return False
        items = [item for item in said if item != MORE]
        enough = len(items) <= len(shown) if MORE in said else len(items) == len(shown)
        return enough and all(map(as_said, items, shown))
    if isinstance(said, str) and MORE in said:
        begins = said.rpartition("/")[0] if said.startswith("/") else ""  # of an address, what it is of
        return isinstance(shown, str) and shown.startswith(begins) and shown != ""
    return type(said) is type(shown) and said == shown


def differs(said: Answer, shown: Answer) -> str:
    """What is not as the docs say, in a line; empty for nothing."""
    if said.status != shown.status:
        return f"{shown.status} instead of {said.status}: {shown.body}"
    for name, value in said.headers.items():
        if not as_said(value, shown.headers.get(name)):
            return f"{name}: {shown.headers.get(name)}"
    return "" if as_said(said.body, shown.body) else json.dumps(shown.body, ensure_ascii=False)


def curl_in(folder: Path, *, found: str | None) -> str:
    """The folder to put first into PATH: that of curl, or one with what stands in for it."""
    if found is not None:
        return str(Path(found).parent)
    script = folder / "curl"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{STAND_IN}" "$@"\n')
    script.chmod(0o700)
    return str(folder)


def run(command: str, *, server: object, env: dict[str, str]) -> Answer:
    """Run a command in a shell as it stands; its one request is answered here, in this thread and transaction."""
    with subprocess.Popen(
        ["/bin/sh", "-c", command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        server.handle_request()
        printed, wrong = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, f"{command}: {process.returncode} {wrong}"
    return answer(printed)
