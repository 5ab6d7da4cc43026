"""The provisioning system says that a server is clean: whose token, what is proven, and nothing told twice."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from audit.values import SYSTEM
from deploy.models import Rollout
from inventory.models import Port
from partitions.models import Cleaning
from people.operations import create_token, revoke_token, set_password

pytestmark = [pytest.mark.urls("fabricui.register_urls"), pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _management(settings):
    settings.MANAGEMENT_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def left(provider, training):
    """srv-001 has left Acme, and that is proven and read."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    provider.observe()
    return server


def token(person, *, scopes=("server:cleaned",), days=1):
    return create_token(person=person, name="maas", lifetime=timedelta(days=days), actor=SYSTEM, scopes=list(scopes))


def post(client, text, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body)
    return client.post(
        "/register/v1/cleaned", data, content_type="application/json",
        headers={"Authorization": f"Bearer {text}"} | headers,
    )  # fmt: skip


BODY = {"hostname": "srv-001", "how": "wiped by job 4711"}


def test_the_provisioning_system_marks_it_clean_in_the_operators_name(provider, left, client):
    answer = post(client, token(provider.otto)[1], BODY)
    assert answer.status_code == 200, answer.content
    assert answer.json() == {"outcome": "cleaned", "server": left.public_id, "ports": 2}
    assert not Port.objects.exclude(former_tenant=None).exists()
    assert {(row.by, row.reason) for row in Cleaning.objects.all()} == {
        (provider.otto, "wiped by job 4711 (token “maas”)")
    }
    assert Event.objects.get(action="partitions:server:clean").actor_name == "Otto"


def test_a_retry_is_harmless(provider, left, client):
    text = token(provider.otto)[1]
    post(client, text, BODY)
    again = post(client, text, {"server": left.public_id, "how": "again"})
    assert (again.status_code, again.json()["outcome"]) == (200, "clean")
    assert Cleaning.objects.count() == 2


def test_it_cannot_overtake_the_proof(provider, training, client):
    """Neither before the removal is rolled out, nor while it is on its way, nor when it did not hold."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    text = token(provider.otto)[1]
    assert post(client, text, BODY).json()["error"] == "still_member"
    provider.move(server, training, None)
    rollout = provider.roll_out(provider.olga)
    answer = post(client, text, BODY)
    assert answer.status_code == 409
    assert not Cleaning.objects.exists()
    provider.end(rollout, Rollout.State.STUCK)
    assert post(client, text, BODY).status_code == 409
    assert not Cleaning.objects.exists()


@pytest.mark.parametrize("scopes", [(), ("server:read",), ("server:cleaned:all",)])
def test_only_the_scope_opens_it(provider, left, client, scopes):
    answer = post(client, token(provider.otto, scopes=scopes)[1], BODY)
    assert (answer.status_code, answer.json()["error"]) == (403, "scope_missing")


def test_a_tenants_person_is_no_operator_whatever_the_scope(provider, left, client, django_user_model):
    tina = django_user_model.objects.create(username="tina")
    answer = post(client, token(tina)[1], BODY)
    assert (answer.status_code, answer.json()["error"]) == (403, "not_yours")
    assert not Cleaning.objects.exists()


@pytest.mark.parametrize("how", ["none", "wrong", "expired", "revoked", "closed", "given"])
def test_no_valid_token_no_word(provider, left, client, how):
    row, text = token(provider.otto, days=-1 if how == "expired" else 1)
    if how == "revoked":
        revoke_token(token=row, actor=SYSTEM)
    if how == "closed":
        provider.otto.is_active = False
        provider.otto.save()
    if how == "given":  # its person still has the password that an administrator made
        set_password(person=provider.otto, password="a given password", actor=SYSTEM, is_given=True)
    answer = post(client, {"none": "", "wrong": "fui_nonsense"}.get(how, text), BODY)
    assert (answer.status_code, answer.json()["error"]) == (401, "token_refused")
    assert Event.objects.filter(action="partitions:server:clean-refused").count() == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"hostname": "srv-999", "how": "x"}, 404), ({"server": "nobody", "how": "x"}, 404),
        ({"hostname": "srv-001"}, 400), ({"hostname": "srv-001", "how": " "}, 400), ({"how": "x"}, 400),
        ({"hostname": "srv-001", "how": "x" * 1001}, 400), ({"hostname": ["srv-001"], "how": "x"}, 400), ([], 400),
        (b"{", 400), (b'{"how": "a", "how": "b"}', 400), (b"\xff", 400), ({"hostname": "a\0b", "how": "x"}, 400),
        ({"hostname": "srv-001", "how": "\0"}, 400),
        (b'{"hostname": "srv-001", "how": "\\ud800"}', 400),
    ],
)  # fmt: skip
def test_what_is_no_such_request_is_told(provider, left, client, body, status):
    assert post(client, token(provider.otto)[1], body).status_code == status
    assert not Cleaning.objects.exists()


def test_only_from_the_management_network(provider, left, client, settings):
    settings.MANAGEMENT_NETWORKS = ["192.0.2.0/24"]
    assert post(client, token(provider.otto)[1], BODY).status_code == 403
    assert not Cleaning.objects.exists()


def test_the_command_makes_a_token_that_works(provider, left, client):
    out = StringIO()
    call_command("cleaning_token", "otto", stdout=out)
    assert post(client, out.getvalue().strip(), BODY).status_code == 200
    with pytest.raises(CommandError, match="no operator"):
        call_command("cleaning_token", "nobody", stdout=out)
