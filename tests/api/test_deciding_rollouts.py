"""What an operator's program decides about a rollout that waits for a person: accept, look again, let go."""

import pytest

from audit.models import Event
from deploy.models import Rollout
from tests.api.callers import is_problem

pytestmark = pytest.mark.django_db
GUID = "0x0002c90400000101"


@pytest.fixture
def rollout(site):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    return site.provider.roll_out(site.provider.olga)


def becomes(rollout, state, **fields):
    Rollout.objects.filter(pk=rollout.pk).update(state=state, **fields)
    return f"rollouts/{rollout.public_id}"


def unproven(rollout, *, lid=99, absent=()):
    return becomes(rollout, "UNPROVEN", read_back={"moved": {GUID: [lid, "ACTIVE"]}, "absent": list(absent)})


def test_what_moved_is_accepted_as_it_was_seen(operator, rollout):
    address = unproven(rollout, absent=["0x0002c90400000111"])
    seen = operator.get(address).json()["acceptable"]
    assert seen["moved"] == [{"guid": GUID, "lid": 99, "state": "ACTIVE"}]
    assert seen["absent"] == ["0x0002c90400000111"]
    body = {"seen": seen["seen"], "reason": "The HCA was exchanged."}
    unproven(rollout, lid=98)  # it was read again meanwhile
    is_problem(operator.post(f"{address}/accept", body), 409, "too_late")
    body["seen"] = operator.get(address).json()["acceptable"]["seen"]
    accepted = operator.post(f"{address}/accept", body, Idempotency_Key="k1")
    assert (accepted.status_code, accepted.json()["acceptable"]) == (200, None)
    again = operator.post(f"{address}/accept", body, Idempotency_Key="k1")
    assert (again.status_code, again["Idempotency-Replayed"]) == (200, "true")
    event = Event.objects.get(action="deploy:rollout:accept")
    assert (event.reason, event.actor_name) == ("The HCA was exchanged.", "Olga (token “ci”)")


@pytest.mark.parametrize(
    "body", [{}, {"seen": "x"}, {"reason": "x"}, {"seen": 7, "reason": "x"}, {"seen": "", "reason": "x"}]
)
def test_nothing_is_accepted_unseen_or_without_a_reason(operator, rollout, body):
    is_problem(operator.post(f"{unproven(rollout)}/accept", body), 400, "invalid")
    assert not Event.objects.filter(action="deploy:rollout:accept").exists()


def test_where_nothing_waits_there_is_nothing_to_accept(operator, rollout):
    address = f"rollouts/{rollout.public_id}"
    assert operator.get(address).json()["acceptable"] is None
    is_problem(operator.post(f"{address}/accept", {"seen": "x", "reason": "y"}), 409, "too_late")
    becomes(rollout, "DEGRADED", read_back={"moved": {GUID: [9, "ACTIVE"]}, "absent": []})
    assert operator.get(address).json()["acceptable"] is None


@pytest.mark.parametrize("state", ["UNPROVEN", "DEGRADED"])
def test_it_is_looked_at_again_now(operator, rollout, state):
    address = f"rollouts/{rollout.public_id}"
    is_problem(operator.post(f"{address}/check", {}), 409, "too_late")
    becomes(rollout, state, next_try_at=None)
    is_problem(operator.post(f"{address}/check", {"reason": "x"}), 400, "invalid")
    assert operator.post(f"{address}/check", {}).json()["state"] == state
    assert Rollout.objects.get(pk=rollout.pk).next_try_at is not None


def test_a_stuck_one_is_let_go_of_once(operator, rollout):
    address = f"rollouts/{rollout.public_id}"
    is_problem(operator.post(f"{address}/release", {"reason": "done"}), 409, "too_late")
    becomes(rollout, "STUCK")
    assert operator.get(address).json()["is_over"] is False
    is_problem(operator.post(f"{address}/release", {}), 400, "invalid")
    is_problem(operator.post(f"{address}/release", {"reason": "  "}), 400, "invalid")
    released = operator.post(f"{address}/release", {"reason": "The file was put back by hand."})
    assert (released.status_code, released.json()["is_over"]) == (200, True)
    is_problem(operator.post(f"{address}/release", {"reason": "again"}), 409, "too_late")
    assert Event.objects.filter(action="deploy:rollout:release", reason="The file was put back by hand.").exists()


def test_an_auditor_only_reads(auditor, rollout):
    address = unproven(rollout)
    assert auditor.get(address).json()["acceptable"]["seen"]
    for act in ("accept", "check", "release"):
        is_problem(auditor.post(f"{address}/{act}", {}), 404, "not_found")
