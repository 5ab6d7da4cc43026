"""A suspended tenant: its people are shut out of it, and of nothing else."""

from datetime import timedelta

import pytest
from django.test import Client, RequestFactory
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from audit.models import Event
from audit.values import SYSTEM
from live.rights import audiences_of
from people import suspension
from people.authentication import RecordedTokenAuthentication
from people.errors import NoReason, NotOffboarded
from people.models import Tenant, TenantRole, User
from people.operations import create_token
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def suspend(tenant):
    suspension.suspend(tenant=tenant, actor=SYSTEM, reason="unpaid")
    tenant.refresh_from_db()


def sign_in(person):
    client = Client()
    response = client.post("/account/login/", {"login": person.username, "password": PASSWORD})
    return client, response


def test_its_people_see_nothing_of_it_and_hear_nothing(acme, alice, bob, olga, ada):
    assert list(Tenant.objects.visible_to(alice)) == [acme]
    assert audiences_of(alice)
    suspend(acme)
    assert list(Tenant.objects.visible_to(alice)) == []
    assert bob not in User.objects.visible_to(alice)
    assert not audiences_of(alice)
    for person in (olga, ada):
        assert list(Tenant.objects.visible_to(person)) == [acme]


def test_their_sessions_end_and_they_cannot_sign_in(acme, alice):
    client, response = sign_in(alice)
    assert response.status_code == 302
    assert client.get("/account/tokens/").status_code == 200
    suspend(acme)
    assert client.get("/account/tokens/").url.startswith("/account/login/")
    _, refused = sign_in(alice)
    assert refused.url == "/account/inactive/"
    event = Event.objects.latest("number")
    assert (event.action, event.reason) == ("people:person:login-failed", "the tenant is suspended")
    suspension.resume(tenant=acme, actor=SYSTEM, reason="paid")
    client, back = sign_in(alice)
    assert back.url != "/account/inactive/"
    assert client.get("/account/tokens/").status_code == 200


def test_whoever_has_another_tenant_or_a_role_here_signs_in_and_sees_the_rest(acme, alice, olga):
    other = Tenant.objects.create(name="Other", slug="other")
    TenantRole.objects.create(user=alice, tenant=other, role="VIEWER")
    TenantRole.objects.create(user=olga, tenant=acme, role="VIEWER")
    suspend(acme)
    client, _ = sign_in(alice)
    assert client.get("/account/tokens/").status_code == 200
    assert list(Tenant.objects.visible_to(alice)) == [other]
    assert not suspension.is_shut_out(olga)
    suspend(other)
    assert suspension.is_shut_out(alice)


def shown(text):
    request = RequestFactory().get("/", headers={"Authorization": f"Token {text}"})
    return RecordedTokenAuthentication().authenticate(Request(request))


def test_its_tokens_are_refused_and_that_is_recorded(acme, alice):
    other = Tenant.objects.create(name="Other", slug="other")
    TenantRole.objects.create(user=alice, tenant=other, role="VIEWER")
    make = {"person": alice, "lifetime": timedelta(days=1), "actor": SYSTEM}
    _, of_acme = create_token(name="ci", tenant=acme, **make)
    _, of_nobody = create_token(name="all", **make)
    assert shown(of_acme)[0] == alice
    suspend(acme)
    with pytest.raises(AuthenticationFailed, match="suspended"):
        shown(of_acme)
    assert Event.objects.latest("number").reason == "its tenant is suspended"
    assert shown(of_nobody)[0] == alice
    suspend(other)
    with pytest.raises(AuthenticationFailed, match="suspended"):
        shown(of_nobody)


def test_it_is_one_event_says_why_and_twice_is_once(acme, alice, bob):
    with pytest.raises(NoReason):
        suspension.suspend(tenant=acme, actor=SYSTEM, reason=" ")
    suspend(acme)
    suspend(acme)
    (event,) = Event.objects.filter(action="people:tenant:suspend")
    assert (event.reason, event.after, event.tenant_key) == ("unpaid", {"people": 2}, acme.public_id)
    for _ in range(2):
        suspension.resume(tenant=acme, actor=SYSTEM, reason="paid")
    assert Event.objects.filter(action="people:tenant:resume").count() == 1


def test_who_is_gone_does_not_come_back(acme):
    suspend(acme)
    suspension.let_go(tenant=acme, actor=SYSTEM, reason="left")
    with pytest.raises(NotOffboarded, match="Create a new tenant"):
        suspension.resume(tenant=acme, actor=SYSTEM, reason="back")
