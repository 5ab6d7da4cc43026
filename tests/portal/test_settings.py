"""Settings: who changes people, tokens and webhooks of a tenant, who is told to ask, and what nobody learns."""

from datetime import timedelta

import pytest

from audit.models import Event
from audit.values import SYSTEM
from people.models import TenantRole, Token, User
from people.operations import create_token
from portal import own_people
from portal.errors import Refused
from webhooks.models import Endpoint
from webhooks.operations import create_endpoint


@pytest.fixture
def anna(portal, client_of):
    """The browser of Acme's administrator."""
    return client_of(portal.seats["anna"].person)


def post(portal, browser, page, *args, **fields):
    return browser.post(portal.address(page, *args), fields)


def role_of(portal, person):
    held = TenantRole.objects.filter(tenant=portal.acme, user=person).first()
    return held.role if held else None


def test_an_administrator_adds_somebody_who_signs_in_with_what_is_shown_once(portal, anna, client_of):
    page = post(portal, anna, "settings", name="Nina Vogel", role="MEMBER")
    assert page.status_code == 201
    nina = User.objects.get(username="acme.nina-vogel")
    password = page.context["password"]
    assert password in page.content.decode()
    assert nina.check_password(password)
    assert nina.must_change_password
    assert role_of(portal, nina) == "MEMBER"
    assert password not in anna.get(portal.address("settings")).content.decode()
    assert password not in str(list(Event.objects.values_list("after", "reason")))


def test_a_user_name_that_somebody_has_is_said_to_nobody(portal, anna):
    User.objects.create(username="acme.nina")
    page = post(portal, anna, "settings", name="Nina", role="VIEWER")
    assert page.status_code == 201
    assert page.context["made"].username.startswith("acme.nina-")


@pytest.mark.parametrize("who", ["max", "vera"])
def test_others_look_and_are_told_whom_to_ask(portal, client_of, who):
    browser = client_of(portal.seats[who].person)
    text = browser.get(portal.address("settings")).content.decode()
    assert "Anna" in text
    assert "<select" not in text
    assert "Add somebody" not in text
    vera = portal.seats["vera"].person
    for name, args, fields in (
        ("settings", [], {"name": "x", "role": "ADMIN"}), ("person_role", [vera.public_id], {"role": "ADMIN"}),
        ("person_remove", [vera.public_id], {}), ("settings_webhooks", [], {}),
    ):  # fmt: skip
        assert post(portal, browser, name, *args, **fields).status_code == 403, name
    assert browser.get(portal.address("settings_webhooks")).status_code == 403
    assert role_of(portal, vera) == "VIEWER"


def test_roles_change_and_people_go_but_never_oneself(portal, anna):
    vera, own = portal.seats["vera"].person, portal.seats["anna"].person
    assert post(portal, anna, "person_role", vera.public_id, role="MEMBER").status_code == 302
    assert role_of(portal, vera) == "MEMBER"
    assert post(portal, anna, "person_role", vera.public_id, role="KING").status_code == 409
    assert post(portal, anna, "person_remove", vera.public_id).status_code == 302
    assert role_of(portal, vera) is None
    for name in ("person_role", "person_remove"):
        page = post(portal, anna, name, own.public_id, role="VIEWER")
        assert page.status_code == 409
        assert b"This is you." in page.content
    assert role_of(portal, own) == "ADMIN"


def test_whoever_is_no_administrator_any_more_changes_nothing(portal):
    seat = portal.seats["anna"]
    TenantRole.objects.filter(user=seat.person).update(role="MEMBER")
    with pytest.raises(Refused):
        own_people.remove(seat=seat, person=portal.seats["vera"].person)
    assert role_of(portal, portal.seats["vera"].person) == "VIEWER"


def test_of_others_nothing_shows_and_nothing_is_changed(portal, anna):
    bert, bruno = portal.provider.bert, portal.seats["bruno"].person
    theirs, _ = create_token(person=bruno, name="canary", lifetime=timedelta(days=1), actor=SYSTEM, tenant=bert)
    # Somebody of the provider's made one for Acme: its name tells who.
    ours, _ = create_token(
        person=portal.provider.olga, name="canary", lifetime=timedelta(days=1), actor=SYSTEM, tenant=portal.acme
    )
    create_endpoint(name="canary", url="https://canary.example/x", kinds=["rollout"], actor=SYSTEM, tenant=bert)
    for page in ("settings", "settings_webhooks"):
        text = anna.get(portal.address(page)).content.decode()
        for word in ("canary", "Bruno", "Olga"):
            assert word not in text, (page, word)
    keys = [("settings_token_revoke", one.token_key) for one in (theirs, ours)]
    for page, key in [*keys, ("person_role", bruno.public_id), ("person_remove", bruno.public_id)]:
        assert post(portal, anna, page, key, role="VIEWER").status_code == 404, page
    assert anna.get(portal.address("settings", tenant=bert)).status_code == 404
    assert Token.objects.filter(name="canary").count() == 2


def test_a_token_of_the_tenant_is_revoked_by_its_administrator(portal, anna):
    token, _ = create_token(
        person=portal.seats["max"].person, name="deploy", lifetime=timedelta(days=1), actor=SYSTEM, tenant=portal.acme
    )
    assert "deploy" in anna.get(portal.address("settings")).content.decode()
    assert post(portal, anna, "settings_token_revoke", token.token_key).status_code == 302
    assert not Token.objects.filter(pk=token.pk).exists()


def test_webhooks_are_added_in_the_portal(portal, anna):
    page = post(portal, anna, "settings_webhooks", name="chat", url="https://chat.example/x", kinds=["rollout"])
    assert page.status_code == 201
    assert Endpoint.objects.get(name="chat").tenant == portal.acme
    assert page.context["secret"] in page.content.decode()
    assert "My servers" in page.content.decode()  # the portal's navigation stands around it
    assert "chat" in anna.get(portal.address("settings")).content.decode()
    wrong = post(portal, anna, "settings_webhooks", name="in", url="https://10.0.0.1/x", kinds=["rollout"])
    assert wrong.status_code == 422


def test_who_looked_after_a_webhook_comes_back_to_settings(portal, anna):
    here = portal.address("settings")
    made = post(portal, anna, "settings_webhooks", name="chat", url="https://chat.example/x", kinds=["rollout"])
    assert f'<a class="btn" href="{here}">' in made.content.decode()
    endpoint = Endpoint.objects.get(name="chat")
    its = f"/webhooks/{endpoint.public_id}/"
    for page in ("settings", "settings_webhooks"):
        assert f'href="{its}?back={here}"' in anna.get(portal.address(page)).content.decode(), page
    text = anna.get(its, {"back": here}).content.decode()
    assert f'<a href="{here}">' in text
    assert f'<input type="hidden" name="back" value="{here}">' in text
    assert anna.post(f"{its}off/", {"back": here}).url == f"{its}?back={here.replace('/', '%2F')}"
    assert anna.post(f"{its}remove/", {"back": here}).url == here
