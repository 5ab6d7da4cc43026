"""The trail as a Russian reviewer reads it: deeds and our own names translated, names that people gave never."""

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import translation

from audit.actions import Action
from audit.models import Event
from audit.record import record
from audit.values import SYSTEM, Subject
from fabricui.templatetags.page import subject
from people import operations
from people.actor import actor_of
from people.models import User
from people.said import said
from tests.words.test_languages import RUSSIAN


@pytest.mark.parametrize("action", list(Action))
def test_every_deed_is_told_in_russian(action):
    with translation.override("ru"):
        assert RUSSIAN.search(str(said(action.words)))


def test_what_a_person_named_is_not_translated(db):
    with transaction.atomic():
        record(
            action=Action.PARTITION_CREATE, actor=SYSTEM, subject=Subject(kind="partition", key="k", label="limited")
        )
        record(
            action=Action.TRAIL_EXPORT, actor=SYSTEM, subject=Subject(kind="trail", key="t", label="the audit trail")
        )
    partition, trail = Event.objects.order_by("number")
    with translation.override("ru"):
        assert subject(partition) == "limited"
        assert subject(trail) == "журнал аудита"
    with translation.override("en"):
        assert subject(trail) == "the audit trail"


def test_the_page_of_an_event_is_a_russian_sentence(olga, client_of):
    User.objects.filter(pk=olga.pk).update(language="ru")
    operations.set_theme(person=olga, theme="DARK", actor=actor_of(olga))
    event = Event.objects.latest("number")
    browser = client_of(User.objects.get(pk=olga.pk))
    page = browser.get(reverse("console:audit_event", args=[event.number])).content.decode()
    assert f"<h1>{event.actor_name} меняет тему {event.subject_label}</h1>" in page
    listed = browser.get(reverse("console:audit")).content.decode()
    assert "меняет тему (people:person:theme)" in listed
