"""What nobody honest sends: names with tricks, addresses to be sent to, headers of proxies that are none."""

import unicodedata

import pytest
from django.test import Client
from django.urls import reverse

from inventory.models import Server
from partitions.models import Partition
from people.errors import BadName, TenantExists
from people.models import Tenant, Token, User
from people.names import only_seen
from people.operations import create_person, create_tenant
from subnet.partitions_conf import parse_strict
from tests.api.callers import Caller, is_problem
from tests.people import matrix
from tests.people.everything import everything
from tests.people.test_roles import undone
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db

TRICKS = (
    "a\nb", "a\r\nDefault=0x7fff : ALL=full;\nb", "a;", "a=full", "a:b", "a,b", "a b", "a\u202eb", "a\u200bb",
    "a\ufeffb", "a\u2066b",
    "\uff41\uff42", "\u0430cme", "\u2168", "a\u0301", "stra\u017fe", "=1+1", "@x", "-x", "../a", "a/b", "a\\b",
    "x" * 32,
    "Default", "default", "1a", "", " ", "\x7f", "a\x00b", "\U0001f600",
)  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_no_partition_gets_a_name_with_a_trick(portal, client, name):
    before = set(Partition.objects.values_list("name", "title"))
    created = client.post(portal.address("partitions"), {"name": name})
    renamed = client.post(portal.address("partition_rename", portal.site.training.public_id), {"name": name})
    assert {created.status_code, renamed.status_code} <= {400, 409, 422}
    program = Caller(portal.provider.olga)
    body = {"name": name, "subnet": portal.provider.subnet.public_id, "tenant": portal.acme.public_id}
    assert program.post("partitions", body).status_code in (400, 409)
    assert set(Partition.objects.values_list("name", "title")) == before


@pytest.mark.parametrize("name", ["Training", "TRAINING", "inference"])
def test_a_name_that_differs_only_in_case_is_the_same(portal, client, name):
    assert client.post(portal.address("partitions"), {"name": name}).status_code == 409


def test_a_tenants_name_never_becomes_a_line_of_the_file(portal):
    """Whatever stands in labels and names of rows, what is rendered is read back strictly and has no line more."""
    Tenant.objects.filter(pk=portal.acme.pk).update(name="Acme\nDefault=0x7fff : ALL=full;")
    provider = portal.provider
    for server in provider.servers:
        Server.objects.filter(pk=server.pk).update(hostname=f"srv{server.pk}\n0x0002c903000a0001=full;\u202e")
    provider.move(provider.servers[1], portal.site.training, portal.site.inference)
    rollout = provider.roll_out(provider.olga, reason="a\nb")
    data = bytes(rollout.revision.data)
    assert data.isascii()
    assert b"ALL=full" not in data
    assert parse_strict(data).table.by_port() == rollout.revision.partition_table().by_port()


@pytest.mark.parametrize("name", ["Acme\u202e", "Ac\u200bme", "Acme\nX", "Acme\x00", "Ac\u2028me", "\ue000x"])
def test_no_tenant_and_no_person_has_a_character_that_nobody_sees(db, name):
    from audit.values import SYSTEM

    with pytest.raises(BadName):
        create_tenant(name=name, slug="x", actor=SYSTEM)
    with pytest.raises(BadName):
        create_person(username="x", password="a long enough password", name=name, actor=SYSTEM)
    assert not Tenant.objects.exists()
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["on\u202ecall", "on\u200bcall", "on\ncall", "\ue000x"])
def test_no_token_and_no_webhook_has_a_character_that_nobody_sees(client_of, olga, name):
    olga.role = User.Role.ADMIN
    olga.save()
    client = client_of(olga)
    for address, more in (
        (reverse("tokens"), {"days": "30", "scopes": ["server:cleaned"]}),
        (reverse("webhooks:endpoints"), {"url": "https://hooks.example.com/x", "kinds": ["stuck"]}),
    ):
        answer = client.post(address, {"name": name, **more})
        assert answer.status_code == 422
        assert client.post(address, {"name": " on call ", **more}).status_code == 201
    assert [token.name for token in Token.objects.all()] == [row.name for row in Endpoint.objects.all()] == ["on call"]


def test_what_a_provider_says_is_kept_without_them():
    assert only_seen(" Ol\u202ega\n \u200bß ") == "Olga ß"


def test_no_tenant_looks_like_another(db):
    from audit.values import SYSTEM

    create_tenant(name="Müller IX", slug="a", actor=SYSTEM)
    for name in (unicodedata.normalize("NFD", "Müller IX"), "Ｍüller IX", "Müller \u2168", "müller ix"):
        with pytest.raises(TenantExists):
            create_tenant(name=name, slug="b", actor=SYSTEM)


ELSEWHERE = ("https://evil.example/", "//evil.example/", "/\\evil.example", "https:evil.example", "\t//evil.example")

SENDS_BACK = {"account_login", "mfa_authenticate", "set_theme", "set_language", "time_zone"}


def test_no_address_sends_anybody_elsewhere(db, client_of):
    """Every address and verb with `next`, where it is heeded in five spellings: as an administrator, and as nobody."""
    site = everything()
    wrong, sent = [], 0
    for client in (client_of(site.people["admin"]), Client()):
        cookies = client.cookies.output(header="")
        for name, verb in matrix.rows():
            if name.startswith("api:") or name.startswith("openid_connect"):
                continue  # of the API nothing redirects; the provider's login is tests/people/test_openid.py's
            address = reverse(name, args=site.arguments.get(name, []))
            for elsewhere in ELSEWHERE if name in SENDS_BACK else ELSEWHERE[:1]:
                with undone():
                    fields = {"next": elsewhere, "language": "en", "theme": "DARK", "time_zone": "Europe/Berlin"}
                    answer = (
                        client.get(address, {"next": elsewhere})
                        if verb == "GET"
                        else client.post(address, {**site.forms.get(name, {}), **fields})
                    )
                client.cookies.clear()
                client.cookies.load(cookies)
                where = answer.get("Location", answer.get("HX-Redirect", "/"))
                sent += "Location" in answer
                if not where.startswith("/") or where.startswith(("//", "/\\")):
                    wrong.append((name, verb, elsewhere, where))
    assert wrong == []
    assert sent > 50


FORGED = {
    "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Port": "1", "X-Real-IP": "203.0.113.9", "Forwarded": "for=203.0.113.9;host=evil.example",
    "X-Original-URL": "/people/", "X-Rewrite-URL": "/people/", "X-HTTP-Method-Override": "DELETE",
    "Remote-User": "olga",
}  # fmt: skip


def test_no_header_makes_anybody_somebody_else(portal, client):
    """A page is the same with the headers of a proxy that is none; nobody becomes somebody, and no link leads away."""
    for address in ("/account/login/", portal.address("servers"), "/people/"):
        plain, forged = client.get(address), client.get(address, headers=FORGED)
        assert (plain.status_code, plain.get("Location")) == (forged.status_code, forged.get("Location"))
        assert "evil.example" not in f"{forged.headers} {forged.content.decode()}"
    stranger = Client()
    assert stranger.get("/people/", headers=FORGED)["Location"].startswith("/account/login/")
    for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "evil.example:80"):
        assert stranger.get("/account/login/", headers={"Host": host}).status_code == 400
    is_problem(Caller(portal.provider.olga).ask("GET", "servers", Host="evil.example"), 400, "malformed")
