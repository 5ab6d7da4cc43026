"""ETag and If-Match, and what partitions take."""

import pytest

from partitions import operations
from partitions.models import Partition
from tests.api.callers import is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def address(site):
    return f"partitions/{site.inference.public_id}"


def test_an_edit_says_what_it_is_an_edit_of(operator, address):
    is_problem(operator.ask("PATCH", address, {"name": "serving"}), 428, "precondition_required")
    is_problem(operator.ask("PATCH", address, {"name": "serving"}, If_Match='"0"'), 412, "precondition_failed")
    is_problem(operator.ask("DELETE", address), 428, "precondition_required")
    tag = operator.get(address)["ETag"]
    is_problem(operator.ask("PATCH", address, {"name": "serving"}, If_Match=f"W/{tag}"), 412, "precondition_failed")
    renamed = operator.ask("PATCH", address, {"name": "serving"}, If_Match=tag)
    assert (renamed.status_code, renamed.json()["name"]) == (200, "serving")
    assert renamed["ETag"] == operator.get(address)["ETag"] != tag


def test_nobody_overwrites_what_they_never_saw(operator, address, site):
    tag = operator.get(address)["ETag"]
    operations.rename_partition(partition=site.inference, name="others", actor=site.provider.otto)
    is_problem(operator.ask("PATCH", address, {"name": "serving"}, If_Match=tag), 412, "precondition_failed")
    assert Partition.objects.get(pk=site.inference.pk).name == "others"


def test_any_state_will_do_for_who_says_so(operator, address):
    assert operator.ask("PATCH", address, {"name": "serving"}, If_Match="*").status_code == 200


def test_what_is_known_is_not_sent_again(operator, address):
    answer = operator.get(address)
    again = operator.get(address, If_None_Match=answer["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert operator.get("servers", If_None_Match=operator.get("servers")["ETag"]).status_code == 304


def test_an_empty_partition_is_retired_and_one_with_members_is_not(operator, address, site):
    body = is_problem(operator.ask("DELETE", address, If_Match="*"), 409, "refused")
    assert "Move them" in body["detail"]
    made = operator.post("partitions", {"name": "newcomer"})
    there = made["Location"].removeprefix("/api/v1/")
    retired = operator.ask("DELETE", there, If_Match=made["ETag"])
    assert retired.status_code == 200
    assert retired.json()["retired_at"]
    is_problem(operator.ask("DELETE", there, If_Match="*"), 409, "refused")
    assert [one["name"] for one in operator.items("partitions?is_retired=true")] == ["newcomer"]
    assert "newcomer" not in [one["name"] for one in operator.items("partitions?is_retired=false")]


def test_a_partition_of_a_tenant_with_a_key_of_ones_own(operator, site):
    asked = {
        "name": "fresh",
        "tenant": site.provider.acme.public_id,
        "pkey": "0x0777",
        "subnet": site.provider.subnet.public_id,
    }
    made = operator.post("partitions", asked)
    assert made.status_code == 201
    assert {"pkey": "0x0777", "tenant": site.provider.acme.public_id}.items() <= made.json().items()


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "name"), ({"name": ""}, "name"), ({"name": 7}, "name"), ({"name": ["x"]}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 32}, "name"), ({"name": "tr\u200baining"}, "name"), ({"name": "a\u202eb"}, "name"),
        ({"name": "a\nb"}, ""), ({"name": "tr\u0430ining"}, ""),
        ({"name": "x1", "pkey": 0x777}, "pkey"), ({"name": "x1", "pkey": "1911"}, "pkey"),
        ({"name": "x1", "pkey": "0x7fff"}, "pkey"), ({"name": "x1", "pkey": "0x1_0"}, "pkey"),
        ({"name": "x1", "tenant": "nobody"}, "tenant"), ({"name": "x1", "nmae": "x2"}, "nmae"),
    ],
)  # fmt: skip
def test_what_is_no_partition_is_refused_where_it_is_wrong(operator, body, where):
    problem = is_problem(operator.post("partitions", body), 400, "invalid")
    assert where in (problem["where"], *(error["where"] for error in problem["errors"])) or not where
    assert Partition.objects.count() == 4
