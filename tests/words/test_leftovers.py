"""No page of the operator's own room shows English to a Russian, beside names, terms and what people typed."""

import pytest

from people.models import User
from people.said import in_language, patterns
from tests.people import matrix
from tests.people.everything import everything
from tests.people.test_roles import ask
from tests.words.leftovers import leftovers, row_words

# Pages that still show sentences of rooms whose files are not in SPOKEN (`lab/words/messages.py`). Take one off the
# list when its sentences are translated; none is ever added.
NOT_YET = frozenset({
    "console:adoption", "console:audit", "console:audit_event", "console:difference", "console:drift", "console:home",
    "console:pkey_history", "console:plan", "console:qualification", "console:replacement", "console:rollout",
    "console:rollout_proof", "console:server",
})  # fmt: skip
# Said by the trail in the head of every page, as soon as it is in SPOKEN it is no exception any more.
HEAD = "The audit trail is young: its first check has still to run."
# What a search or a file wants to the letter, beside its explanation; what the page explains in its own words.
TYPED = {
    "console:servers": {
        "up", "down", "init", "absent", "missing", "confirmed", "unconfirmed", "witnessed", "enrolled", "conflict",
        "agrees", "disagrees", "unprovable", "unseen", "none",
    },
    "console:labels": {"hostname", "rack", "unit", "serial", "tenant"},
    "console:managers": {"root"},
    "console:glossary": {"host", "channel", "adapter"},
    "console:partitions": {"over"},
    "console:board_new_partition": {"over"},
}  # fmt: skip


def pages():
    names = {name for (name, verb), _ in matrix.rows().items() if verb == "GET" and name.startswith("console:")}
    return sorted(names - NOT_YET)


def english_on(client, site, name):
    page = ask(client, name, "GET", site)
    if page.status_code != 200 or not page.get("Content-Type", "").startswith("text/html"):
        return {}
    found = leftovers(page.content.decode(), row_words())
    return {word: text for word, text in found.items() if text != HEAD and word not in TYPED.get(name, ())}


@pytest.fixture
def russian(db, client_of):
    site = everything()
    admin = site.people["admin"]
    User.objects.filter(pk=admin.pk).update(language="ru")
    return client_of(User.objects.get(pk=admin.pk)), site


def test_the_operators_pages_leave_no_english(russian):
    client, site = russian
    found = {name: words for name in pages() if (words := english_on(client, site, name))}
    assert found == {}


def test_one_lost_translation_is_seen(russian, monkeypatch):
    client, site = russian
    assert not english_on(client, site, "console:conflicts")
    exact, _ = patterns("ru")
    monkeypatch.delitem(exact, "Rollouts")
    in_language.cache_clear()
    assert "Rollouts" in english_on(client, site, "console:conflicts")
    in_language.cache_clear()
