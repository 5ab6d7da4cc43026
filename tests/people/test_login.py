"""Signing in by real requests, and what is refused."""

import time

import pytest
from django.test import Client

from audit.actions import Action
from audit.models import Event
from people.adapter import ClosedAdapter
from people.models import User
from tests.conftest import PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.people.site")]

LOGIN = "/account/login/"
WRONG = "not the password at all"


def sign_in(client, username="olga", password=PASSWORD, **extra):
    return client.post(LOGIN, {"login": username, "password": password, **extra})


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


def test_the_page_asks_for_name_and_password(client):
    page = client.get(LOGIN + "?next=/operators/").content.decode()
    assert 'name="login"' in page
    assert 'name="password"' in page
    assert 'value="/operators/"' in page
    assert "sign up" not in page.lower()


def test_a_person_signs_in_and_out(olga, client):
    response = sign_in(client, next="/operators/")
    assert (response.status_code, response.url) == (302, "/operators/")
    assert client.get("/operators/").status_code == 200
    event = recorded(Action.PERSON_LOGIN)[0]
    assert (event.actor_key, event.subject_key, event.after) == (
        olga.public_id,
        olga.public_id,
        {"address": "127.0.0.1", "by": ["password"]},
    )
    assert event.request_id == response["X-Request-ID"]

    assert client.get("/account/logout/").status_code == 200  # only a POST signs out
    assert client.post("/account/logout/").status_code == 302
    assert client.get("/operators/").status_code == 302
    assert len(recorded(Action.PERSON_LOGOUT)) == 1


def test_nobody_is_sent_elsewhere_after_signing_in(olga, client):
    assert sign_in(client, next="https://elsewhere.example/").url == "/"


def test_a_wrong_password_is_told_and_recorded_without_what_was_typed(olga, client):
    response = sign_in(client, password=WRONG)
    assert response.status_code == 200
    assert "User name or password is wrong" in response.content.decode()
    event = recorded(Action.PERSON_LOGIN_FAILED)[0]
    assert (event.actor_kind, event.actor_key, event.subject_key) == ("ANONYMOUS", "127.0.0.1", olga.public_id)
    assert WRONG not in str(Event.objects.values())


def test_a_password_typed_as_the_user_name_does_not_get_into_the_trail(olga, client):
    unknown = sign_in(client, username=PASSWORD, password="x")
    known = sign_in(client, password=WRONG)
    first, _ = recorded(Action.PERSON_LOGIN_FAILED)
    assert (first.subject_key, first.subject_label) == ("", "an unknown name")
    assert PASSWORD not in str(list(Event.objects.values()))
    told = "User name or password is wrong"  # the same for both: nobody learns who has an account
    assert told in unknown.content.decode()
    assert told in known.content.decode()


def test_too_many_failures_refuse_even_the_right_password_with_a_sentence(olga, client):
    for _ in range(5):
        sign_in(client, password=WRONG)

    for _ in range(3):
        response = sign_in(client)
        assert response.status_code == 429
        assert response["Retry-After"] == "300"
        assert "Too many failed attempts" in response.content.decode()
        assert "wait five minutes" in response.content.decode()

    assert client.get("/people/").status_code == 302
    assert len(recorded(Action.PERSON_LOGIN_FAILED)) == 5
    refusals = recorded(Action.PERSON_LOGIN_REFUSED)  # one a minute and source, however many came
    assert [event.subject_key for event in refusals] == [olga.public_id]


def test_refusals_are_recorded_again_after_a_minute_and_the_door_opens_after_five(olga, client, monkeypatch):
    now = time.time()
    for _ in range(5):
        sign_in(client, password=WRONG)
    sign_in(client)
    monkeypatch.setattr(time, "time", lambda: now + 65)
    sign_in(client)
    assert len(recorded(Action.PERSON_LOGIN_REFUSED)) == 2

    monkeypatch.setattr(time, "time", lambda: now + 305)
    assert sign_in(client).status_code == 302


def test_one_account_under_attack_does_not_lock_out_another_person_elsewhere(olga, ada, client):
    for _ in range(6):
        sign_in(client, password=WRONG)
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), username="ada").status_code == 302


def test_one_address_that_tries_many_names_is_refused(olga, client):
    for number in range(10):
        sign_in(client, username=f"nobody-{number}", password=WRONG)
    assert "Too many failed attempts" in sign_in(client).content.decode()


def test_a_forwarded_address_that_anyone_can_write_does_not_help(olga, client):
    for number in range(10):
        client.post(
            LOGIN, {"login": f"nobody-{number}", "password": WRONG}, headers={"X-Forwarded-For": f"198.51.100.{number}"}
        )
    assert "Too many failed attempts" in sign_in(client).content.decode()
    assert {event.actor_key for event in recorded(Action.PERSON_LOGIN_FAILED)} == {"127.0.0.1"}


def test_a_flood_from_one_address_gets_a_page_that_says_so(olga, client):
    for _ in range(30):
        client.post(LOGIN, {"login": "olga"})
    response = sign_in(client)
    assert (response.status_code, response["Retry-After"]) == (429, "60")
    assert "Wait a minute" in response.content.decode()
    assert len(recorded(Action.PERSON_LOGIN_REFUSED)) == 1


def test_a_login_that_cannot_be_recorded_does_not_happen(olga, monkeypatch):
    def fails(**_):
        raise RuntimeError("the trail is full")

    monkeypatch.setattr("people.logins.record", fails)
    client = Client(raise_request_exception=False)
    assert sign_in(client).status_code == 500
    assert client.get("/people/").status_code == 302


def test_a_closed_account_is_told_so(olga, client):
    User.objects.filter(pk=olga.pk).update(is_active=False)
    response = client.post(LOGIN, {"login": "olga", "password": PASSWORD}, follow=True)
    assert "closed" in response.content.decode()
    assert client.get("/people/").status_code == 302
    assert [event.reason for event in recorded(Action.PERSON_LOGIN_FAILED)] == ["the account is closed"]


def test_nobody_signs_up(rf):
    assert not ClosedAdapter().is_open_for_signup(rf.get("/"))


@pytest.mark.parametrize("address", ["signup/", "password/reset/", "email/", "password/set/"])
def test_pages_we_do_not_need_do_not_exist(client, address):
    assert client.get(f"/account/{address}").status_code == 404


def test_a_post_without_the_token_is_refused(olga):
    assert sign_in(Client(enforce_csrf_checks=True)).status_code == 403


def test_a_person_changes_the_password_and_stays_signed_in(olga, client):
    sign_in(client)
    elsewhere = Client()
    sign_in(elsewhere)
    page = "/account/password/"
    assert "Change your password" in client.get(page).content.decode()

    wrong = {"oldpassword": WRONG, "password1": "brand new password", "password2": "brand new password"}
    assert "not your present password" in client.post(page, wrong).content.decode()
    weak = {"oldpassword": PASSWORD, "password1": "short", "password2": "short"}
    assert "at least 12 characters" in client.post(page, weak).content.decode()
    assert not recorded(Action.PERSON_PASSWORD)

    right = {"oldpassword": PASSWORD, "password1": "brand new password", "password2": "brand new password"}
    assert client.post(page, right).status_code == 302
    assert client.get("/people/").status_code == 200
    assert elsewhere.get("/people/").status_code == 302
    assert User.objects.get().check_password("brand new password")
    assert [event.actor_key for event in recorded(Action.PERSON_PASSWORD)] == [olga.public_id]
    assert "brand new password" not in str(list(Event.objects.values()))


def test_colours_are_switched_and_the_person_stays_where_they_were(olga, client_of):
    client = client_of(olga)
    response = client.post("/account/theme/", {"theme": "DARK", "next": "/operators/"})
    assert (response.status_code, response.url) == (302, "/operators/")
    assert User.objects.get().theme == "DARK"
    assert client.post("/account/theme/", {"theme": "LIGHT", "next": "https://elsewhere.example/"}).url == "/"
    assert client.post("/account/theme/", {"theme": "PINK"}).status_code == 400
    assert client.get("/account/theme/").status_code == 405
    assert Client().post("/account/theme/", {"theme": "DARK"}).status_code == 302
    assert [event.after["theme"] for event in recorded(Action.PERSON_THEME)] == ["DARK", "LIGHT"]
