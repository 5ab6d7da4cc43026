"""Idempotency-Key at the same moment, on a database that really lets two requests in at once."""

from functools import partial

import pytest
from django.conf import settings

from audit.models import Event
from partitions.models import Partition
from people.models import IdempotencyKey
from tests.api.callers import Caller
from tests.console.conftest import settled_site
from tests.partitions.test_races import together

pytestmark = [pytest.mark.pg, pytest.mark.django_db(transaction=True, available_apps=list(settings.INSTALLED_APPS))]

CREATE = "partitions:partition:create"
ROUNDS = 6


@pytest.fixture
def callers():
    """Two connections of one person's program."""
    olga = settled_site().provider.olga
    return Caller(olga, name="one"), Caller(olga, name="two")


def send(caller, name, key):
    answer = caller.post("partitions", {"name": name}, Idempotency_Key=key)
    return answer.status_code, answer.json(), answer.get("Idempotency-Replayed")


def test_the_same_request_twice_at_once_is_done_once(callers):
    one, two = callers
    for number in range(ROUNDS):
        name, key = f"twice{number}", f"key{number}"
        first, second = together(partial(send, one, name, key), partial(send, two, name, key))
        assert (first[0], second[0]) == (201, 201), (first, second)
        assert first[1] == second[1]
        assert {first[2], second[2]} == {None, "true"}
        assert Event.objects.filter(action=CREATE, subject_label=name).count() == 1
        assert IdempotencyKey.objects.filter(key=key).count() == 1


def test_two_requests_with_one_key_at_once_are_one_request(callers):
    one, two = callers
    for number in range(ROUNDS):
        names, key = (f"this{number}", f"that{number}"), f"key{number}"
        answers = together(partial(send, one, names[0], key), partial(send, two, names[1], key))
        assert sorted(answer[0] for answer in answers) == [201, 422], answers
        (refused,) = (answer[1] for answer in answers if answer[0] == 422)
        assert refused["code"] == "key_reused"
        assert Partition.objects.filter(name__in=names).count() == 1


def test_a_key_of_a_refused_request_is_free_for_who_waited(callers):
    one, two = callers
    for number in range(ROUNDS):
        key = f"key{number}"
        answers = together(partial(send, one, "training", key), partial(send, two, f"fresh{number}", key))
        assert sorted(answer[0] for answer in answers) in ([201, 409], [201, 422]), answers
        assert Partition.objects.filter(name=f"fresh{number}").count() == 1
