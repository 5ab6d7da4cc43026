"""The pages of people and tenants: an administrator's buttons, each with its event, and what is refused."""

import re

import pytest
from django.urls import reverse

from audit.actions import Action
from audit.models import Event
from people import accounts, operations
from people.models import Tenant, TenantRole, User
from tests.conftest import PASSWORD
from tests.people.codes import set_up

PEOPLE, TENANTS = "/people/", "/tenants/"


@pytest.fixture
def anna(db):
    """An administrator."""
    return User.objects.create_user(username="anna", password=PASSWORD, first_name="Anna", role="ADMIN")


@pytest.fixture
def admin(site, anna, client_of):
    """Anna's browser."""
    return client_of(anna)


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


def do(client, person, step, **form):
    return client.post(reverse(f"console:person_{step}", args=[person.public_id]), {"reason": "ticket 9", **form})


def told(client, person):
    return client.get(reverse("console:person", args=[person.public_id])).content.decode()


def test_an_account_is_made_and_its_password_shown_once(admin, client):
    answer = admin.post(PEOPLE, {"username": "erin", "name": "Erin", "role": "AUDITOR"})
    assert answer.status_code == 201
    assert "no-store" in answer["Cache-Control"]
    password = re.search(r'id="new-password">([\w-]+)<', answer.content.decode())[1]
    assert client.post("/account/login/", {"login": "erin", "password": password}).status_code == 302
    assert client.get(PEOPLE).url == "/account/password/"  # two know it: another is chosen first
    assert password not in admin.get(PEOPLE).content.decode()
    assert recorded(Action.PERSON_CREATE)[-1].actor_name == "Anna"
    assert password not in str(list(Event.objects.values()))


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"username": "ANNA", "role": "NONE"}, "already"), ({"username": "a b", "role": "NONE"}, "valid username"),
        ({"username": "erin", "role": "KING"}, "valid choice"), ({"role": "NONE"}, "required"),
    ],
)  # fmt: skip
def test_what_is_no_account_is_told_at_its_field(admin, form, sentence):
    before = User.objects.count()
    answer = admin.post(PEOPLE, form)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert User.objects.count() == before


def test_everybody_is_listed_with_role_tenants_and_second_factor(admin, site, ada, charlie):
    set_up(ada)
    TenantRole.objects.create(user=charlie, tenant=site.provider.acme, role="MEMBER")
    page = admin.get(PEOPLE).content.decode()
    row = re.search(r"<tr><td[^>]*><a[^>]*>Ada.*?</tr>", page, re.DOTALL)[0]
    assert "auditor" in row
    assert "second factor" in row
    assert "Acme <span" in re.search(r"<tr><td[^>]*><a[^>]*>Charlie.*?</tr>", page, re.DOTALL)[0]
    found = admin.get(PEOPLE, {"q": "aD"}).content.decode()
    assert ">Ada<" in found
    assert ">Charlie<" not in found
    assert "Nobody is called that" in admin.get(PEOPLE, {"q": "zzz"}).content.decode()


def test_the_list_asks_the_same_whatever_the_number_of_people(admin, site, django_assert_max_num_queries):
    def asked():
        with django_assert_max_num_queries(40) as queries:
            admin.get(PEOPLE)
        return len(queries)

    asked()
    few = asked()
    for number in range(10):
        person = User.objects.create(username=f"p{number}")
        TenantRole.objects.create(user=person, tenant=site.provider.acme, role="VIEWER")
    assert asked() == few


def test_a_role_is_changed_and_ends_the_sessions(admin, ada, client_of):
    browser = client_of(ada)
    assert do(admin, ada, "role", role="OPERATOR").status_code == 302
    assert "Ada: operator. Their sessions have ended." in told(admin, ada)
    assert browser.get(PEOPLE).status_code == 302
    event = recorded(Action.PERSON_ROLE)[0]
    assert (event.before, event.after, event.reason) == ({"role": "AUDITOR"}, {"role": "OPERATOR"}, "ticket 9")
    assert do(admin, ada, "role", role="KING").status_code == 409
    do(admin, ada, "role", role="OPERATOR")
    assert len(recorded(Action.PERSON_ROLE)) == 1  # no change, no event


def test_the_only_administrator_stays_one_and_unlocked(admin, anna, ada):
    answer = do(admin, anna, "role", role="NONE")
    assert answer.status_code == 409
    assert "is the only administrator" in answer.content.decode()
    do(admin, ada, "role", role="ADMIN")
    assert do(admin, ada, "lock").status_code == 302  # Anna is left
    ada.refresh_from_db()
    assert not ada.is_active
    assert do(admin, anna, "role", role="NONE").status_code == 409  # the other one cannot sign in
    anna.refresh_from_db()
    assert anna.role == "ADMIN"


@pytest.mark.parametrize("step", ["lock", "second_factor", "password"])
def test_nobody_does_these_to_themselves(admin, anna, ada, step):
    do(admin, ada, "role", role="ADMIN")
    set_up(anna)
    answer = do(admin, anna, step)
    assert answer.status_code == 409
    assert "Another administrator does that." in answer.content.decode()
    assert admin.get(PEOPLE).status_code == 200


@pytest.mark.parametrize("step", ["lock", "unlock", "second_factor", "password"])
def test_each_has_a_reason(admin, ada, step):
    set_up(ada)
    answer = do(admin, ada, step, reason="  ")
    assert answer.status_code == 409
    assert "Say why" in answer.content.decode()
    assert User.objects.get(pk=ada.pk).check_password(PASSWORD)


def test_an_account_is_locked_at_once_and_opened_without_its_old_sessions(admin, ada, client_of):
    browser = client_of(ada)
    assert do(admin, ada, "lock").status_code == 302
    assert browser.get(PEOPLE).status_code == 302
    do(admin, ada, "lock")
    assert do(admin, ada, "unlock").status_code == 302
    do(admin, ada, "unlock")
    assert browser.get(PEOPLE).status_code == 302
    assert client_of(ada).get(PEOPLE).status_code == 200
    assert [len(recorded(action)) for action in (Action.PERSON_LOCK, Action.PERSON_UNLOCK)] == [1, 1]


def test_a_new_password_is_shown_once_and_ends_the_sessions(admin, ada, client, client_of):
    browser = client_of(ada)
    answer = do(admin, ada, "password")
    password = re.search(r'id="new-password">([\w-]+)<', answer.content.decode())[1]
    assert browser.get(PEOPLE).status_code == 302
    assert client.post("/account/login/", {"login": "ada", "password": password}).status_code == 302
    assert client.get(PEOPLE).url == "/account/password/"
    assert password not in str(list(Event.objects.values()))


def test_second_factor_and_sessions_are_taken_back(admin, ada, client_of):
    set_up(ada)
    browser = client_of(ada)
    assert "Reset the second factor" in told(admin, ada)
    assert do(admin, ada, "second_factor").status_code == 302
    assert "Reset the second factor" not in told(admin, ada)
    assert browser.get(PEOPLE).status_code == 302
    assert "no second factor" in do(admin, ada, "second_factor").content.decode()
    again = client_of(ada)
    assert do(admin, ada, "sessions").status_code == 302
    assert again.get(PEOPLE).status_code == 302
    ended = [(event.actor_name, event.reason) for event in recorded(Action.SESSION_END)]
    assert ended == [
        ("Anna", "ticket 9"), ("FabricUI", "your sessions were ended"),
        ("Anna", "ticket 9"), ("FabricUI", "your sessions were ended"),
    ]  # fmt: skip


def test_roles_for_a_tenant_are_given_and_taken(admin, site, charlie):
    acme = site.provider.acme
    assert do(admin, charlie, "give_role", tenant=acme.public_id, role="ADMIN").status_code == 302
    assert TenantRole.objects.get(user=charlie).role == "ADMIN"
    assert do(admin, charlie, "give_role", tenant=acme.public_id, role="KING").status_code == 409
    assert do(admin, charlie, "give_role", tenant="nothing", role="ADMIN").status_code == 404
    assert "Charlie" in admin.get(reverse("console:tenant", args=[acme.public_id])).content.decode()
    assert do(admin, charlie, "take_role", tenant=acme.public_id).status_code == 302
    assert do(admin, charlie, "take_role", tenant=acme.public_id).status_code == 409
    (event,) = recorded(Action.ROLE_TAKE)
    assert (event.before["role"], event.tenant_key) == ("ADMIN", acme.public_id)


def test_a_change_that_cannot_be_recorded_is_none(admin, ada, monkeypatch):
    admin.raise_request_exception = False

    def fails(**_):
        raise RuntimeError("the trail is full")

    for module in (accounts, operations):
        monkeypatch.setattr(module, "record", fails)
    assert do(admin, ada, "lock").status_code == 500
    assert do(admin, ada, "role", role="NONE").status_code == 500
    ada.refresh_from_db()
    assert (ada.is_active, ada.role) == (True, "AUDITOR")


def test_a_tenant_is_created_and_shown(admin):
    answer = admin.post(TENANTS, {"name": "Umbrella Ltd"})
    tenant = Tenant.objects.get(slug="umbrella-ltd")
    assert answer.url == reverse("console:tenant", args=[tenant.public_id])
    page = admin.get(answer.url).content.decode()
    assert "Nobody yet." in page
    assert "no consent" in page
    assert "Umbrella Ltd" in admin.get(TENANTS).content.decode()
    assert recorded(Action.TENANT_CREATE)[-1].actor_name == "Anna"
    for wrong in ({"name": "acme"}, {"name": "x", "slug": "Not A Slug"}, {"name": ""}, {"name": "日本"}):
        assert admin.post(TENANTS, wrong).status_code == 422


def test_others_read_and_change_nothing(site, ada, operator, auditor):
    for browser in (operator, auditor):
        assert "Make an account" not in browser.get(PEOPLE).content.decode()
        assert "Create a tenant" not in browser.get(TENANTS).content.decode()
        assert "Lock the account" not in told(browser, ada)
        assert browser.post(PEOPLE, {"username": "x", "role": "ADMIN"}).status_code == 404
        assert browser.post(TENANTS, {"name": "x"}).status_code == 404
        assert do(browser, ada, "role", role="ADMIN").status_code == 404


def test_who_looks_after_people_has_them_in_the_navigation(admin, operator, auditor):
    link = 'href="/people/"'
    assert [link in browser.get("/board/").content.decode() for browser in (admin, operator, auditor)] == [
        True, False, True,
    ]  # fmt: skip


def test_each_change_asks_again_who_it_is(admin, ada, settings):
    settings.FRESH_LOGIN_MIN = 15
    for step in ("role", "lock", "unlock", "second_factor", "sessions", "password", "give_role", "take_role"):
        assert "Is it still you?" in do(admin, ada, step, role="NONE").content.decode()
    for page in (PEOPLE, TENANTS):
        assert "Is it still you?" in admin.post(page, {"username": "x", "name": "x", "role": "NONE"}).content.decode()
    assert recorded(Action.PERSON_ROLE) == []
