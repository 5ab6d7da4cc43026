"""A token lets in as many servers as it says, for as long as it says; a name stands for one server."""

import hashlib
from datetime import timedelta
from ipaddress import ip_address

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.errors import CredentialRefused, EnrolmentRefused, HostnameTaken, InventoryError
from inventory.models import EnrolmentToken, Server, ServerCredential
from inventory.operations import (
    ask_for_rotation,
    create_enrolment_token,
    enrol_server,
    revoke_credentials,
    revoke_enrolment_token,
    rotate_credential,
)
from inventory.operations.enrolment import digest_of, server_of_credential
from tests.inventory.reports import OLGA, enrolled, everything

pytestmark = pytest.mark.django_db
DIGEST_A, DIGEST_B = "a" * 64, "b" * 64


@pytest.fixture
def token(subnet):
    return create_enrolment_token(subnet=subnet, name="rack 1", uses=2, lifetime=timedelta(hours=1), actor=OLGA)


def refused(error, **request):
    """The sentence of a refusal that changed nothing."""
    before = everything()
    with pytest.raises(error) as caught:
        enrol_server(**request)
    assert everything() == before
    return str(caught.value)


def test_a_token_is_stored_as_a_digest_only(token):
    row = EnrolmentToken.objects.get()
    assert row.digest == hashlib.sha256(token.encode()).hexdigest()
    assert token not in str(everything())


def test_a_server_enrols_and_is_known_by_its_credential(subnet, token):
    digest = hashlib.sha256(b"secret").hexdigest()
    server = enrol_server(token=token, hostname="srv-001", credential_digest=digest)
    assert server_of_credential(credential="secret") == server
    assert EnrolmentToken.objects.get().uses_left == 1
    event = Event.objects.last()
    assert (event.action, event.actor_kind, event.after["token"]) == ("inventory:server:enrol", "SERVER", "rack 1")


def test_the_same_request_again_uses_nothing_up(token):
    first = enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    before = everything()
    assert enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A) == first
    assert everything() == before


def test_a_token_is_used_up(token):
    enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    enrol_server(token=token, hostname="srv-002", credential_digest=DIGEST_B)
    assert "used up" in refused(EnrolmentRefused, token=token, hostname="srv-003", credential_digest="c" * 64)


def test_a_token_expires(token):
    EnrolmentToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired at" in refused(EnrolmentRefused, token=token, hostname="srv-001", credential_digest=DIGEST_A)


@pytest.mark.parametrize("token", ["", "fui_enrol_x", "\ud800"])
def test_an_unknown_token_enrols_nobody(subnet, token):
    assert "unknown" in refused(EnrolmentRefused, token=token, hostname="srv-001", credential_digest=DIGEST_A)


def test_nobody_enrols_under_a_name_that_is_taken(token):
    enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    assert "has enrolled already" in refused(HostnameTaken, token=token, hostname="srv-001", credential_digest=DIGEST_B)


def test_nobody_enrols_with_another_servers_credential(token):
    enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    assert "another server" in refused(EnrolmentRefused, token=token, hostname="srv-002", credential_digest=DIGEST_A)


def test_a_revoked_server_is_unknown_and_may_enrol_anew(token, subnet):
    server, credential = enrolled(subnet)
    assert revoke_credentials(server=server, actor=OLGA, reason="installed anew") == 1
    assert Event.objects.last().reason == "installed anew"
    with pytest.raises(CredentialRefused):
        server_of_credential(credential=credential)
    digest = ServerCredential.objects.get().digest
    assert "revoked" in refused(EnrolmentRefused, token=token, hostname="srv-001", credential_digest=digest)
    assert enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_B) == server
    assert Server.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"name": " "}, {"name": "x" * 61}, {"name": "a\nb"}, {"uses": 0}, {"uses": 100_001},
        {"lifetime": timedelta(0)}, {"lifetime": timedelta(days=7, seconds=1)},
        {"rack": "x" * 61}, {"rack": "a\x00"}, {"hostnames": "r12 *"}, {"hostnames": "../x"},
        {"networks": "10.1.12.7/24"}, {"networks": "rack12"}, {"hostnames": ",".join(["srv-000?"] * 40)},
    ],
)  # fmt: skip
def test_a_token_that_makes_no_sense_is_not_created(subnet, change):
    wanted = {"name": "rack 1", "uses": 1, "lifetime": timedelta(hours=1)} | change
    with pytest.raises(InventoryError):
        create_enrolment_token(subnet=subnet, actor=OLGA, **wanted)
    assert not EnrolmentToken.objects.exists()


def a_token(subnet, **scope):
    return create_enrolment_token(
        subnet=subnet, name="rack 12", uses=2, lifetime=timedelta(hours=1), actor=OLGA, **scope
    )


def test_a_token_for_several_servers_is_for_a_rack(subnet, token):
    assert EnrolmentToken.objects.get().rack == "rack 1"
    a_token(subnet, rack="R12")
    assert EnrolmentToken.objects.last().rack == "R12"
    server = enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    assert server.credentials.get().token.rack == "rack 1"
    assert Event.objects.last().after["rack"] == "rack 1"


def test_a_token_for_one_server_is_for_no_rack_unless_said(subnet):
    create_enrolment_token(subnet=subnet, name="one", uses=1, lifetime=timedelta(hours=1), actor=OLGA)
    assert EnrolmentToken.objects.get().rack == ""


def test_a_token_can_be_for_certain_names(subnet):
    token = a_token(subnet, hostnames=" R12-*, spare-0? ")
    for hostname in ("srv-001", "r12", "spare-001", "xr12-1"):
        sentence = refused(EnrolmentRefused, token=token, hostname=hostname, credential_digest=DIGEST_A)
        assert "for servers called r12-*,spare-0?" in sentence
    enrol_server(token=token, hostname="r12-node01", credential_digest=DIGEST_A)
    enrol_server(token=token, hostname="spare-01", credential_digest=DIGEST_B)


def test_a_token_can_be_for_certain_networks(subnet):
    token = a_token(subnet, networks="10.1.12.0/24,fd00::/64")
    for source in (None, ip_address("10.1.13.1"), ip_address("fd00:1::1")):
        wanted = {"token": token, "hostname": "srv-001", "credential_digest": DIGEST_A, "source": source}
        assert "this one is elsewhere" in refused(EnrolmentRefused, **wanted)
    enrol_server(token=token, hostname="a", credential_digest=DIGEST_A, source=ip_address("10.1.12.9"))
    enrol_server(token=token, hostname="b", credential_digest=DIGEST_B, source=ip_address("fd00::9"))


def test_a_revoked_token_lets_nobody_in_and_throws_nobody_out(token):
    server = enrol_server(token=token, hostname="srv-001", credential_digest=DIGEST_A)
    row = EnrolmentToken.objects.get()
    assert revoke_enrolment_token(token=row, actor=OLGA, reason="lost")
    assert (Event.objects.last().action, Event.objects.last().reason) == ("inventory:enrolment-token:revoke", "lost")
    assert "was revoked at" in refused(EnrolmentRefused, token=token, hostname="b", credential_digest=DIGEST_B)
    assert server.credentials.get().revoked_at is None
    before = everything()
    assert not revoke_enrolment_token(token=row, actor=OLGA, reason="again")
    assert everything() == before


def digest(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


def test_a_new_credential_takes_over_when_it_is_first_shown(subnet):
    server, old = enrolled(subnet)
    assert rotate_credential(credential=old, new_digest=digest("new")) == server
    assert server_of_credential(credential=old) == server  # the answer may have been lost
    assert server_of_credential(credential="new") == server
    event = Event.objects.last()
    assert (event.action, event.after["in_use"]) == ("inventory:server:credential-rotate", True)
    with pytest.raises(CredentialRefused):
        server_of_credential(credential=old)
    before = everything()
    assert server_of_credential(credential="new") == server
    assert everything() == before


def test_the_same_rotation_again_changes_nothing(subnet):
    _, old = enrolled(subnet)
    rotate_credential(credential=old, new_digest=digest("new"))
    before = everything()
    rotate_credential(credential=old, new_digest=digest("new"))
    assert everything() == before


def test_of_two_announced_successors_the_second_stands(subnet):
    server, old = enrolled(subnet)
    rotate_credential(credential=old, new_digest=digest("first"))
    rotate_credential(credential=old, new_digest=digest("second"))
    with pytest.raises(CredentialRefused):
        server_of_credential(credential="first")
    assert server_of_credential(credential="second") == server


@pytest.mark.parametrize("new", ["mine", "theirs"])
def test_a_credential_in_use_is_nobodys_successor(subnet, new):
    _, old = enrolled(subnet)
    _, other = enrolled(subnet, "srv-002")
    before = everything()
    with pytest.raises(CredentialRefused, match="in use already"):
        rotate_credential(credential=old, new_digest=digest(old if new == "mine" else other))
    assert everything() == before


def test_a_revoked_credential_has_no_successor(subnet):
    server, old = enrolled(subnet)
    rotate_credential(credential=old, new_digest=digest("new"))
    revoke_credentials(server=server, actor=OLGA, reason="stolen")
    for secret in (old, "new"):
        with pytest.raises(CredentialRefused):
            server_of_credential(credential=secret)
        with pytest.raises(CredentialRefused):
            rotate_credential(credential=secret, new_digest=digest("next"))


def test_a_person_asks_for_a_new_credential(subnet):
    server, old = enrolled(subnet)
    asked = {"server": server, "actor": OLGA}
    assert ask_for_rotation(**asked, reason="was shown on a screen")
    assert not ask_for_rotation(**asked)
    event = Event.objects.last()
    assert (event.action, event.after, event.reason) == (
        "inventory:server:credential-ask", None, "was shown on a screen"
    )  # fmt: skip
    rotate_credential(credential=old, new_digest=digest_of("new"))
    server_of_credential(credential="new")
    assert not ServerCredential.objects.get(revoked_at=None).is_to_be_renewed
    revoke_credentials(**asked, reason="sold")
    with pytest.raises(InventoryError, match="must enrol anew"):
        ask_for_rotation(**asked)


@pytest.mark.parametrize("unseen", ["rack\n1", "rack\u200b 1", "\u202erack 1", "rack\u2028 1"])
def test_no_name_holds_a_character_that_nobody_sees(subnet, unseen):
    for names in ({"name": unseen}, {"name": "rack 1", "rack": unseen}):
        with pytest.raises(InventoryError, match="nobody sees"):
            create_enrolment_token(subnet=subnet, uses=1, lifetime=timedelta(hours=1), actor=OLGA, **names)
    assert not EnrolmentToken.objects.exists()


def test_a_name_is_kept_in_its_composed_form(subnet):
    create_enrolment_token(subnet=subnet, name=" Ra\u0308ck ", uses=2, lifetime=timedelta(hours=1), actor=OLGA)
    row = EnrolmentToken.objects.get()
    assert (row.name, row.rack) == ("R\u00e4ck", "R\u00e4ck")
