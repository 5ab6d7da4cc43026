"""docs/api.md: its examples are sent and answered as it says, and every code and scope has its row."""

import json
import re
from pathlib import Path

import pytest

from people.api.problems import CODES
from people.scopes import _SCOPES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```http\n(GET|POST) /api/v1/(\S+)\n(?:(\{.*\})\n)?→ (\d+) (\{.*\})\n```", TEXT)


def holds(said, shown):
    """Whether `shown` has all that the docs say of it."""
    if isinstance(said, dict):
        return all(name in shown and holds(value, shown[name]) for name, value in said.items())
    if isinstance(said, list):
        return len(said) == len(shown) and all(map(holds, said, shown))
    return said == shown


@pytest.mark.django_db
def test_the_examples_are_answered_as_the_docs_say(operator, site):
    assert len(EXAMPLES) == TEXT.count("```http") == 6
    names = {"srv-001": site.provider.servers[0].public_id}
    names |= {name: getattr(site, name).public_id for name in ("training", "inference")}
    names["look"] = site.provider.observe().public_id
    for verb, address, body, status, said in EXAMPLES:
        for name, value in names.items():
            body = body.replace(f'"{{{name}}}"', f'"{value}"')
        answer = operator.ask(verb, address, json.loads(body) if body else None)
        assert answer.status_code == int(status), (address, answer.content)
        assert holds(json.loads(said), answer.json()), (address, answer.json())
        names["digest"] = answer.json().get("digest", "")


def test_every_code_has_its_row():
    from fabricui import api  # noqa: F401  the rooms' codes come with it

    rows = {
        (code, int(status))
        for codes, status in re.findall(r"^\| (`[a-z_`, ]+`) \| (\d+) \|", TEXT, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert rows == {(code.name, code.status) for code in CODES.values()}


def test_every_scope_has_its_row():
    from fabricui import api  # noqa: F401  the rooms' scopes come with it

    rows = set(re.findall(r"^\| `(\w+:\w+)` \|", TEXT, re.MULTILINE))
    assert rows == set(_SCOPES) - {"server:cleaned"}  # that one opens the registration door
