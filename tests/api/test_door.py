"""Who gets in: tokens, scopes and roles, and the one shape of every refusal."""

from datetime import timedelta

import pytest

from audit.errors import TrailUnavailable
from audit.models import Event
from audit.values import SYSTEM
from people.models import Token, User
from people.operations import revoke_token
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db


def test_nobody_gets_anything_without_a_token(site):
    answer = Caller().get("servers")
    is_problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"] == "Token"


def test_a_session_is_no_token(site, client_of):
    answer = client_of(site.provider.olga).get("/api/v1/servers")
    is_problem(answer, 401, "unauthenticated")


def test_a_token_sees_what_its_person_sees(operator, site):
    answer = operator.get("servers")
    assert [item["hostname"] for item in answer.json()["items"]] == [f"srv-00{number}" for number in range(1, 7)]
    operator.token.refresh_from_db()
    assert operator.token.last_used_at is not None


def test_a_token_is_good_for_its_scopes_only(site):
    reader = Caller(site.provider.olga, scopes=["partitions:read"])
    assert reader.get("partitions").status_code == 200
    body = is_problem(reader.get("servers"), 403, "not_for_this_token")
    assert "scope" in body["mend"]
    is_problem(reader.post("partitions", {"name": "x1"}), 403, "not_for_this_token")


def test_an_expired_token_is_worth_nothing(site):
    is_problem(Caller(site.provider.olga, lifetime=timedelta(seconds=-1)).get("servers"), 401, "unauthenticated")


def test_a_revoked_token_is_worth_nothing_at_once(operator):
    assert operator.get("servers").status_code == 200
    revoke_token(token=Token.objects.get(pk=operator.token.pk), actor=SYSTEM)
    is_problem(operator.get("servers"), 401, "unauthenticated")


def test_a_locked_person_has_no_token(operator, site):
    User.objects.filter(pk=site.provider.olga.pk).update(is_active=False)
    is_problem(operator.get("servers"), 401, "unauthenticated")


def test_who_is_no_operator_any_more_is_told_of_nothing(operator, site):
    assert operator.get("rollouts").status_code == 200
    User.objects.filter(pk=site.provider.olga.pk).update(role=User.Role.NONE)
    is_problem(operator.get("rollouts"), 404, "not_found")
    is_problem(operator.get("servers"), 404, "not_found")


def test_an_auditor_reads_and_changes_nothing(auditor, site):
    assert auditor.get("rollouts").status_code == 200
    is_problem(auditor.post("partitions", {"name": "mine"}), 404, "not_found")
    everything = Caller(auditor.token.user, scopes=["partitions:write", "deploy:write"])
    is_problem(everything.post("partitions", {"name": "mine"}), 404, "not_found")
    is_problem(everything.post("looks", {}), 404, "not_found")


def test_a_stranger_learns_nothing_whatever_the_token_says(stranger, site):
    server = site.provider.servers[0].public_id
    for address in ("servers", f"servers/{server}", "servers/nothing", "rollouts", "subnets", "plans/all"):
        is_problem(stranger.get(address), 404, "not_found")


@pytest.mark.parametrize(
    "address", ["nothing", "servers/", "servers/x/y", "../v1/servers", "servers/..%2f..%2fetc", ""]
)
def test_an_address_that_is_none_is_a_problem_too(operator, address):
    is_problem(operator.get(address), 404, "not_found")


def test_a_method_that_is_not_there_is_named(operator):
    answer = operator.ask("PUT", "servers", {})
    is_problem(answer, 405, "method_not_allowed")
    assert "GET" in answer["Allow"]
    assert "PUT" not in answer["Allow"]
    is_problem(operator.ask("OPTIONS", "servers"), 405, "method_not_allowed")


def test_the_trail_names_the_person_and_the_token(operator, site):
    operator.post("partitions", {"name": "newcomer"})
    event = Event.objects.get(action="partitions:partition:create", subject_label="newcomer")
    assert event.actor_key == site.provider.olga.public_id
    assert event.actor_name == "Olga (token “ci”)"


def test_a_long_name_leaves_room_for_the_token(site):
    User.objects.filter(pk=site.provider.olga.pk).update(first_name="O" * 150)
    olga = User.objects.get(pk=site.provider.olga.pk)
    assert Caller(olga, name="n" * 60).post("partitions", {"name": "newcomer"}).status_code == 201
    event = Event.objects.get(action="partitions:partition:create", subject_label="newcomer")
    assert len(event.actor_name) == 150
    assert event.actor_name.endswith(f"O (token “{'n' * 60}”)")


def test_what_cannot_be_recorded_is_not_done(operator, monkeypatch):
    from partitions import creation

    def broken(**_):
        raise TrailUnavailable("The trail takes no events now.")

    assert operator.get("partitions").status_code == 200  # its use is recorded
    monkeypatch.setattr(creation, "record", broken)
    answer = operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    is_problem(answer, 503, "trail_unavailable")
    assert answer["Retry-After"] == "30"
    monkeypatch.undo()
    assert operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1").status_code == 201


def test_a_bug_is_a_problem_with_nothing_of_its_inside(operator, monkeypatch):
    from inventory.api import Servers

    def broken(*_):
        raise RuntimeError("SECRET inside")

    monkeypatch.setattr(Servers, "_rows", broken)
    answer = operator.get("servers")
    is_problem(answer, 500, "error")
    assert b"SECRET" not in answer.content


@pytest.mark.parametrize(
    "spoofed",
    [
        {"X_Forwarded_For": "192.0.2.99"}, {"X_Forwarded_Host": "evil.example"}, {"Forwarded": "for=192.0.2.99"},
        {"X_Original_URL": "/api/v1/audit/events"}, {"X_HTTP_Method_Override": "DELETE"}, {"X_Request_ID": "mine"},
        {"Remote_User": "olga"}, {"Accept": "text/html"}, {"Accept": "nonsense"},
    ],
)  # fmt: skip
def test_headers_that_claim_something_change_nothing(operator, site, spoofed):
    plain, other = operator.get("servers"), operator.get("servers", **spoofed)
    assert (other.status_code, other.content) == (plain.status_code, plain.content)
    assert other["X-Request-ID"] != "mine"
    assert not Event.objects.filter(address="192.0.2.99").exists()
    is_problem(Caller().get("servers", **spoofed), 401, "unauthenticated")


def test_another_host_is_refused_as_a_problem(operator, settings):
    settings.ALLOWED_HOSTS = ["fabric.example"]
    is_problem(operator.get("servers", Host="evil.example"), 400, "malformed")


@pytest.mark.parametrize("text", ["Token", "Token ", "Token a b", "Bearer x", "Token \xff", "Token " + "x" * 5000])
def test_what_is_no_token_is_refused(site, text):
    caller = Caller()
    caller.headers = {"Authorization": text}
    is_problem(caller.get("servers"), 401, "unauthenticated")
