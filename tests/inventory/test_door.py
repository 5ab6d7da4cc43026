"""The door answers to the management network, to honest sizes and to valid secrets; a refusal changes nothing."""

import hashlib
import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from audit.models import Event
from inventory import register
from inventory.models import EnrolmentToken, Port, Server, ServerCredential
from inventory.operations import create_enrolment_token
from tests.inventory.reports import GUID_A, OLGA, enrolled, everything, port, said
from tests.inventory.test_report import JSON

pytestmark = [pytest.mark.django_db, pytest.mark.urls("fabricui.register_urls")]
ENROL, REPORTS, ROTATE = "/register/v1/enrol", "/register/v1/reports", "/register/v1/rotate"


def post(path, value, secret="", *, source="127.0.0.1", content_type="application/json", **headers):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    if secret:
        headers["HTTP_AUTHORIZATION"] = f"Bearer {secret}"
    return Client().generic("POST", path, body, content_type=content_type, REMOTE_ADDR=source, **headers)


def enrolment(hostname="srv-001", secret="s"):  # noqa: S107
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return {"schema": 1, "hostname": hostname, "boot_id": "boot-1", "credential_digest": digest}


@pytest.fixture
def token(subnet):
    return create_enrolment_token(subnet=subnet, name="rack 1", uses=1, lifetime=timedelta(hours=1), actor=OLGA)


@pytest.fixture
def credential(subnet):
    return enrolled(subnet)[1]


@pytest.fixture
def refused():
    """Post what is refused: gives the answer's status and sentence, after seeing that only one event was added."""

    def refused(*arguments, **keywords):
        cache.clear()
        before, events = everything(), Event.objects.count()
        answer = post(*arguments, **keywords)
        added = list(Event.objects.order_by("number"))[events:]
        assert [event.action for event in added] == [
            "inventory:server:enrol-refused" if arguments[0] == ENROL else "inventory:server:report-refused"
        ]
        assert added[0].after["status"] == answer.status_code
        before.pop("Event")
        after = everything()
        after.pop("Event")
        assert after == before
        return answer.status_code, answer.json()["sentence"]

    return refused


def test_a_server_enrols_and_reports(token):
    answer = post(ENROL, enrolment(secret="my own"), token)
    assert (answer.status_code, answer.json()["hostname"]) == (201, "srv-001")
    answer = post(REPORTS, said(port(GUID_A)), "my own")
    assert answer.status_code == 200
    assert answer.json()["ports"] == [
        {
            "device": "mlx5_0", "port": 1, "port_guid": GUID_A, "outcome": "new", "sentence": None, "confirmed": False,
        }
    ]  # fmt: skip
    assert Port.objects.get().server == Server.objects.get()


def test_a_replayed_token_is_refused(token, refused):
    assert post(ENROL, enrolment(), token).status_code == 201
    status, sentence = refused(ENROL, enrolment("srv-002", "t"), token)
    assert (status, "used up" in sentence) == (401, True)


def test_an_expired_token_is_refused(token, refused):
    EnrolmentToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    status, sentence = refused(ENROL, enrolment(), token)
    assert (status, "expired" in sentence) == (401, True)


def test_a_taken_name_is_refused(token, credential, refused):
    assert refused(ENROL, enrolment(), token)[0] == 409


def test_a_spoofed_guid_is_refused_for_that_port_logged_and_audited_and_changes_nothing(subnet, credential, caplog):
    """The report itself is the server's own, so 200; what it claims of another's is a conflict for an operator."""
    assert post(REPORTS, said(port(GUID_A)), credential).status_code == 200
    spoofer, secret = enrolled(subnet, "srv-002")
    before, events = Port.objects.values().get(), Event.objects.count()
    answer = post(REPORTS, said(port(GUID_A), hostname="srv-002"), secret)
    assert (answer.status_code, answer.json()["ports"][0]["outcome"]) == (200, "conflict")
    assert "registered to another server; an operator decides" in answer.json()["ports"][0]["sentence"]
    assert Port.objects.values().get() == before
    added = list(Event.objects.order_by("number")[events:])
    assert [event.action for event in added] == ["inventory:server:register", "inventory:port:conflict"]
    assert (added[1].subject_key, added[1].after["claimed_by"]) == (GUID_A, spoofer.public_id)
    assert f"srv-002 claims 1 ports that are not its own; the first: Port {GUID_A} is registered" in caplog.text
    events = Event.objects.count()
    post(REPORTS, said(port(GUID_A), hostname="srv-002"), secret)
    assert Event.objects.count() == events  # the same claim again is no news


def test_a_person_or_a_token_cannot_report(token, credential, refused):
    for secret in ("", token, "fui_" + "a" * 60, "\xe9"):
        assert refused(REPORTS, said(port(GUID_A)), secret)[0] == 401
    answer = post(REPORTS, said(port(GUID_A)))
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("source", ["192.0.2.7", "2001:db8::1", "", "unix:", "::ffff:192.0.2.7"])
def test_other_networks_are_refused(credential, refused, source):
    assert refused(REPORTS, said(port(GUID_A)), credential, source=source)[0] == 403
    assert refused(ENROL, enrolment(), "x", source=source)[0] == 403


def test_a_header_makes_nobody_local(credential, refused):
    forged = {"HTTP_X_FORWARDED_FOR": "127.0.0.1", "HTTP_X_REAL_IP": "127.0.0.1", "HTTP_FORWARDED": "for=127.0.0.1"}
    assert refused(REPORTS, said(port(GUID_A)), credential, source="192.0.2.7", **forged)[0] == 403


@pytest.mark.parametrize("source", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::7"])
def test_the_management_networks_are_a_setting(credential, settings, source):
    settings.MANAGEMENT_NETWORKS = ["10.0.0.0/8", "fd00::/64"]
    assert post(REPORTS, said(port(GUID_A)), credential, source=source).status_code == 200


def test_a_body_of_50_mb_is_refused_unread(credential, refused, monkeypatch):
    from django.core.handlers.wsgi import WSGIRequest

    monkeypatch.setattr(WSGIRequest, "read", lambda *_: pytest.fail("the body was read"))
    assert refused(REPORTS, b" " * 50_000_000, credential)[0] == 413


@pytest.mark.parametrize("stated", ["9" * 30, "-1", "x"])
def test_a_length_that_is_none_is_refused(credential, refused, stated):
    assert refused(REPORTS, said(), credential, CONTENT_LENGTH=stated)[0] == 413


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""])
def test_another_type_is_refused(credential, refused, content_type):
    assert refused(REPORTS, said(), credential, content_type=content_type)[0] == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_only_post_is_answered(credential, method):
    answer = Client().generic(method, REPORTS, REMOTE_ADDR="127.0.0.1")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_random_json_is_refused(subnet, refused, value):
    server = Server.objects.first()
    secret = "secret of srv-001" if server else enrolled(subnet)[1]
    assert refused(REPORTS, value, secret)[0] == 400
    assert refused(ENROL, value, "x")[0] == 400


@pytest.mark.parametrize("body", [b" ", b"{", b"\xff", b"[" * 100_000, b'{"a":NaN}', b'{"schema":1,"schema":1}'])
def test_what_is_no_json_is_refused(credential, refused, body):
    assert refused(REPORTS, body, credential)[0] == 400


def test_a_flood_of_refusals_is_one_event_a_minute(subnet):
    before = Event.objects.count()
    statuses = {post(REPORTS, {}, f"guess {number}").status_code for number in range(70)}
    assert statuses == {401, 429}
    assert Event.objects.count() == before + 1
    post(REPORTS, {}, "guess", source="127.0.0.2")
    assert Event.objects.count() == before + 2


def test_an_ipv6_network_is_one_source(subnet, settings):
    settings.MANAGEMENT_NETWORKS = []
    before = Event.objects.count()
    for number in range(5):
        post(REPORTS, {}, source=f"2001:db8::{number}")
    assert Event.objects.count() == before + 1


def test_guesses_lock_no_server_out_that_shares_the_address(credential):
    for number in range(register.REFUSALS_A_MINUTE + 5):
        post(REPORTS, {}, f"guess {number}")
    assert post(REPORTS, said(port(GUID_A)), credential).status_code == 200


def test_a_server_that_never_stops_reporting_has_to_wait(credential):
    statuses = [post(REPORTS, said(port(GUID_A)), credential).status_code for _ in range(14)]
    assert statuses == [200] * register.REPORTS_A_MINUTE + [429, 429]
    answer = post(REPORTS, said(port(GUID_A)), credential)
    assert answer["Retry-After"] == "60"


def test_without_a_cache_servers_still_register(credential, monkeypatch):
    def broken(*_, **__):
        raise ConnectionError("no cache")

    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.add", broken)
    assert post(REPORTS, said(port(GUID_A)), credential).status_code == 200
    assert post(REPORTS, said(port(GUID_A)), "guess").status_code == 401


def test_the_door_has_no_other_address():
    for path in (
        "/", "/account/login/", "/board/", "/register/v1/../../board/", "/register/v1/..%2f..%2fboard/",
        "/register/v1/reports/../../../etc/passwd", "/static/..%2fmanage.py",
    ):  # fmt: skip
        assert Client().get(path).status_code == 404


def test_a_flood_on_all_addresses_is_still_one_event_a_minute(subnet):
    before = Event.objects.count()
    for path in (ENROL, REPORTS, ROTATE):
        for number in range(5):
            post(path, {}, f"guess {number}")
    assert Event.objects.count() == before + 1


PROXY = {
    "REGISTER_PROXIES": ["192.0.2.80"],
    "REGISTER_PROXY_HEADER": "X-Real-IP",
    "MANAGEMENT_NETWORKS": ["10.0.0.0/8"],
}


@pytest.fixture
def proxied(settings):
    for name, value in PROXY.items():
        setattr(settings, name, value)


@pytest.mark.parametrize("named", ["10.1.2.3", "::ffff:10.1.2.3", "10.9.9.9, 10.1.2.3", "junk,10.1.2.3"])
def test_the_proxy_names_its_client(proxied, credential, named):
    assert post(REPORTS, said(port(GUID_A)), credential, source="192.0.2.80", HTTP_X_REAL_IP=named).status_code == 200


@pytest.mark.parametrize("named", ["192.0.2.7", "10.1.2.3, 192.0.2.7", "", "junk", "10.1.2.3:443", "10.1.2.3,"])
def test_what_the_proxy_names_outside_is_refused(proxied, credential, refused, named):
    assert refused(REPORTS, said(port(GUID_A)), credential, source="192.0.2.80", HTTP_X_REAL_IP=named)[0] == 403


def test_a_proxy_that_does_not_say_is_refused(proxied, credential, refused):
    other = {"HTTP_X_FORWARDED_FOR": "10.1.2.3", "HTTP_FORWARDED": "for=10.1.2.3"}
    assert refused(REPORTS, said(port(GUID_A)), credential, source="192.0.2.80", **other)[0] == 403


def test_the_header_counts_from_no_other_address(proxied, credential, refused):
    forged = {"HTTP_X_REAL_IP": "10.1.2.3"}
    assert refused(REPORTS, said(port(GUID_A)), credential, source="192.0.2.81", **forged)[0] == 403
    # ... and cannot make a server of the management network somebody else
    answer = post(REPORTS, said(port(GUID_A)), "guess", source="10.1.2.3", HTTP_X_REAL_IP="10.6.6.6")
    assert answer.status_code == 401
    assert Event.objects.last().after["source"] == "10.1.2.3"


def test_the_proxied_source_is_the_one_that_is_recorded(proxied, subnet):
    post(REPORTS, {}, "guess", source="192.0.2.80", HTTP_X_REAL_IP="10.1.2.3")
    assert Event.objects.last().after["source"] == "10.1.2.3"


def test_a_token_for_a_network_is_refused_elsewhere(subnet, refused, settings):
    settings.MANAGEMENT_NETWORKS = ["10.0.0.0/8"]
    token = create_enrolment_token(
        subnet=subnet, name="r", uses=2, lifetime=timedelta(hours=1), actor=OLGA, networks="10.1.12.0/24"
    )
    assert refused(ENROL, enrolment(), token, source="10.1.13.1")[0] == 401
    assert post(ENROL, enrolment(), token, source="10.1.12.1").status_code == 201


def test_an_old_credential_is_to_be_renewed(credential, settings):
    assert post(REPORTS, said(port(GUID_A)), credential).json()["rotate"] is False
    ServerCredential.objects.update(issued_at=timezone.now() - timedelta(days=settings.CREDENTIAL_DAYS, seconds=1))
    assert post(REPORTS, said(port(GUID_A)), credential).json()["rotate"] is True
    new = {"schema": 1, "credential_digest": hashlib.sha256(b"new").hexdigest()}
    assert post(ROTATE, new, credential).status_code == 201
    assert post(REPORTS, said(port(GUID_A)), "new").json()["rotate"] is False
    assert post(REPORTS, said(port(GUID_A)), credential).status_code == 401
    ServerCredential.objects.filter(revoked_at=None).update(is_to_be_renewed=True)  # a person asked for it
    assert post(REPORTS, said(port(GUID_A)), "new").json()["rotate"] is True


@pytest.mark.parametrize("secret", ["", "fui_enrol_x", "guess"])
def test_nobody_renews_without_a_credential(credential, refused, secret):
    new = {"schema": 1, "credential_digest": "a" * 64}
    assert refused(ROTATE, new, secret)[0] == 401


@pytest.mark.parametrize("value", [{}, [], {"schema": 1}, {"schema": 1, "credential_digest": "A" * 64}, {"schema": 2}])
def test_a_malformed_renewal_is_refused(credential, refused, value):
    assert refused(ROTATE, value, credential)[0] == 400


@pytest.mark.urls("fabricui.urls")
@pytest.mark.parametrize("scheme", ["Bearer", "Token"])
def test_a_servers_credential_is_no_persons_token(credential, scheme):
    answer = Client().get("/", HTTP_AUTHORIZATION=f"{scheme} {credential}")
    assert (answer.status_code, "login" in answer["Location"]) == (302, True)
