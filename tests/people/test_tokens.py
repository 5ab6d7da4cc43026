"""What the trail holds of API tokens that are shown."""

from datetime import timedelta

import pytest
from django.test import override_settings
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from audit.models import Event
from audit.values import SYSTEM
from people import scopes
from people.models import Token, User
from people.operations import create_token
from people.permissions import is_operator

pytestmark = pytest.mark.django_db


class Servers(APIView):
    """A view that a token must be for."""

    required_scope = "servers:read"

    def get(self, request):
        """Say who asks."""
        return Response({"who": request.user.username})


urlpatterns = [path("servers", Servers.as_view())]


@pytest.fixture(autouse=True)
def offered(monkeypatch):
    """The scopes of this file, for operators."""
    known = {name: scopes.Scope(name, "see what there is", is_operator) for name in ("servers:read", "probes:read")}
    monkeypatch.setattr(scopes, "_SCOPES", scopes._SCOPES | known)


@pytest.fixture
def ask(client):
    with override_settings(ROOT_URLCONF=__name__):
        yield lambda text, address="192.0.2.7": client.get(
            "/servers", headers={"Authorization": f"Token {text}"}, REMOTE_ADDR=address
        )


def make(person, *, scopes=("servers:read",), lifetime=timedelta(days=1)):
    return create_token(person=person, name="ci", lifetime=lifetime, actor=SYSTEM, scopes=scopes)


def told():
    return list(Event.objects.filter(action__startswith="people:token:").exclude(action="people:token:create"))


def test_a_use_is_recorded_with_scope_and_address_once_an_hour(ask, olga):
    token, text = make(olga)
    assert [ask(text).status_code for _ in range(3)] == [200, 200, 200]
    (event,) = told()
    assert (event.action, event.actor_kind, event.actor_key) == ("people:token:use", "TOKEN", token.token_key)
    assert (event.address, event.after["scope"]) == ("192.0.2.7", "servers:read")
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert ask(text, "192.0.2.8").status_code == 200
    assert [event.address for event in told()] == ["192.0.2.7", "192.0.2.8"]


def test_a_token_without_the_scope_is_refused_and_that_is_recorded(ask, olga):
    _, text = make(olga, scopes=("probes:read",))
    assert ask(text).status_code == 403
    assert [event.action for event in told()] == ["people:token:use", "people:token:refused"]
    assert told()[1].reason == "it lacks the scope servers:read"


def test_a_token_does_nothing_that_its_person_may_not_do_any_more(ask, olga):
    _, text = make(olga)
    assert ask(text).status_code == 200
    User.objects.filter(pk=olga.pk).update(role=User.Role.NONE)
    assert ask(text).status_code == 404
    assert told()[-1].reason == "its person has no right to servers:read"


def test_a_view_that_names_no_scope_takes_no_token(ask, olga, monkeypatch):
    _, text = make(olga)
    monkeypatch.delattr(Servers, "required_scope")
    assert ask(text).status_code == 403
    assert told()[-1].reason == "nothing here is for tokens"


@pytest.mark.parametrize("text", ["fui_nonsense", "x", "\xff"])
def test_what_is_no_token_is_refused_once_a_minute_and_not_repeated(ask, text):
    assert [ask(text).status_code for _ in range(2)] == [401, 401]
    (event,) = told()
    assert (event.action, event.actor_key, event.subject_key) == ("people:token:refused", "192.0.2.7", "")
    assert "nonsense" not in str(event.to_json())


def test_an_expired_token_is_refused_and_stays(ask, olga):
    token, text = make(olga, lifetime=timedelta(seconds=-1))
    _, other = make(olga)
    assert ask(text).status_code == 401
    assert ask(other).status_code == 200
    assert Token.objects.filter(pk=token.pk).exists()
