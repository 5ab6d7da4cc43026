"""Idempotency-Key: sent twice, done once."""

from datetime import timedelta

import pytest

from audit.models import Event
from partitions.models import Partition
from people.api.once import LASTS
from people.models import IdempotencyKey
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db
CREATE = "partitions:partition:create"


def test_a_request_sent_twice_is_done_once_and_answered_alike(operator):
    first = operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    again = operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert (again["Location"], again["ETag"]) == (first["Location"], first["ETag"])
    assert again["Idempotency-Replayed"] == "true"
    assert not first.has_header("Idempotency-Replayed")
    assert Event.objects.filter(action=CREATE, subject_label="newcomer").count() == 1


def test_a_key_stands_for_one_request(operator):
    operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    is_problem(operator.post("partitions", {"name": "another"}, Idempotency_Key="k1"), 422, "key_reused")
    is_problem(operator.post("looks", {}, Idempotency_Key="k1"), 422, "key_reused")
    assert not Partition.objects.filter(name="another").exists()


def test_the_order_of_fields_makes_no_other_request(operator):
    first = {"name": "newcomer", "pkey": "0x0200"}
    operator.post("partitions", first, Idempotency_Key="k1")
    again = operator.post("partitions", dict(reversed(first.items())), Idempotency_Key="k1")
    assert again["Idempotency-Replayed"] == "true"


def test_what_was_refused_uses_up_no_key(operator):
    is_problem(operator.post("partitions", {"name": "training"}, Idempotency_Key="k1"), 409, "refused")
    assert not IdempotencyKey.objects.exists()
    assert operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1").status_code == 201


def test_everybody_has_keys_of_their_own(operator, site):
    otto = Caller(site.provider.otto)
    operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    assert otto.post("partitions", {"name": "another"}, Idempotency_Key="k1").status_code == 201


def test_a_key_is_remembered_for_a_day(operator):
    operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    for row in IdempotencyKey.objects.all():
        row.created_at -= LASTS + timedelta(seconds=1)
        row.save()
    assert operator.post("partitions", {"name": "another"}, Idempotency_Key="k1").status_code == 201
    assert IdempotencyKey.objects.count() == 1


def test_an_answer_is_not_replayed_to_who_may_not_ask_any_more(operator, site):
    operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1")
    type(site.provider.olga).objects.filter(pk=site.provider.olga.pk).update(role="NONE")
    is_problem(operator.post("partitions", {"name": "newcomer"}, Idempotency_Key="k1"), 404, "not_found")


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "schlüssel"])
def test_a_key_that_is_none_is_refused(operator, key):
    is_problem(operator.post("partitions", {"name": "newcomer"}, Idempotency_Key=key), 400, "invalid")
    assert not Partition.objects.filter(name="newcomer").exists()
