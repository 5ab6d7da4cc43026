"""A tenant's program creates, renames and retires partitions of its own, under its quota."""

import pytest

from audit.models import Event
from inventory.models import Subnet
from partitions.models import Partition
from people.models import Tenant, TenantRole
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def program(portal):
    """Max's."""
    return Caller(portal.seats["max"].person)


def test_one_is_made_renamed_and_retired(portal, program):
    made = program.post("partitions", {"name": "eval"}, Idempotency_Key="k1")
    assert made.status_code == 201
    assert (made.json()["name"], made.json()["tenant"]) == ("eval", portal.acme.public_id)
    assert not {"title", "subnet"} & set(made.json())
    row = Partition.objects.latest("pk")
    assert (row.name, row.title) == ("acme.eval", "eval")
    address = made["Location"].removeprefix("/api/v1/")
    again = program.post("partitions", {"name": "eval"}, Idempotency_Key="k1")
    assert (again.json(), again["Idempotency-Replayed"]) == (made.json(), "true")
    is_problem(program.ask("PATCH", address, {"name": "serving"}), 428, "precondition_required")
    is_problem(program.ask("PATCH", address, {"name": "serving"}, If_Match='"0"'), 412, "precondition_failed")
    renamed = program.ask("PATCH", address, {"name": "serving", "reason": "clearer"}, If_Match=made["ETag"])
    assert (renamed.status_code, renamed.json()["name"]) == (200, "serving")
    event = Event.objects.get(action="partitions:partition:rename")
    assert (event.actor_name, event.reason) == ("Max (token “ci”)", "clearer")
    is_problem(program.ask("DELETE", address, If_Match=made["ETag"]), 412, "precondition_failed")
    retired = program.ask("DELETE", address, If_Match=renamed["ETag"])
    assert retired.status_code == 200
    assert retired.json()["retired_at"]


def test_no_more_than_the_quota(portal, program):
    there = Partition.objects.filter(tenant=portal.acme).count()
    Tenant.objects.update(most_partitions=there + 1)
    assert program.post("partitions", {"name": "one"}).status_code == 201
    refused = is_problem(program.post("partitions", {"name": "two"}), 409, "over_quota")
    assert f"may have {there + 1}" in refused["detail"]
    assert Caller(portal.provider.olga).post("partitions", {"name": "two"}).status_code == 201


def test_a_name_that_others_have_is_free_and_ones_own_is_not(portal, program):
    assert program.post("partitions", {"name": "research"}).status_code == 201
    refused = is_problem(program.post("partitions", {"name": "Training"}), 409, "refused")
    assert "You already have a partition training" in refused["detail"]


@pytest.mark.parametrize(("field", "value"), [("pkey", "0x0777"), ("subnet", "x"), ("tenant", "222222222222")])
def test_what_is_not_a_tenants_to_say(portal, program, field, value):
    refused = is_problem(program.post("partitions", {"name": "eval", field: value}), 400, "invalid")
    assert refused["where"] == field
    assert not Partition.objects.filter(title="eval").exists()


@pytest.mark.parametrize("name", ["a\u202eb", "tr\u0430ining", "a b\n", "x" * 32, 7, "=1+1;", "all,=full"])
def test_names_of_tricks_are_refused(portal, program, name):
    before = Partition.objects.count()
    answer = program.post("partitions", {"name": name})
    assert answer.status_code in (400, 409), answer.content
    assert Partition.objects.count() == before


def test_who_has_two_tenants_names_one(portal, program):
    TenantRole.objects.create(user=portal.seats["max"].person, tenant=portal.provider.bert, role="VIEWER")
    assert is_problem(program.post("partitions", {"name": "eval"}), 400, "invalid")["where"] == "tenant"
    assert program.post("partitions", {"name": "eval", "tenant": portal.acme.public_id}).status_code == 201
    refused = program.post("partitions", {"name": "eval", "tenant": portal.provider.bert.public_id})
    assert "viewers change nothing" in is_problem(refused, 409, "refused")["detail"]
    narrowed = Caller(portal.seats["max"].person, tenant=portal.acme)
    assert narrowed.post("partitions", {"name": "other"}).status_code == 201


def test_one_with_servers_is_not_retired(portal, program):
    address = f"partitions/{portal.site.training.public_id}"
    refused = is_problem(program.ask("DELETE", address, If_Match="*"), 409, "refused")
    assert "servers are in training" in refused["detail"]
    assert Partition.objects.get(pk=portal.site.training.pk).retired_at is None


def test_anothers_is_not_there(portal, program):
    for key in (portal.site.research.public_id, "222222222222"):
        for verb, sent in (("PATCH", {"name": "mine"}), ("DELETE", None)):
            is_problem(program.ask(verb, f"partitions/{key}", sent, If_Match="*"), 404, "not_found")


def test_a_fabric_that_takes_nothing_gets_no_partition(portal, program):
    Subnet.objects.update(mode="observe")
    refused = is_problem(program.post("partitions", {"name": "eval"}), 409, "refused")
    assert "only looks at this fabric" in refused["detail"]
