"""The list of pages that pictures are made of, and that axe reads: complete, and each page is what it says."""

import re
from pathlib import Path

import pytest

from lab.layout import repository
from lab.pictures import bare, busy, empty, quiet
from lab.pictures.pages import NO_PAGE, PAGES
from lab.pictures.settled import settle
from lab.pictures.visit import address_of
from lab.screenshots import DOCS
from tests.partitions.site import build
from tests.people import matrix

SITES = {
    "busy": lambda: busy.fill(settle(build())),
    "quiet": lambda: quiet.fill(build()),
    "empty": empty.fill,
    "bare": lambda: bare.fill(build()),
}


def pages_asked_for() -> set[str]:
    """Every address of the site that somebody may read."""
    return {name for name, verb in matrix.rows() if verb == "GET" and not name.startswith("api:")}


def test_every_address_that_gives_a_page_is_in_the_list_or_excused():
    listed = {page.view for page in PAGES["busy"]}
    assert sorted(pages_asked_for() - listed - set(NO_PAGE)) == [], "put it into lab/pictures/pages.py"
    assert sorted(set(NO_PAGE) & listed) == []
    assert sorted(set(NO_PAGE) - pages_asked_for()) == []
    assert all(NO_PAGE.values())


def test_every_error_page_is_in_the_list():
    templates = {path.name for path in (repository() / "templates").glob("*.html")} - {"404.html"}
    assert templates <= {page.template for page in PAGES["busy"]}


@pytest.mark.parametrize("site", PAGES)
def test_no_two_pages_of_a_site_have_one_name(site):
    names = [page.name for page in PAGES[site]]
    assert len(set(names)) == len(names)


@pytest.mark.django_db
@pytest.mark.parametrize("site", SITES)
def test_each_page_answers_as_the_list_says(site, client_of, client):
    scene = SITES[site]()
    clients = {name: client_of(person) for name, person in scene.people.items()} | {"": client}
    got = {
        page.name: clients[page.who].get(address_of(page, scene)).status_code
        for page in PAGES[site]
        if not page.template
    }
    assert got == {page.name: page.status for page in PAGES[site] if not page.template}


def test_each_picture_of_the_documents_is_small_has_a_text_and_is_made_by_the_command():
    """`python -m lab.screenshots --docs` makes them anew; what no document shows is not kept."""
    folder = repository() / "docs"
    kept = {path.stem: path.stat().st_size for path in (folder / "pictures").glob("*.png")}
    assert set(kept) == set(DOCS)
    assert {name: size for name, size in kept.items() if size > 200_000} == {}
    shown = {}
    for document in (repository() / "README.md", *folder.glob("*.md")):
        for text, address in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", document.read_text()):
            assert (document.parent / address).is_file(), f"{document.name} shows {address}"
            shown[Path(address).stem] = text
    assert set(shown) == set(DOCS)
    assert [name for name, text in shown.items() if len(text) < 20] == [], "say what the picture shows"
