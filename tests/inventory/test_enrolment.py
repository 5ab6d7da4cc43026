"""A token lets in as many servers as it says, for as long as it says; a name stands for one server."""

import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.errors import CredentialRefused, EnrolmentRefused, HostnameTaken, InventoryError
from inventory.models import EnrolmentToken, Server, ServerCredential
from inventory.operations import create_enrolment_token, enrol_server, revoke_credentials
from inventory.operations.enrolment import server_of_credential
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
        {"lifetime": timedelta(0)}, {"lifetime": timedelta(days=31)},
    ],
)  # fmt: skip
def test_a_token_that_makes_no_sense_is_not_created(subnet, change):
    wanted = {"name": "rack 1", "uses": 1, "lifetime": timedelta(hours=1)} | change
    with pytest.raises(InventoryError):
        create_enrolment_token(subnet=subnet, actor=OLGA, **wanted)
    assert not EnrolmentToken.objects.exists()
