"""The second factor: set up before anything else by whom it is demanded of, asked for at each login, recorded."""

import re
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from people import second_factor
from people.errors import NoSecondFactor
from people.models import User
from tests.conftest import PASSWORD
from tests.people.codes import SECRET, code, set_up, stored_secret

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.people.site")]

LOGIN, CODE, SET_UP, REMOVE = (
    "/account/login/", "/account/login/code/", "/account/second-factor/set-up/", "/account/second-factor/remove/",
)  # fmt: skip
CODES, NEW_CODES = "/account/second-factor/codes/", "/account/second-factor/codes/new/"


@pytest.fixture(autouse=True)
def demanded(settings):
    settings.MFA = "required"


@pytest.fixture
def boss(db):
    return User.objects.create_user(username="boss", password=PASSWORD, role=User.Role.ADMIN)


def sign_in(client, person):
    return client.post(LOGIN, {"login": person.username, "password": PASSWORD})


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


@pytest.mark.parametrize("name", ["olga", "boss"])
def test_whom_it_is_demanded_of_sets_it_up_before_anything_else(name, request, client):
    person = request.getfixturevalue(name)
    assert sign_in(client, person).status_code == 302
    for address in ("/operators/", "/people/", "/operators/async/", "/account/second-factor/", "/nowhere/"):
        response = client.get(address)
        assert (response.status_code, response.url) == (302, SET_UP), address
    fragment = client.get("/operators/", headers={"HX-Request": "true"})
    assert (fragment.status_code, fragment["HX-Redirect"]) == (200, SET_UP)
    assert client.post("/operators/").url == SET_UP
    assert client.get("/account/password/").status_code == 200
    assert client.get("/account/logout/").status_code == 200


def test_a_session_that_knows_the_password_alone_does_not_outlive_the_setting_up(olga, client):
    thief = Client()
    for either in (client, thief):
        sign_in(either, olga)
        assert either.get("/operators/").url == SET_UP
    secret = re.search(r"<code>(\w{32})</code>", client.get(SET_UP).content.decode())[1]
    client.post(SET_UP, {"code": code(secret)})
    assert client.get("/operators/").status_code == 200
    away = thief.get("/operators/")
    assert away.status_code == 302
    assert away.url.startswith(LOGIN)


def test_it_is_set_up_with_a_code_of_the_shown_secret_and_then_everything_opens(olga, client):
    sign_in(client, olga)
    page = client.get(SET_UP).content.decode()
    assert 'src="data:image/svg+xml;base64,' in page
    secret = re.search(r"<code>(\w{32})</code>", page)[1]

    wrong = client.post(SET_UP, {"code": code(SECRET)})
    assert "This code is wrong" in wrong.content.decode()
    assert not Authenticator.objects.exists()

    assert client.post(SET_UP, {"code": code(secret)}).url == CODES
    assert client.get("/operators/").status_code == 200
    (event,) = recorded(Action.SECOND_FACTOR_ADD)
    assert (event.actor_key, event.subject_key) == (olga.public_id, olga.public_id)
    shown = re.findall(r"<code>(\d{8})</code>", client.get(CODES).content.decode())
    assert len(shown) == 10
    assert "shown once and cannot be shown again" in client.get(CODES).content.decode()  # this once
    for clear in (secret, *shown):
        assert clear not in everything_stored()
    assert stored_secret(olga) == secret


def everything_stored():
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names() if name.startswith(("mfa_", "audit_event"))]
        rows = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608  names that the database gave
            rows += cursor.fetchall()
    assert rows
    return str(rows)


def test_a_login_asks_for_the_code_and_is_nobody_until_it_is_right(olga, client):
    set_up(olga)
    assert sign_in(client, olga).url == CODE
    assert client.get("/people/").status_code == 302
    assert "Your second factor" in client.get(CODE).content.decode()

    assert "This code is wrong" in client.post(CODE, {"code": "000000"}).content.decode()
    (failed,) = recorded(Action.PERSON_LOGIN_FAILED)
    assert (failed.actor_kind, failed.subject_key, failed.reason) == (
        "ANONYMOUS", olga.public_id, "the code of the second factor",
    )  # fmt: skip
    assert not recorded(Action.PERSON_LOGIN)

    assert client.post(CODE, {"code": code()}).status_code == 302
    assert client.get("/operators/").status_code == 200
    assert recorded(Action.PERSON_LOGIN)[0].after == {"address": "127.0.0.1", "by": ["password", "totp"]}


def test_a_code_works_once(olga, client):
    set_up(olga)
    sign_in(client, olga)
    assert client.post(CODE, {"code": code()}).status_code == 302
    other = Client()
    sign_in(other, olga)
    assert other.post(CODE, {"code": code()}).status_code == 200
    assert other.get("/people/").status_code == 302


def test_codes_cannot_be_guessed(olga, client):
    set_up(olga)
    sign_in(client, olga)
    for number in range(5):
        client.post(CODE, {"code": f"{number:06}"})
    response = client.post(CODE, {"code": code()})
    assert (response.status_code, response["Retry-After"]) == (429, "300")
    assert "Too many failed attempts" in response.content.decode()
    assert client.get("/people/").status_code == 302


def test_the_code_of_a_new_one_cannot_be_tried_on_and_on(olga, client):
    sign_in(client, olga)
    for number in range(5):
        client.post(SET_UP, {"code": f"{number:06}"})
    response = client.post(SET_UP, {"code": "123456"})
    assert (response.status_code, response["Retry-After"]) == (429, "300")
    assert not Authenticator.objects.exists()


def test_a_recovery_code_works_once_and_is_told_as_one(olga, client):
    first, *_ = set_up(olga)
    sign_in(client, olga)
    assert client.post(CODE, {"code": first}).status_code == 302
    assert recorded(Action.PERSON_LOGIN)[0].after["by"] == ["password", "recovery_codes"]
    again = Client()
    sign_in(again, olga)
    assert again.post(CODE, {"code": first}).status_code == 200


def test_whom_it_is_demanded_of_cannot_remove_it(olga, client):
    set_up(olga)
    sign_in(client, olga)
    client.post(CODE, {"code": code()})
    assert "so it cannot be removed" in client.get(REMOVE).content.decode()
    assert client.post(REMOVE).status_code == 200
    assert second_factor.has_one(olga)
    assert not recorded(Action.SECOND_FACTOR_REMOVE)


def test_others_may_have_one_and_remove_it(ada, client):
    sign_in(client, ada)
    assert client.get("/people/").status_code == 200
    secret = re.search(r"<code>(\w{32})</code>", client.get(SET_UP).content.decode())[1]
    client.post(SET_UP, {"code": code(secret)})
    assert "10 recovery codes left" in client.get("/account/second-factor/").content.decode()

    assert client.post(NEW_CODES).url == CODES
    assert [event.subject_key for event in recorded(Action.SECOND_FACTOR_CODES)] == [ada.public_id]
    assert client.post(REMOVE).status_code == 302
    assert not Authenticator.objects.exists()
    assert [event.subject_key for event in recorded(Action.SECOND_FACTOR_REMOVE)] == [ada.public_id]


def test_a_change_that_cannot_be_recorded_is_none(olga, client, monkeypatch):
    client.raise_request_exception = False
    sign_in(client, olga)
    secret = re.search(r"<code>(\w{32})</code>", client.get(SET_UP).content.decode())[1]

    def fails(**_):
        raise RuntimeError("the trail is full")

    monkeypatch.setattr(second_factor, "record", fails)
    assert client.post(SET_UP, {"code": code(secret)}).status_code == 500
    assert not Authenticator.objects.exists()
    assert client.get("/operators/").url == SET_UP


def test_a_reset_takes_it_away_and_ends_the_sessions(olga, boss, client):
    set_up(olga)
    sign_in(client, olga)
    client.post(CODE, {"code": code()})
    second_factor.reset(person=olga, actor=SYSTEM, reason="the telephone is lost")
    assert client.get("/operators/").url.startswith(LOGIN)
    assert not Authenticator.objects.exists()
    (event,) = recorded(Action.SECOND_FACTOR_REMOVE)
    assert event.reason == "the telephone is lost"
    with pytest.raises(NoSecondFactor):
        second_factor.reset(person=olga, actor=SYSTEM, reason="again")


def test_keys_are_rotated_without_setting_up_anything_again(olga, settings):
    settings.MFA_KEYS = ["old"]
    set_up(olga)
    settings.MFA_KEYS = ["new", "old"]
    assert stored_secret(olga) == SECRET
    settings.MFA_KEYS = ["old"]
    assert stored_secret(olga) == SECRET


def test_a_page_says_when_it_is_switched_off(olga, client_of, settings):
    shown = client_of(olga).get("/account/password/").context["without_second_factor"]
    settings.MFA = "off"
    assert (shown, client_of(olga).get("/account/password/").context["without_second_factor"]) == (False, True)
    assert client_of(olga).get("/operators/").status_code == 200


def test_the_command_gives_somebody_back_who_lost_everything(olga, client):
    set_up(olga)
    out = StringIO()
    call_command("reset_second_factor", "olga", "--reason", "Ada vouched for her", stdout=out)
    password = out.getvalue().splitlines()[0].rpartition(" ")[2]
    assert client.post(LOGIN, {"login": "olga", "password": password}).status_code == 302
    assert client.get("/operators/").url == "/account/password/"
    own = "a password of her own"
    client.post("/account/password/", {"oldpassword": password, "password1": own, "password2": own})
    assert client.get("/operators/").url == SET_UP
    assert recorded(Action.SECOND_FACTOR_REMOVE)[0].reason == "Ada vouched for her"
    assert password not in str(list(Event.objects.values()))

    with pytest.raises(CommandError, match="no second factor"):
        call_command("reset_second_factor", "olga", "--reason", "again")
    assert client.get("/people/").status_code == 302  # still her session, and still owed: nothing was half done
    with pytest.raises(CommandError, match="nobody"):
        call_command("reset_second_factor", "nobody", "--reason", "x")
