from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from audit.actions import Action
from audit.chain import verify
from audit.models import Event
from audit.values import SYSTEM, ActorKind
from people import operations
from people.actor import actor_of
from people.errors import BadSlug, NoSuchTheme, PersonExists, TenantExists
from people.models import Tenant, TenantRole, Token, User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def only_event() -> Event:
    return Event.objects.get()


def everything_recorded() -> str:
    return "\n".join(str(row) for row in Event.objects.values())


def test_a_person_is_created_with_an_event_and_without_the_password_in_it():
    person = operations.create_operator(username="olga", password=PASSWORD, name="Olga", actor=SYSTEM)

    assert person.check_password(PASSWORD)
    assert (person.role, str(person)) == ("OPERATOR", "Olga")
    event = only_event()
    assert (event.action, event.actor_name, event.subject_key) == (Action.PERSON_CREATE, "FabricUI", person.public_id)
    assert event.after == {"username": "olga", "name": "Olga", "role": "OPERATOR"}
    assert PASSWORD not in everything_recorded()
    assert person.password not in everything_recorded()


def test_an_auditor_is_created():
    assert operations.create_auditor(username="ada", password=PASSWORD, actor=SYSTEM).role == "AUDITOR"


@pytest.mark.parametrize("username", ["olga", "OLGA"])
def test_a_taken_user_name_is_refused(olga, username):
    with pytest.raises(PersonExists, match="already"):
        operations.create_operator(username=username, password=PASSWORD, actor=SYSTEM)
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("username", "password"), [("x", "short"), ("x", "password1234"), ("a b", PASSWORD), ("", PASSWORD)]
)
def test_weak_passwords_and_bad_user_names_are_refused(username, password):
    with pytest.raises(ValidationError):
        operations.create_operator(username=username, password=password, actor=SYSTEM)
    assert not User.objects.exists()
    assert not Event.objects.exists()


def test_a_person_that_cannot_be_recorded_is_not_created(monkeypatch):
    def fails(**_):
        raise RuntimeError("the trail is full")

    monkeypatch.setattr(operations, "record", fails)
    with pytest.raises(RuntimeError):
        operations.create_operator(username="olga", password=PASSWORD, actor=SYSTEM)
    assert not User.objects.exists()


def test_a_tenant_is_created(olga):
    tenant = operations.create_tenant(name="Acme Research GmbH", actor=actor_of(olga))
    assert tenant.slug == "acme-research-gmbh"
    event = only_event()
    assert (event.action, event.actor_key, event.tenant_key) == (
        Action.TENANT_CREATE, olga.public_id, tenant.public_id,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "slug"), [("ACME", ""), ("Other", "acme")])
def test_a_taken_tenant_is_refused(acme, name, slug):
    with pytest.raises(TenantExists):
        operations.create_tenant(name=name, slug=slug, actor=SYSTEM)


@pytest.mark.parametrize(("name", "slug"), [("日本", ""), ("x", "UPPER"), ("x", "a b"), ("x", "a" * 41), ("x", "a\n")])
def test_a_name_that_partitions_conf_could_not_hold_is_refused(name, slug):
    with pytest.raises(BadSlug):
        operations.create_tenant(name=name, slug=slug, actor=SYSTEM)
    assert not Tenant.objects.exists()


def test_a_role_is_given_and_changed_with_before_and_after(olga, charlie, acme):
    operations.give_role(person=charlie, tenant=acme, role="VIEWER", actor=actor_of(olga))
    operations.give_role(person=charlie, tenant=acme, role="ADMIN", actor=actor_of(olga))
    operations.give_role(person=charlie, tenant=acme, role="ADMIN", actor=actor_of(olga))  # no change, no event

    assert TenantRole.objects.get().role == "ADMIN"
    first, second = Event.objects.order_by("number")
    assert (first.before["role"], first.after["role"]) == (None, "VIEWER")
    assert (second.before["role"], second.after["role"], second.tenant_key) == ("VIEWER", "ADMIN", acme.public_id)


def test_no_role_but_the_three_can_be_given(charlie, acme):
    with pytest.raises(ValueError, match="OWNER"):
        operations.give_role(person=charlie, tenant=acme, role="OWNER", actor=SYSTEM)


def test_colours_are_switched_once(olga):
    operations.set_theme(person=olga, theme="DARK", actor=actor_of(olga))
    operations.set_theme(person=olga, theme="DARK", actor=actor_of(olga))
    assert User.objects.get().theme == "DARK"
    assert only_event().before == {"theme": "AUTO"}
    with pytest.raises(NoSuchTheme):
        operations.set_theme(person=olga, theme="PINK", actor=actor_of(olga))


def test_a_password_is_changed_and_not_recorded(olga):
    operations.set_password(person=olga, password="another long password", actor=actor_of(olga))
    assert User.objects.get().check_password("another long password")
    assert only_event().action == Action.PERSON_PASSWORD
    assert "another long password" not in everything_recorded()


def test_actors_are_people_with_their_name_as_it_is_now(olga):
    actor = actor_of(olga)
    assert (actor.kind, actor.key, actor.name) == (ActorKind.PERSON, olga.public_id, "Olga")
    with pytest.raises(ValueError, match="anonymous"):
        actor_of(AnonymousUser())


def signs_in_as(text: str) -> User:
    return TokenAuthentication().authenticate_credentials(text.encode())[0]


def test_a_token_is_shown_once_and_stored_as_a_digest(olga, acme):
    token, text = operations.create_token(
        person=olga, name="ci", lifetime=timedelta(days=1), scopes=["read"], tenant=acme, actor=actor_of(olga)
    )

    assert text.startswith("fui_")
    assert signs_in_as(text) == olga
    row = Token.objects.values().get()
    assert text not in str(row)
    assert text.removeprefix("fui_")[len(token.token_key) :] not in str(row)
    assert (row["name"], row["scopes"], row["tenant_id"]) == ("ci", ["read"], acme.pk)
    event = only_event()
    assert (event.action, event.subject_label, event.tenant_key) == (
        Action.TOKEN_CREATE, "ci of Olga", acme.public_id,
    )  # fmt: skip
    assert text not in everything_recorded()
    assert token.digest not in everything_recorded()


def test_a_revoked_and_an_expired_token_are_refused(olga):
    token, text = operations.create_token(person=olga, name="ci", lifetime=timedelta(days=1), actor=SYSTEM)
    _, expired = operations.create_token(person=olga, name="old", lifetime=timedelta(seconds=-1), actor=SYSTEM)
    operations.revoke_token(token=token, actor=actor_of(olga))
    for refused in (text, expired):
        with pytest.raises(AuthenticationFailed):
            signs_in_as(refused)
    assert Event.objects.filter(action=Action.TOKEN_REVOKE).count() == 1


def test_the_command_creates_a_person_and_shows_the_password_once():
    out = StringIO()
    call_command("create_person", "olga", "--role", "operator", "--name", "Olga", stdout=out)
    person = User.objects.get()
    password = out.getvalue().splitlines()[0].rpartition(" ")[2]
    assert person.check_password(password)
    assert len(password) == 19
    assert (person.username, person.role) == ("olga", "OPERATOR")
    assert password not in everything_recorded()
    assert verify().events == 1

    with pytest.raises(CommandError, match="already"):
        call_command("create_person", "olga")
    with pytest.raises(CommandError, match="valid username"):
        call_command("create_person", "a b")


def test_passwords_differ():
    assert len({operations.new_password() for _ in range(100)}) == 100
