import pytest
from django.contrib.auth.models import AnonymousUser

from people.models import Tenant, TenantRole, User
from people.permissions import is_auditor, is_operator, may_review

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.people.site")]

PAGES = ("/operators/", "/reviewers/", "/people/")
# Who gets what at the three pages: 200 in, 404 not to be told, 302 to the login page.
MATRIX = {
    "anonymous": (302, 302, 302),
    "charlie": (404, 404, 200),
    "alice": (404, 404, 200),
    "bob": (404, 404, 200),
    "ada": (404, 200, 200),
    "olga": (200, 200, 200),
}


@pytest.mark.parametrize("kind", ["", "async/"])
@pytest.mark.parametrize("name", MATRIX)
def test_who_gets_in_where(name, kind, request, client, client_of):
    visitor = client if name == "anonymous" else client_of(request.getfixturevalue(name))
    assert tuple(visitor.get(page + kind).status_code for page in PAGES) == MATRIX[name]


def test_an_anonymous_person_goes_to_the_login_page_and_back(client):
    assert client.get("/operators/?a=1&b=2").url == "/account/login/?next=%2Foperators%2F%3Fa%3D1%26b%3D2"


def test_a_fragment_asked_for_without_a_session_moves_the_whole_page(client):
    response = client.get("/operators/", headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Redirect"]) == (200, "/account/login/")


def test_a_closed_account_is_anonymous_at_once(olga, client_of):
    client = client_of(olga)
    User.objects.filter(pk=olga.pk).update(is_active=False)
    assert client.get("/operators/").status_code == 302


def test_predicates_say_the_same(olga, ada, charlie):
    people = (olga, ada, charlie, AnonymousUser(), None)
    assert [is_operator(person) for person in people] == [True, False, False, False, False]
    assert [is_auditor(person) for person in people] == [False, True, False, False, False]
    assert [may_review(person) for person in people] == [True, True, False, False, False]
    olga.is_active = False
    assert not is_operator(olga)
    assert ada.has_perm("people.review")
    assert not ada.has_perm("people.operate")


def test_tenants_are_seen_by_their_people_operators_and_auditors(olga, ada, alice, bob, charlie, acme):
    other = Tenant.objects.create(name="Umbrella", slug="umbrella")
    assert set(Tenant.objects.visible_to(olga)) == set(Tenant.objects.visible_to(ada)) == {acme, other}
    assert list(Tenant.objects.visible_to(alice)) == list(Tenant.objects.visible_to(bob)) == [acme]
    assert not Tenant.objects.visible_to(charlie).exists()
    assert not Tenant.objects.visible_to(AnonymousUser()).exists()


def test_people_are_seen_by_their_colleagues(olga, ada, alice, bob, charlie):
    assert set(User.objects.visible_to(ada)) == {olga, ada, alice, bob, charlie}
    assert set(User.objects.visible_to(alice)) == {alice, bob}
    assert list(User.objects.visible_to(charlie)) == [charlie]
    assert not User.objects.visible_to(AnonymousUser()).exists()


def test_people_of_two_common_tenants_are_listed_once(alice, bob):
    second = Tenant.objects.create(name="Second", slug="second")
    for person in (alice, bob):
        TenantRole.objects.create(user=person, tenant=second, role=TenantRole.Role.VIEWER)
    assert User.objects.visible_to(alice).count() == 2


def test_operators_and_auditors_are_found(olga, ada, charlie):
    closed = User.objects.create(username="closed", role=User.Role.OPERATOR, is_active=False)
    assert list(User.objects.operators()) == [olga]
    assert list(User.objects.auditors()) == [ada]
    assert closed not in User.objects.active()
