"""Help: the glossary as pages quote it, and the keys."""

import re
from pathlib import Path

from django.template import Context, Template

from console import glossary
from console.frame import PAGES

ROOT = Path(__file__).resolve().parents[2]


def what(name):
    return Template('{% load help %}{% what "' + name + '" %}').render(Context())


def test_a_word_is_explained_from_the_glossary():
    shown = what("P_Key")
    assert 'aria-label="What is P_Key?"' in shown
    assert 'popovertarget="what-p_key"' in shown
    assert 'id="what-p_key" popover' in shown
    assert "printed <code>0x0010</code>" in shown


def test_every_word_that_a_template_explains_is_in_the_glossary_and_stands_once():
    found = 0
    for path in (ROOT / "templates").rglob("*.html"):
        asked = re.findall(r'{% what "([^"]+)" %}', path.read_text(encoding="utf-8"))
        assert len(asked) == len(set(asked)), path
        for name in asked:
            found += 1
            assert glossary.meaning_of(name) is not None, f"{path}: {name}"
    assert found >= 8


def test_what_nobody_knows_and_a_missing_file_leave_the_page_as_it_is(settings, tmp_path):
    assert what("flux capacitor") == ""
    settings.BASE_DIR = tmp_path
    glossary.words.cache_clear()
    try:
        assert what("P_Key") == ""
    finally:
        glossary.words.cache_clear()


def test_markdown_becomes_html_and_nothing_else_does():
    word = glossary.Word("x", "a `<b>` and *em* and [page](faults.md) <script>")
    assert word.html == "a <code>&lt;b&gt;</code> and <em>em</em> and page &lt;script&gt;"


def test_all_rows_are_read():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(glossary.words()) == sum(line.startswith("| ") for line in text.splitlines()) - 1
    assert glossary.meaning_of("Limited Member") == glossary.meaning_of("full")


def test_the_glossary_is_a_page(operator):
    page = operator.get("/glossary/").content.decode()
    assert "sweep barrier" in page
    assert "What the words on these pages mean" in page


def test_each_key_leads_to_one_page(operator):
    keys = [key for *_, key in PAGES]
    assert len(set(keys)) == len(keys)
    page = operator.get("/rollouts/").content.decode()
    for key in (*keys, "h"):
        assert page.count(f'data-go="{key}"') == 1


def test_a_stranger_has_keys_but_no_way_into_the_pages(charlie, client_of):
    page = client_of(charlie).get("/board/").content.decode()
    assert "/glossary/" not in page
    assert client_of(charlie).get("/glossary/").status_code == 404
