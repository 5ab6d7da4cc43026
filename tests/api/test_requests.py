"""Requests by programs: a tenant's people ask and withdraw, operators answer, nobody learns of anybody else."""

import json
import re
from pathlib import Path

import pytest

from partitions.models import StagedChange
from people.models import TenantRole, User
from portal import asking, deciding
from portal.door import Seat
from portal.models import TenantRequest
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def bruno(site):
    person = User.objects.create(username="bruno", first_name="Bruno")
    TenantRole.objects.create(user=person, tenant=site.provider.bert, role=TenantRole.Role.ADMIN)
    return Caller(person)


@pytest.fixture
def made(tenant, site):
    """Tina's request for one more server in training, as it was answered."""
    return ask(tenant, site, kind="MORE_SERVERS", count=1, partition=site.training.public_id).json()


def ask(caller, site, status=201, tenant=None, **fields):
    body = {"tenant": (tenant or site.provider.acme).public_id, "why": "more work", **fields}
    answer = caller.post("requests", body)
    assert answer.status_code == status, answer.content
    return answer


def edit(caller, verb, id, body=None, etag=None, **headers):
    etag = etag or caller.get(f"requests/{id}")["ETag"]
    return caller.ask(verb, f"requests/{id}", body, If_Match=etag, **headers)


def test_each_kind_is_asked_for_and_found_again(tenant, operator, site):
    deciding.offer_storage(partition=site.storage, words="", actor=site.provider.olga)
    assert [item["name"] for item in tenant.items("storage-offers")] == ["storage"]
    assert tenant.items("storage-offers")[0]["id"] == site.storage.public_id
    bodies = [
        {"kind": "MORE_SERVERS", "count": 3, "sort": "2 ports", "wanted_from": "2199-01-02"},
        {"kind": "RETURN_SERVERS", "servers": [site.provider.servers[0].public_id]},
        {"kind": "SHARED_STORAGE", "partition": site.training.public_id, "storage": site.storage.public_id},
    ]
    for body in bodies:
        answer = ask(tenant, site, **body)
        shown = answer.json()
        assert answer["Location"] == f"/api/v1/requests/{shown['id']}"
        assert (shown["state"], shown["asked_by"], shown["why"]) == ("OPEN", "Tina", "more work")
        assert tenant.get(f"requests/{shown['id']}").json() == shown
    assert [item["kind"] for item in operator.items("requests")] == [body["kind"] for body in reversed(bodies)]
    assert len(tenant.items("requests?limit=1")) == 3
    assert [item["count"] for item in tenant.items("requests?kind=MORE_SERVERS&state=OPEN")] == [3]
    (back,) = tenant.items("requests?kind=RETURN_SERVERS")
    named = tenant.get(f"requests/{back['id']}").json()["servers"]
    assert named == [{"id": site.provider.servers[0].public_id, "name": "srv-001"}]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"kind": "MORE_SERVERS"}, "count"),
        ({"kind": "MORE_SERVERS", "count": "3"}, "count"),
        ({"kind": "MORE_SERVERS", "count": 0}, "count"),
        ({"kind": "MORE_SERVERS", "count": 1, "servers": ["x"]}, "servers"),
        ({"kind": "MORE_SERVERS", "count": 1, "partition": "theirs"}, "partition"),
        ({"kind": "RETURN_SERVERS"}, "servers"),
        ({"kind": "RETURN_SERVERS", "servers": ["theirs"]}, "servers[0]"),
        ({"kind": "RETURN_SERVERS", "servers": ["own", "own"]}, "servers"),
        ({"kind": "SHARED_STORAGE", "partition": "training"}, "storage"),
        ({"kind": "SHARED_STORAGE", "partition": "training", "storage": "storage"}, "storage"),  # not offered
        ({"kind": "ROOT", "count": 1}, "kind"),
        ({"kind": "MORE_SERVERS", "count": 1, "tenant": "222222222222"}, "tenant"),
    ],
)
def test_what_is_wrong_is_named(tenant, site, fields, where):
    ids = {
        "theirs": site.research.public_id if "partition" in fields else site.provider.servers[3].public_id,
        "own": site.provider.servers[0].public_id,
        "training": site.training.public_id,
        "storage": site.storage.public_id,
    }
    body = {"tenant": site.provider.acme.public_id, "why": "more work"}
    for name, value in fields.items():
        body[name] = [ids.get(one, one) for one in value] if isinstance(value, list) else ids.get(value, value)
    problem = is_problem(tenant.post("requests", body), 400, "invalid")
    assert where in [error["where"] for error in problem["errors"]]
    assert not TenantRequest.objects.exists()


def test_a_quota_has_a_code_of_its_own(tenant, site):
    type(site.provider.acme).objects.filter(pk=site.provider.acme.pk).update(most_servers=3)
    is_problem(ask(tenant, site, status=409, kind="MORE_SERVERS", count=1), 409, "over_quota")


def test_the_same_key_asks_once(tenant, site):
    body = {"tenant": site.provider.acme.public_id, "why": "w", "kind": "MORE_SERVERS", "count": 1}
    first = tenant.post("requests", body, Idempotency_Key="k1")
    again = tenant.post("requests", body, Idempotency_Key="k1")
    assert (first.status_code, again.json(), again["Idempotency-Replayed"]) == (201, first.json(), "true")
    assert TenantRequest.objects.count() == 1


def test_withdrawing_says_which_state_it_withdraws(tenant, made):
    is_problem(tenant.ask("DELETE", f"requests/{made['id']}"), 428, "precondition_required")
    old = tenant.get(f"requests/{made['id']}")["ETag"]
    tenant.post(f"requests/{made['id']}/comments", {"text": "still needed?"})
    is_problem(edit(tenant, "DELETE", made["id"], etag=old), 412, "precondition_failed")
    gone = edit(tenant, "DELETE", made["id"])
    assert (gone.status_code, gone.json()["state"]) == (200, "WITHDRAWN")
    is_problem(edit(tenant, "DELETE", made["id"]), 409, "conflict")


def test_an_operator_approves_and_it_is_staged(tenant, operator, site, made):
    free = site.provider.servers[4]
    body = {"decision": "APPROVE", "servers": [free.public_id], "answer": "on its way"}
    done = edit(operator, "PATCH", made["id"], body)
    assert (done.status_code, done.json()["state"], done.json()["decided_by"]) == (200, "APPROVED", "Olga")
    assert set(StagedChange.objects.values_list("partition__name", "port__hca__server")) == {("training", free.pk)}
    seen = tenant.get(f"requests/{made['id']}").json()
    assert (seen["state"], seen["answer"], seen["servers"]) == ("APPROVED", "on its way", [])  # not its own yet
    assert "decided_by" not in seen
    is_problem(edit(operator, "PATCH", made["id"], body), 409, "conflict")


def test_an_operator_declines_with_a_reason(operator, tenant, made):
    is_problem(edit(operator, "PATCH", made["id"], {"decision": "DECLINE"}), 409, "refused")
    done = edit(operator, "PATCH", made["id"], {"decision": "DECLINE", "answer": "no room"})
    assert done.json()["state"] == "DECLINED"
    assert tenant.get(f"requests/{made['id']}").json()["answer"] == "no room"


def test_what_an_operator_chooses_has_to_be_there(operator, site, made):
    for fields in ({"servers": ["nonsense"]}, {"servers": [site.provider.servers[4].public_id] * 2}):
        is_problem(edit(operator, "PATCH", made["id"], {"decision": "APPROVE", **fields}), 400, "invalid")
    wrong = {"decision": "APPROVE", "servers": [], "partition": site.research.public_id}
    is_problem(edit(operator, "PATCH", made["id"], wrong), 400, "invalid")
    taken = {"decision": "APPROVE", "servers": [site.provider.servers[3].public_id]}
    is_problem(edit(operator, "PATCH", made["id"], taken), 409, "refused")
    assert not StagedChange.objects.exists()


def test_both_sides_comment_and_a_tenant_hears_no_name(tenant, operator, made):
    assert tenant.post(f"requests/{made['id']}/comments", {"text": "hello"}).status_code == 201
    assert operator.post(f"requests/{made['id']}/comments", {"text": "hello too"}).status_code == 201
    theirs = tenant.get(f"requests/{made['id']}").json()["comments"]
    assert [(one["by"], one["is_provider"], one["text"]) for one in theirs] == [
        ("Tina", False, "hello"), (None, True, "hello too"),
    ]  # fmt: skip
    assert [one["by"] for one in operator.get(f"requests/{made['id']}").json()["comments"]] == ["Tina", "Olga"]


def test_another_tenants_program_learns_nothing(bruno, tenant, made, site):
    assert bruno.items("requests") == []
    assert bruno.items(f"requests?tenant={site.provider.acme.public_id}") == []
    for verb, address, body in (
        ("GET", f"requests/{made['id']}", None), ("DELETE", f"requests/{made['id']}", None),
        ("POST", f"requests/{made['id']}/comments", {"text": "x"}),
    ):  # fmt: skip
        there = bruno.ask(verb, address, body, If_Match="*")
        not_there = bruno.ask(verb, address.replace(made["id"], "222222222222"), body, If_Match="*")
        bodies = [is_problem(answer, 404, "not_found") for answer in (there, not_there)]
        for one in bodies:
            del one["request_id"], one["where"]
        assert bodies[0] == bodies[1]
    mine = asking.ask_more_servers(
        seat=Seat(bruno.token.user, site.provider.bert, TenantRole.Role.ADMIN), subnet=site.provider.subnet, count=1,
        why="canary",
    )  # fmt: skip
    assert mine.public_id not in [item["id"] for item in tenant.items("requests")]
    body = {"tenant": site.provider.bert.public_id, "why": "w", "kind": "MORE_SERVERS", "count": 1}
    is_problem(tenant.post("requests", body), 400, "invalid")


def test_who_may_do_what_needs_role_and_scope(tenant, operator, auditor, site, made):
    viewer = User.objects.create(username="vera")
    TenantRole.objects.create(user=viewer, tenant=site.provider.acme, role=TenantRole.Role.VIEWER)
    reads = Caller(viewer, scopes=["requests:read", "requests:write", "requests:comment", "requests:decide"])
    for caller, body in ((reads, {"text": "x"}), (auditor, {"text": "x"})):
        assert len(caller.items("requests")) == 1
        is_problem(caller.post(f"requests/{made['id']}/comments", body), 404, "not_found")
        is_problem(edit(caller, "DELETE", made["id"]), 404, "not_found")
    everything = Caller(tenant.token.user, scopes=["requests:read", "requests:write", "requests:decide"])
    is_problem(edit(everything, "PATCH", made["id"], {"decision": "APPROVE"}), 404, "not_found")
    narrow = Caller(tenant.token.user, scopes=["requests:read"])
    is_problem(edit(narrow, "DELETE", made["id"]), 403, "not_for_this_token")
    is_problem(ask(operator, site, status=404, kind="MORE_SERVERS", count=1), 404, "not_found")


def test_a_member_of_one_tenant_is_still_a_viewer_of_another(tenant, tina, site, made):
    TenantRole.objects.create(user=tina, tenant=site.provider.bert, role=TenantRole.Role.VIEWER)
    problem = is_problem(
        ask(tenant, site, status=409, tenant=site.provider.bert, kind="MORE_SERVERS", count=1), 409, "refused"
    )
    assert "viewer of Bert" in problem["detail"]


def test_the_examples_of_the_docs_are_answered_as_they_say(tenant, site):
    text = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    section = text.partition("## Requests\n")[2].partition("\n## ")[0]
    examples = re.findall(r"POST /api/v1/(\S+)\n(\{.*\})\n→ (\d+) (\{.*\})", section)
    assert len(examples) == section.count("POST ") == 2
    key = ""
    for address, body, status, said in examples:
        answer = tenant.post(
            address.replace("{request}", key), json.loads(body.replace("{acme}", site.provider.acme.public_id))
        )
        assert answer.status_code == int(status), answer.content
        assert answer.json() | json.loads(said) == answer.json()
        key = answer.json()["id"]
