"""`|told` makes markup (`<time>`), so it stands in a page's text only, never inside of a tag."""

import re

import pytest

from lab.words.messages import ROOT

# Django's own tags and values first, so that a “>” of theirs ends no tag of the page's.
INSIDE = re.compile(
    r"(?P<comment>\{#.*?#\}|<!--.*?-->)"
    r"|<[A-Za-z/](?P<tag>(?:\{%.*?%\}|\{\{.*?\}\}|\"[^\"]*\"|[^>\"])*)>",
    re.DOTALL,
)
QUOTED = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
TOLD = re.compile(r"\|\s*told\b|\bas told\b")


def in_tags(source):
    """What stands inside of a tag and goes through `|told`."""
    for found in INSIDE.finditer(source):
        yield from (one for one in QUOTED.findall(found["tag"] or "") if TOLD.search(one))


@pytest.mark.parametrize("path", sorted((ROOT / "templates").glob("**/*.html")), ids=lambda path: path.name)
def test_no_attribute_holds_what_makes_markup(path):
    assert list(in_tags(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        '<a title="{{ why|told }}">x</a>',
        "<a title=\"{% if a > b %}{{ why|default:'x > y'|told }}{% endif %}\">x</a>",
        '<a\n  {% if a %}data-why="{{ why|told|linebreaks }}"{% endif %}>x</a>',
        '<a title="{% blocktranslate with why=why|told %}Why: {{ why }}{% endblocktranslate %}">x</a>',
    ],
)
def test_the_scan_sees_one_in_a_tag(source):
    assert list(in_tags(source))


def test_the_scan_leaves_text_alone():
    assert not list(in_tags('<a title="{{ why|said }}">{{ why|told }}</a> {% if a > b %}{{ why|told }}{% endif %}'))
