"""No page shows English to a Russian, beside names, terms and what people typed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from deploy.models import Rollout, RolloutStep
from people.models import User
from people.said import in_language, patterns
from tests.people import matrix
from tests.people.everything import everything
from tests.people.test_roles import ask
from tests.words.leftovers import leftovers, row_words

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
    "console:audit": {"people", "Print"},  # what a filter wants, and the name of a format
    "console:audit_event": {"rule", "run", "sentence", "system"},  # the event's own words
    "portal:evidence": {"Python", "root"},
    "portal:evidence_document": {"root"},
    "portal:server": {"NCCL", "UCX"},
    "portal:settings_webhooks": {"https"},
    "console:difference": {"byhand"},  # a partition that only the found file has
    # Phases, programs and models of the trade, profiles by their names, and what a field wants.
    "probes:overview": {"prefill", "decode"},
    "probes:run": {"root"},
    "probes:series": {"kv-scatter", "kv-pull", "prefill", "MLA", "Mistral-Large", "Coder", "gpt-oss", "Kimi"},
    "probes:settings": {"Mon-Fri", "SL", "GQA", "MLA", "Mooncake", "READ", "vLLM", "NAME"},
    "webhooks:endpoints": {"https"},
}  # fmt: skip


def pages(room):
    names = {name for (name, verb), _ in matrix.rows().items() if verb == "GET" and name.startswith(f"{room}:")}
    return sorted(names)


def english_on(client, site, name):
    page = ask(client, name, "GET", site)
    if page.status_code != 200 or not page.get("Content-Type", "").startswith("text/html"):
        return {}
    found = leftovers(page.content.decode(), row_words())
    return {word: text for word, text in found.items() if word not in TYPED.get(name, ())}


def speaking_russian(site, persona, client_of):
    person = site.people[persona]
    User.objects.filter(pk=person.pk).update(language="ru")
    return client_of(User.objects.get(pk=person.pk))


@pytest.fixture
def russian(db, client_of):
    site = everything()
    return speaking_russian(site, "admin", client_of), site


@pytest.mark.parametrize("room", ["console", "portal", "probes", "webhooks"])
def test_the_operators_pages_leave_no_english(russian, room):
    client, site = russian
    found = {name: words for name in pages(room) if (words := english_on(client, site, name))}
    assert found == {}, found


def test_the_tenants_pages_leave_no_english(db, client_of):
    site = everything()
    client = speaking_russian(site, "owner", client_of)
    found = {name: words for name in pages("portal") if (words := english_on(client, site, name))}
    assert found == {}, found


CAUSES = {
    "PROVEN": "",
    "DEGRADED": "Manager host m2: its partition file is not this revision (SHA-256 0123456789ab…); it is placed again "
    "by itself.",
    "UNPROVEN": "Port 0x0002c90400000101 is not on the fabric, so what it holds is not proven.",
    "REFUSED": "No registered SM is standby, so a takeover could bring nothing proven. Enrol a second manager host, or "
    "start OpenSM on it and wait until it is standby.",
    "RESTORED": "Port 0x0002c90400000101 of srv-001 (LID 7) holds 0xac41 at index 3, which it should not. Stop what "
    "uses it; it can still reach that partition. The files of revision 1 are back on every manager host. The fabric "
    "holds them again.",
    "STUCK": "Port 0x0002c90400000101 of srv-001 (LID 7) does not hold 0x8010, which it should. Putting revision 1 "
    "back failed 3 times: The partition file on m1 and m2 is not the file of revision 1. Put the file of revision 1 "
    "(SHA-256 0123456789ab…) on each manager host, make the master reload it, and look at the fabric. Then let go of "
    "this rollout with a reason.",
    "CANCELLED": "Cancelled by Olga.",
}  # fmt: skip


@pytest.mark.parametrize("state", CAUSES)
def test_every_end_of_a_rollout_is_told_in_russian(russian, state):
    client, site = russian
    rollout = Rollout.objects.latest("pk")
    cause = CAUSES[state]
    Rollout.objects.filter(pk=rollout.pk).update(state=state, cause=cause, finished_at=timezone.now())
    steps = ["Staged revision 2 on m1 and m2.", "Placed revision 2 on m2."]
    steps.append(f"A person is needed. {cause or CAUSES['UNPROVEN']}")
    for at, text in enumerate(steps):
        RolloutStep.objects.create(
            rollout=rollout, at=timezone.now() + timedelta(seconds=at), state=state, host="", text=text
        )
    for name in ("console:rollout", "console:rollout_proof", "console:rollouts", "console:home"):
        assert english_on(client, site, name) == {}, name


def test_one_lost_translation_is_seen(russian, monkeypatch):
    client, site = russian
    assert not english_on(client, site, "console:conflicts")
    exact, _ = patterns("ru")
    monkeypatch.delitem(exact, "Rollouts")
    in_language.cache_clear()
    assert "Rollouts" in english_on(client, site, "console:conflicts")
    in_language.cache_clear()
