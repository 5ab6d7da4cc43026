"""Every page that is pictured speaks Russian to a Russian: with drift, ended rollouts, conflicts, and with nothing."""

import pytest

from lab.pictures.pages import PAGES
from lab.pictures.visit import address_of
from people.models import User
from people.said import in_language, patterns
from tests.lab.test_pictures import SITES
from tests.words.leftovers import leftovers, row_words
from tests.words.test_leftovers import TYPED

pytestmark = pytest.mark.django_db

# Keys, terms, and names of programs; the value of an option; what people typed.
EVERYWHERE = {"Ctrl", "multicast", "sshd", "srv"}
KEPT = {
    "second-factor-set-up": {"TOTP"},
    "manager": {"python", "umad", "modprobe"},
    "drift": {"TRUE", "FALSE", "both", "null", "qos"},
    "probes-run": {"dmesg", "out", "of", "memory"},
    "replacement": {"RMA"},
    "rollout-waits": {"in", "the", "workshop"},
    "rollout-word": {"in", "the", "workshop"},
    "servers-wrong-filter": {
        "colour", "firmware", "guid", "leaf", "name", "partition", "rack", "serial", "silent", "state", "tenant",
        "trust", "unit", "witness",
    },
}  # fmt: skip


def english_on_pages(site, client_of):
    """The English words of every page that somebody opens signed in, by the text they stand in."""
    scene = SITES[site]()
    User.objects.update(language="ru")
    clients = {name: client_of(User.objects.get(pk=person.pk)) for name, person in scene.people.items()}
    names, found, looked_at = row_words(), {}, 0
    for page in PAGES[site]:
        if page.template or not page.who:
            continue
        answer = clients[page.who].get(address_of(page, scene))
        if answer.get("Content-Type", "").startswith("text/html"):
            html = b"".join(answer.streaming_content) if answer.streaming else answer.content
            kept = EVERYWHERE | KEPT.get(page.name, set()) | TYPED.get(page.view, set())
            for word, text in leftovers(html.decode(), names).items():
                if word not in kept:
                    found.setdefault(" ".join(text.split()), set()).add(f"{word} on {page.name}")
            looked_at += 1
    return found, looked_at


@pytest.mark.parametrize(("site", "least"), [("busy", 60), ("quiet", 15), ("empty", 20), ("bare", 5)])
def test_no_english_is_left(site, least, client_of):
    found, looked_at = english_on_pages(site, client_of)
    assert found == {}
    assert looked_at >= least


def test_a_sentence_that_is_not_known_is_seen(client_of, monkeypatch):
    exact, _ = patterns("ru")
    monkeypatch.delitem(exact, "No registered subnet manager is standby: when the master stops, nothing takes over.")
    in_language.cache_clear()
    found, _ = english_on_pages("busy", client_of)
    in_language.cache_clear()
    assert any("when the master stops" in text for text in found)
