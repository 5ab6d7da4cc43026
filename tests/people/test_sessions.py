"""How long a session lasts, and how it is ended."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from people import sessions
from people.actor import actor_of
from tests.conftest import PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.people.site")]


@pytest.fixture
def later(monkeypatch):
    """Let so many minutes pass."""
    began = timezone.now()

    def later(minutes):
        monkeypatch.setattr(timezone, "now", lambda: began + timedelta(minutes=minutes))

    return later


def sign_in(client, person):
    client.post("/account/login/", {"login": person.username, "password": PASSWORD})


def ended():
    return list(Event.objects.filter(action=Action.SESSION_END).order_by("number"))


def test_a_session_ends_when_nothing_is_done(olga, client, settings, later):
    sign_in(client, olga)
    later(settings.SESSION_IDLE_MIN - 1)
    assert client.get("/people/").status_code == 200
    later(2 * settings.SESSION_IDLE_MIN - 2)  # the last page counts
    assert client.get("/people/").status_code == 200
    later(3 * settings.SESSION_IDLE_MIN)
    response = client.get("/people/?a=1")
    assert (response.status_code, response.url) == (302, "/account/login/?next=%2Fpeople%2F%3Fa%3D1")
    assert f"nothing was done for {settings.SESSION_IDLE_MIN} min" in client.get(response.url).content.decode()
    assert client.get("/people/").status_code == 302
    (event,) = ended()
    assert (event.actor_kind, event.subject_key) == ("SYSTEM", olga.public_id)
    assert "nothing was done" in event.reason


@pytest.mark.parametrize(
    "headers", [{"HX-Request": "true"}, {"Accept": "text/event-stream"}, {"Sec-Fetch-Mode": "cors"}]
)
def test_a_page_that_asks_by_itself_keeps_no_session_alive(olga, client, settings, later, headers):
    sign_in(client, olga)
    for minutes in range(5, settings.SESSION_IDLE_MIN, 5):
        later(minutes)
        assert client.get("/people/", headers=headers).status_code == 200
    later(settings.SESSION_IDLE_MIN + 1)
    response = client.get("/people/", headers=headers)
    assert response.get("HX-Redirect", response.get("Location", "")).startswith("/account/login/")
    assert len(ended()) == 1


def test_what_is_posted_from_a_page_counts(olga, client, settings, later):
    sign_in(client, olga)
    later(settings.SESSION_IDLE_MIN - 1)
    client.post("/people/", headers={"HX-Request": "true"})
    later(settings.SESSION_IDLE_MIN + 5)
    assert client.get("/people/").status_code == 200


def test_a_session_ends_after_its_time_however_busy(olga, client, settings, later):
    sign_in(client, olga)
    for minutes in range(30, settings.SESSION_HOURS * 60, 30):
        later(minutes)
        assert client.get("/people/").status_code == 200
    later(settings.SESSION_HOURS * 60 + 1)
    assert client.get("/people/").status_code == 302
    assert f"a session ends {settings.SESSION_HOURS} h after" in ended()[0].reason


def test_a_session_is_written_once_a_minute_at_most(olga, client, later, django_assert_num_queries):
    sign_in(client, olga)
    with django_assert_num_queries(2):  # the session, the person
        client.get("/people/")
    later(2)
    client.get("/people/")
    with django_assert_num_queries(2):
        client.get("/people/")


def test_all_sessions_of_a_person_are_ended_at_once(olga, ada, client_of):
    first, second, other = client_of(olga), client_of(olga), client_of(ada)
    sessions.end_all(person=olga, actor=actor_of(ada), reason="a laptop was stolen")
    assert [one.get("/people/").status_code for one in (first, second, other)] == [302, 302, 200]
    assert ended()[0].reason == "a laptop was stolen"
    assert ended()[0].actor_key == ada.public_id
    assert client_of(olga).get("/people/").status_code == 200  # a new login begins anew


def test_a_session_from_before_the_rule_begins_with_it_and_can_be_ended(olga, client_of):
    client = client_of(olga)
    session = client.session
    del session[sessions.BEGAN], session[sessions.SEEN]
    session.save()
    assert client.get("/people/").status_code == 200
    assert abs(client.session[sessions.BEGAN] - time.time()) < 60

    session = client.session
    del session[sessions.BEGAN]
    session.save()
    sessions.end_all(person=olga, actor=SYSTEM)
    assert client.get("/people/").status_code == 302


def test_an_end_that_cannot_be_recorded_is_told_as_an_error_and_nobody_gets_in(
    olga, client_of, settings, monkeypatch, later
):
    client = client_of(olga)
    client.raise_request_exception = False

    def fails(**_):
        raise RuntimeError("the trail is full")

    monkeypatch.setattr(sessions, "record", fails)
    later(settings.SESSION_IDLE_MIN + 1)
    assert client.get("/people/").status_code == 500
