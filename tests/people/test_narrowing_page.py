"""A token of one tenant alone, chosen on the page of tokens by who is more than that."""

from datetime import timedelta

import pytest
from django.urls import reverse

from audit.models import Event
from audit.values import SYSTEM
from people import operations, scopes
from people.errors import NoSuchScope
from people.models import Tenant, TenantRole, Token
from people.permissions import acts_for_a_tenant, is_operator, may_review, narrowed

pytestmark = pytest.mark.django_db
PAGE = "/account/tokens/"
ASKED = {"name": "pipeline", "days": "30", "scopes": ["test:look"]}


@pytest.fixture(autouse=True)
def offered(monkeypatch):
    """Three scopes: one for everybody of the fabric's, one for members, one for operators."""
    monkeypatch.setattr(scopes, "_SCOPES", {})
    scopes.register("test:look", "look", lambda user: may_review(user) or acts_or_looks(user))
    scopes.register("test:move", "move", acts_for_a_tenant)
    scopes.register("test:operate", "operate", is_operator)


def acts_or_looks(user):
    return TenantRole.objects.of_person(user).exists()


@pytest.fixture
def bert(db):
    return Tenant.objects.create(name="Bert", slug="bert")


def give(person, *roles):
    for tenant, role in roles:
        TenantRole.objects.create(user=person, tenant=tenant, role=role)


def test_who_is_of_two_tenants_makes_a_token_of_one(charlie, client_of, acme, bert):
    give(charlie, (acme, "MEMBER"), (bert, "VIEWER"))
    client = client_of(charlie)
    text = client.get(PAGE).content.decode()
    assert [f'<option value="{one.public_id}">{one.name}</option>' in text for one in (acme, bert)] == [True, True]
    made = client.post(PAGE, {**ASKED, "tenant": acme.public_id})
    assert made.status_code == 201
    assert Token.objects.get().tenant == acme
    assert "as Acme alone" in made.content.decode()
    assert Event.objects.latest("number").tenant_key == acme.public_id
    assert client.post(PAGE, ASKED).status_code == 201
    assert Token.objects.get(tenant=None).scopes == ["test:look"]


def test_an_operator_with_a_role_chooses_too_and_others_are_not_asked(olga, charlie, client_of, acme):
    for person, is_asked in ((olga, False), (charlie, False)):
        assert ("id_tenant" in client_of(person).get(PAGE).content.decode()) is is_asked
    give(olga, (acme, "ADMIN"))
    give(charlie, (acme, "ADMIN"))
    assert "id_tenant" in client_of(olga).get(PAGE).content.decode()
    assert "id_tenant" not in client_of(charlie).get(PAGE).content.decode()


def test_what_one_is_not_for_the_tenant_is_refused_and_says_why(olga, client_of, acme):
    give(olga, (acme, "VIEWER"))
    client = client_of(olga)
    for scope in ("test:operate", "test:move"):
        page = client.post(PAGE, {**ASKED, "scopes": ["test:look", scope], "tenant": acme.public_id})
        assert page.status_code == 422
    page = client.post(PAGE, {**ASKED, "scopes": ["test:look", "test:operate"], "tenant": acme.public_id})
    text = page.content.decode()
    assert "What you are for Acme does not allow test:operate" in text
    assert f'<option value="{acme.public_id}" selected>Acme</option>' in text
    assert not Token.objects.exists()


def test_a_tenant_of_others_is_answered_like_none(olga, client_of, acme, bert):
    give(olga, (acme, "ADMIN"))
    client = client_of(olga)
    texts = []
    for tenant in (bert.public_id, "nosuchtenant"):
        page = client.post(PAGE, {**ASKED, "tenant": tenant})
        assert page.status_code == 422
        texts.append(page.content.decode().partition('id="tenant-error"')[2][:200])
    assert texts[0] == texts[1]
    assert "You have no role for that tenant" in texts[0]
    with pytest.raises(NoSuchScope):
        operations.create_own_token(
            person=olga, name="x", lifetime=timedelta(days=1), scopes=["test:look"], actor=SYSTEM, tenant=bert
        )
    assert not Token.objects.exists()


def test_who_is_narrowed_is_another_object(olga, acme):
    one = narrowed(olga, acme)
    assert not is_operator(one)
    assert is_operator(olga)
    assert reverse("tokens") == PAGE
