"""A password that somebody else made opens one page: that which changes it. No token is taken before that."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from people import accounts, given
from people.authentication import RecordedTokenAuthentication
from people.errors import NoPassword
from people.models import User
from people.operations import create_person, create_token, set_password
from tests.conftest import PASSWORD
from tests.people.codes import set_up

pytestmark = pytest.mark.django_db
LOGIN, CHANGE, OTHERS, OWN = "/account/login/", "/account/password/", "/account/tokens/", "a password of my own"


@pytest.fixture
def dora(db):
    return create_person(username="dora", password=PASSWORD, actor=SYSTEM, is_given=True)


def signed_in(password=PASSWORD, username="dora"):
    client = Client()
    assert client.post(LOGIN, {"login": username, "password": password}).status_code == 302
    return client


def change(client, new=OWN, old=PASSWORD):
    return client.post(CHANGE, {"oldpassword": old, "password1": new, "password2": new})


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


def test_nothing_else_opens_before_it_is_changed(dora):
    client = signed_in()
    for address in ("/", "/board/", OTHERS, "/account/second-factor/", "/api/", "/live/", "/nowhere/"):
        response = client.get(address)
        assert (response.status_code, response.url) == (302, CHANGE), address
    assert client.post(OTHERS, {"name": "ci"}).url == CHANGE
    fragment = client.get("/board/", headers={"HX-Request": "true"})
    assert (fragment.status_code, fragment["HX-Redirect"]) == (200, CHANGE)
    page = client.get(CHANGE).content.decode()
    assert "Somebody else made your password" in page
    assert "Leave it as it is" not in page
    assert client.get("/account/logout/").status_code == 200
    assert client.post("/account/theme/", {"theme": "DARK"}).status_code == 302
    assert User.objects.get(pk=dora.pk).theme == "DARK"


def test_the_given_password_is_no_new_one(dora):
    client = signed_in()
    assert "the password that you have" in change(client, new=PASSWORD).content.decode()
    assert client.get(OTHERS).url == CHANGE


def test_once_changed_everything_opens_and_the_trail_has_both(dora):
    client = signed_in()
    assert change(client).url == "/"
    assert client.get(OTHERS).status_code == 200
    (made,), (changed,) = recorded(Action.PERSON_CREATE), recorded(Action.PERSON_PASSWORD)
    assert made.after["to_be_changed"] is True
    assert (changed.before, changed.after) == ({"to_be_changed": True}, None)
    assert changed.actor_key == dora.public_id
    assert signed_in(OWN).get(OTHERS).status_code == 200


def test_the_second_factor_comes_after_it(settings, db):
    settings.MFA = "required"
    create_person(username="dora", password=PASSWORD, actor=SYSTEM, role="OPERATOR", is_given=True)
    client = signed_in()
    assert client.get("/account/second-factor/set-up/").url == CHANGE
    change(client)
    assert client.get("/").url == "/account/second-factor/set-up/"


def shown(text):
    request = RequestFactory().get("/", headers={"Authorization": f"Token {text}"})
    return RecordedTokenAuthentication().authenticate(Request(request))


def test_no_token_is_taken_before_it_and_that_is_recorded(olga):
    _, text = create_token(person=olga, name="ci", lifetime=timedelta(days=1), actor=SYSTEM)
    assert shown(text)[0] == olga
    password = accounts.give_new_password(person=olga, actor=SYSTEM, reason="lost")
    with pytest.raises(AuthenticationFailed, match="a password to change"):
        shown(text)
    assert Event.objects.latest("number").reason == "its person has not changed a given password yet"
    answer = Client().get("/api/v1/servers", headers={"Authorization": f"Token {text}"})
    assert answer.status_code == 401
    assert "a password to change" in answer.content.decode()
    assert change(signed_in(password, "olga"), old=password).status_code == 302
    assert shown(text)[0] == olga


def test_every_way_by_which_somebody_else_makes_one(client_of, olga, alice):
    olga.role = User.Role.ADMIN
    olga.save()
    client_of(olga).post(reverse("console:people"), {"username": "dora", "name": "Dora", "role": "AUDITOR"})
    client_of(olga).post(reverse("console:person_password", args=[alice.public_id]), {"reason": "lost"})
    call_command("create_person", "eva", stdout=StringIO())
    set_up(olga)
    call_command("reset_second_factor", "olga", "--reason", "lost", stdout=StringIO())
    given_to = User.objects.filter(must_change_password=True).values_list("username", flat=True)
    assert sorted(given_to) == sorted(["dora", "alice", "eva", "olga"])


def test_who_chose_it_is_asked_for_nothing(olga):
    set_password(person=olga, password=OWN, actor=SYSTEM)
    assert signed_in(OWN, "olga").get(OTHERS).status_code == 200
    assert recorded(Action.PERSON_PASSWORD)[0].after is None


def test_who_comes_from_the_provider_has_no_password_to_change(dora, rf):
    dora.set_unusable_password()
    assert not given.owes(dora)
    with pytest.raises(NoPassword, match="has no password here"):
        accounts.give_new_password(person=dora, actor=SYSTEM, reason="lost")


def test_code_of_before_makes_accounts_without_it(db):
    """The column has its default in the database: the version before runs beside the migration."""
    from django.db import connection

    columns = [field.column for field in User._meta.local_concrete_fields if field.column not in
               ("id", "must_change_password", "last_login", "sessions_ended_at")]  # fmt: skip
    values = {"is_superuser": False, "is_staff": False, "is_active": True, "date_joined": "2026-12-01 10:00:00+00:00"}
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO people_user ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})",  # noqa: S608
            [values.get(column, "x") for column in columns],
        )
    assert User.objects.get(username="x").must_change_password is False
