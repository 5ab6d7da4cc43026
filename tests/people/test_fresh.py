"""Before what matters a person shows again who they are; what they posted goes on from there, once."""

import time

import pytest
from django.http import HttpResponse
from django.urls import include, path

from audit.actions import Action
from audit.models import Event
from people.fresh import fresh_login_required
from people.permissions import operator_required
from tests.conftest import PASSWORD
from tests.people.codes import code, set_up

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

DONE = []


@operator_required
@fresh_login_required
def roll_out(request):
    DONE.append({name: values for name, values in request.POST.lists() if not name.startswith("fresh")})
    return HttpResponse("rolled out")


urlpatterns = [path("account/", include("people.urls")), path("roll-out/", roll_out)]
WANTED = {"reason": ["<b>why</b>"], "without": ["a", "b"]}


@pytest.fixture(autouse=True)
def asked(settings):
    settings.FRESH_LOGIN_MIN = 15
    DONE.clear()


@pytest.fixture
def signed_in(olga, client):
    client.post("/account/login/", {"login": "olga", "password": PASSWORD})
    return client


@pytest.fixture
def later(monkeypatch):
    now = time.time()
    return lambda minutes: monkeypatch.setattr(time, "time", lambda: now + minutes * 60)


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


def test_soon_after_the_login_nothing_is_asked(signed_in):
    assert signed_in.post("/roll-out/?x=1", WANTED).content == b"rolled out"
    assert DONE == [WANTED]


def test_later_the_password_is_asked_for_and_what_was_posted_goes_on_once(signed_in, later):
    later(16)
    asked = signed_in.post("/roll-out/?x=1", WANTED)
    page = asked.content.decode()
    assert asked.status_code == 200
    assert 'action="/roll-out/?x=1"' in page
    assert 'name="reason" value="&lt;b&gt;why&lt;/b&gt;"' in page
    assert page.count('name="without"') == 2
    assert not DONE

    wrong = signed_in.post("/roll-out/?x=1", {**WANTED, "fresh_password": "no"})
    assert wrong.status_code == 422
    assert "This is not your password." in wrong.content.decode()
    assert 'name="without" value="b"' in wrong.content.decode()
    assert not DONE
    assert [event.reason for event in recorded(Action.PERSON_LOGIN_FAILED)] == ["asked again for the password"]

    assert signed_in.post("/roll-out/?x=1", {**WANTED, "fresh_password": PASSWORD}).content == b"rolled out"
    assert DONE == [WANTED]
    assert len(recorded(Action.PERSON_REAUTHENTICATE)) == 1
    assert PASSWORD not in str(list(Event.objects.values()))

    later(30)  # it counts for as long again
    assert signed_in.post("/roll-out/", WANTED).content == b"rolled out"
    later(32)
    assert b"Is it still you?" in signed_in.post("/roll-out/", WANTED).content


def test_who_has_a_second_factor_is_asked_for_a_code_and_no_password_will_do(olga, client, later):
    set_up(olga)
    client.post("/account/login/", {"login": "olga", "password": PASSWORD})
    client.post("/account/login/code/", {"code": code()})
    later(16)
    assert 'name="fresh_code"' in client.post("/roll-out/", WANTED).content.decode()
    assert client.post("/roll-out/", {"fresh_password": PASSWORD}).status_code == 422
    assert client.post("/roll-out/", {"fresh_code": "000000"}).status_code == 422
    (event, *_) = reversed(recorded(Action.PERSON_LOGIN_FAILED))
    assert (event.actor_key, event.reason) == (olga.public_id, "the code of the second factor")
    assert not DONE
    assert client.post("/roll-out/", {"fresh_code": code()}).content == b"rolled out"


def test_a_page_that_is_only_looked_at_is_shown_after_the_form(signed_in, later):
    later(16)
    page = signed_in.get("/roll-out/?x=1").content.decode()
    assert 'name="fresh_get"' in page
    response = signed_in.post("/roll-out/?x=1", {"fresh_get": "1", "fresh_password": PASSWORD})
    assert (response.status_code, response.url) == (302, "/roll-out/?x=1")
    assert not DONE
    assert signed_in.post("/roll-out/?x=1", {"fresh_get": "1"}).status_code == 302  # clicked twice
    assert signed_in.get("/roll-out/?x=1").content == b"rolled out"


def test_it_cannot_be_guessed(signed_in, later):
    later(16)
    for _ in range(10):
        signed_in.post("/roll-out/", {"fresh_password": "no"})
    response = signed_in.post("/roll-out/", {"fresh_password": PASSWORD})
    assert (response.status_code, response["Retry-After"]) == (429, "60")
    assert "Too many attempts" in response.content.decode()
    assert not DONE


def test_while_attempts_are_not_counted_nothing_is_checked_and_nothing_is_lost(signed_in, later, settings):
    later(16)
    dead = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}
    settings.CACHES = {"default": dead}
    response = signed_in.post("/roll-out/", {**WANTED, "fresh_password": PASSWORD})
    assert (response.status_code, response["Retry-After"]) == (503, "30")
    page = response.content.decode()
    assert "counted by the broker" in page
    assert page.count('name="without"') == 2
    assert not DONE


def test_its_code_cannot_be_guessed(signed_in, olga, later):
    set_up(olga)
    later(16)
    told = [signed_in.post("/roll-out/", {"fresh_code": f"{number:06}"}).status_code for number in range(5)]
    assert told == [422] * 5
    response = signed_in.post("/roll-out/", {"fresh_code": code()})
    assert (response.status_code, response["Retry-After"]) == (429, "300")
    assert "Too many failed attempts" in response.content.decode()
    assert not DONE


def test_a_clock_that_went_back_makes_nobody_fresh(signed_in, later):
    later(-20)
    assert b"Is it still you?" in signed_in.post("/roll-out/", WANTED).content


def test_strangers_are_not_asked_but_told_nothing(charlie, client_of):
    assert client_of(charlie).post("/roll-out/").status_code == 404


def test_without_password_and_code_the_way_is_a_new_login(olga, client_of):
    olga.set_unusable_password()
    olga.save()
    client = client_of(olga)
    assert "sign in again" in client.post("/roll-out/").content.decode()
    assert client.post("/roll-out/", {"fresh_password": ""}).status_code == 422
    assert not DONE
