"""One's own tokens: made, shown once, used, revoked; nobody else's."""

import re
from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from audit.models import Event
from audit.values import SYSTEM
from people import operations
from people.errors import NoSuchScope, TooManyTokens
from people.models import Token, User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

PAGE = "/account/tokens/"
ASKED = {"name": "provisioning", "days": "30", "scopes": ["server:cleaned"]}


@pytest.fixture
def olgas(olga, client_of):
    return client_of(olga)


def door(text):
    with override_settings(ROOT_URLCONF="fabricui.register_urls"):
        return Client().post(
            "/register/v1/cleaned", {"hostname": "srv-001", "how": "wiped"}, content_type="application/json",
            headers={"Authorization": f"Bearer {text}"},
        )  # fmt: skip


def test_a_token_is_made_shown_once_used_and_revoked_at_once(olgas, olga):
    assert "No token yet" in olgas.get(PAGE).content.decode()
    made = olgas.post(PAGE, ASKED)
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    text = re.search(r'id="new-token">(fui_\w+)<', made.content.decode())[1]
    token = Token.objects.get()
    assert (token.user, token.name, token.scopes) == (olga, "provisioning", ["server:cleaned"])
    assert timedelta(days=29) < token.expiry - token.created < timedelta(days=31)

    assert door(text).status_code == 404  # it gets in; there is no such server
    later = olgas.get(PAGE).content.decode()
    assert text not in later
    assert token.token_key in later
    response = olgas.post(reverse("token_revoke", args=[token.token_key]))
    assert (response.status_code, response.url) == (302, PAGE)
    assert door(text).status_code == 401
    assert "worth nothing from now on" in olgas.get(PAGE).content.decode()
    assert text not in str(list(Event.objects.values()))
    told = Event.objects.filter(action__startswith="people:token:").order_by("number").values_list("action", flat=True)
    assert told[0] == "people:token:create"
    assert "people:token:revoke" in told


def test_a_closed_account_takes_its_tokens_with_it(olgas, olga):
    text = re.search(r'id="new-token">(fui_\w+)<', olgas.post(PAGE, ASKED).content.decode())[1]
    User.objects.update(is_active=False)
    assert door(text).status_code == 401


def test_nobody_sees_or_revokes_anothers(olga, ada, client_of, olgas):
    token, _ = operations.create_token(person=ada, name="ada's own", lifetime=timedelta(days=1), actor=SYSTEM)
    assert "ada&#x27;s own" not in olgas.get(PAGE).content.decode()
    assert olgas.post(reverse("token_revoke", args=[token.token_key])).status_code == 404
    assert Token.objects.count() == 1
    assert "ada&#x27;s own" in client_of(ada).get(PAGE).content.decode()


def test_who_may_do_nothing_by_program_is_told_so_and_gets_none(charlie, client_of):
    client = client_of(charlie)
    assert "nothing yet that a program could do" in client.get(PAGE).content.decode()
    assert client.post(PAGE, ASKED).status_code == 422
    with pytest.raises(NoSuchScope):
        operations.create_own_token(
            person=charlie, name="x", lifetime=timedelta(days=1), scopes=["server:cleaned"], actor=SYSTEM
        )
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": ""}, "required"), ({"name": "x" * 61}, "at most 60"), ({"days": "36500"}, "valid choice"),
        ({"scopes": []}, "Say what the token is for."), ({"scopes": ["everything"]}, "valid choice"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_at_its_field(olgas, wrong, told):
    answer = olgas.post(PAGE, {**ASKED, **wrong})
    assert answer.status_code == 422
    assert told in answer.content.decode()
    assert not Token.objects.exists()


def test_there_is_an_end_to_them(olgas, olga, monkeypatch):
    monkeypatch.setattr(operations, "MOST_TOKENS", 1)
    assert olgas.post(PAGE, ASKED).status_code == 201
    answer = olgas.post(PAGE, ASKED)
    assert answer.status_code == 422
    assert "You have 1 tokens" in answer.content.decode()
    with pytest.raises(TooManyTokens):
        operations.create_own_token(
            person=olga, name="x", lifetime=timedelta(days=1), scopes=["server:cleaned"], actor=SYSTEM
        )


def test_making_one_asks_again_who_it_is_and_keeps_what_was_filled_in(olgas, settings):
    settings.FRESH_LOGIN_MIN = 15
    asked = olgas.post(PAGE, ASKED).content.decode()
    assert "Is it still you?" in asked
    assert 'name="scopes" value="server:cleaned"' in asked
    assert not Token.objects.exists()
    assert olgas.post(PAGE, {**ASKED, "fresh_password": PASSWORD}).status_code == 201
