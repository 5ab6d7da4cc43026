"""Who gets what at each address: the expected answers as data (matrix.txt), and the page of the docs made of them.

After a change: `python -m tests.people.matrix` writes docs/roles.md. A verb without a row is not offered to anybody.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver

DATA = Path(__file__).parent / "matrix.txt"
DOC = Path(__file__).resolve().parents[2] / "docs" / "roles.md"
PERSONAS = ("anonymous", "other", "viewer", "member", "owner", "auditor", "operator", "admin")
WHO = {
    "anonymous": "nobody signed in",
    "other": "a member of another tenant",
    "viewer": "a viewer of the tenant",
    "member": "a member of it",
    "owner": "an administrator of it",
    "auditor": "an auditor",
    "operator": "an operator",
    "admin": "an administrator",
}
ANSWERS = {
    "yes": "gets the page, or the form’s answer",
    "login": "is sent to the login page",
    "405": "is told that there is nothing to send here",
    "401": "is told to send a token",
    "no": "is told that their role in the tenant does not allow it",
    "-": "gets the answer of a page that does not exist",
}
VERBS = ("GET", "POST")
API_VERBS = (*VERBS, "PATCH", "DELETE")


def verbs_of(name: str) -> tuple[str, ...]:
    """The verbs that are tried at an address: pages have forms, the API has more."""
    return API_VERBS if name.startswith("api:") else VERBS


class Row(NamedTuple):
    """One verb at one address, with the answer for each of PERSONAS."""

    name: str
    verb: str
    answers: tuple[str, ...]


def rows() -> dict[tuple[str, str], Row]:
    """The expected answers. Raises ValueError for a line that is none."""
    found: dict[tuple[str, str], Row] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, verb, *answers = line.split()
        if verb not in verbs_of(name) or len(answers) != len(PERSONAS) or not set(answers) <= set(ANSWERS):
            raise ValueError(f"matrix.txt: {line} is not a name, a verb and {len(PERSONAS)} answers")
        if (name, verb) in found:
            raise ValueError(f"matrix.txt: {name} {verb} stands there twice")
        found[name, verb] = Row(name, verb, tuple(answers))
    return found


def addresses() -> dict[str, str]:
    """Every URL pattern of the site by its name, with its route."""
    return dict(_walk(get_resolver("fabricui.urls")))


def _walk(resolver: URLResolver, route: str = "/", space: str = "") -> Iterator[tuple[str, str]]:
    for one in resolver.url_patterns:
        here = route + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _walk(one, here, f"{space}{one.namespace}:" if one.namespace else space)
        else:
            assert isinstance(one, URLPattern)
            yield space + (one.name or f"an address without a name: {here}"), here


def page() -> str:
    """docs/roles.md as it should be."""
    routes = addresses()
    lines = [
        "# What each role gets at each address",
        "",
        "Made from `tests/people/matrix.txt` by `python -m tests.people.matrix`; a test tries every address",
        "and verb as everybody.",
        "",
        *(f"- **{name}**: {who}" for name, who in WHO.items()),
        "",
        *(f"- {word}: {means}" for word, means in ANSWERS.items()),
        "",
        "A verb that is not listed is offered to nobody (405). An address that names something of one tenant or person",
        "is tried with Acme’s, of whom *viewer*, *member* and *owner* are; a token with its owner’s. Addresses under",
        "`/api/` are asked with a token that was made for everything: what it is worth is what its person may.",
        "",
        f"| address | verb | {' | '.join(PERSONAS)} |",
        "|---|---|" + "---|" * len(PERSONAS),
    ]
    for row in sorted(rows().values(), key=lambda row: (routes.get(row.name, row.name), row.verb)):
        lines.append(f"| `{routes.get(row.name, row.name)}` | {row.verb} | {' | '.join(row.answers)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")
    django.setup()
    DOC.write_text(page(), encoding="utf-8")
