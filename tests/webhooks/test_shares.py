"""Whose message goes next: pure, and on real endpoints that hang."""

import threading
from collections import Counter

import pytest
from django.utils import timezone

from audit.values import SYSTEM
from people.models import Tenant
from webhooks import delivering, operations, sealing, shares
from webhooks.models import Delivery, Endpoint
from webhooks.shares import Held
from webhooks.terms import AT_ONCE, OF_ONE, OF_OWNER


def waiting(*groups):
    """`(endpoint, owner, how many)` each, in this order."""
    rows = [Held(endpoint, owner) for endpoint, owner, count in groups for _ in range(count)]
    return list(enumerate(rows))


def owners(chosen, rows):
    return Counter(dict(rows)[key].owner for key in chosen)


def test_nobody_has_more_than_its_share_however_much_waits():
    rows = waiting(*((endpoint, 1, 100) for endpoint in range(20)), (90, 2, 1), (91, None, 1))
    assert owners(shares.choose(rows, []), rows) == {1: OF_OWNER, 2: 1, None: 1}


def test_one_endpoint_leaves_room_for_its_owners_others():
    rows = waiting((10, 1, 100), (11, 1, 100))
    chosen = shares.choose(rows, [])
    assert Counter(dict(rows)[key].endpoint for key in chosen) == {10: OF_ONE, 11: OF_OWNER - OF_ONE}


def test_who_has_least_on_its_way_goes_first():
    most = AT_ONCE - OF_OWNER
    held = [Held(owner * 10, owner) for owner in range(1, most) for _ in range(1)]  # one place is left for tenants
    rows = waiting((10, 1, 5), (11, 1, 5), (990, 99, 5))
    assert owners(shares.choose(rows, held), rows) == {99: 1}


def test_tenants_together_leave_the_operators_places():
    rows = waiting(*((owner, owner, 10) for owner in range(1, 60)), (500, None, 10), (501, None, 10))
    found = owners(shares.choose(rows, []), rows)
    assert found[None] == OF_OWNER
    assert found.total() == AT_ONCE
    held = [Held(owner, owner) for owner in range(1, AT_ONCE - OF_OWNER + 1)]
    assert set(owners(shares.choose(rows, held), rows)) == {None}


def test_what_is_full():
    held = [*[Held(1, 7)] * OF_ONE, *[Held(2, 7)] * (OF_OWNER - OF_ONE), Held(3, None)]
    assert shares.full(held) == ({1, 2}, {7})
    assert shares.choose(waiting((4, 7, 3), (3, None, 1)), held) == [3]


@pytest.mark.django_db
def test_twenty_endpoints_of_one_tenant_that_hang_hold_up_nobody_else(receiver, acme, monkeypatch, settings):
    """Real sockets: the twenty answer only after all messages of another tenant and of the operators have come."""
    beta = Tenant.objects.create(name="Beta", slug="beta")
    monkeypatch.setattr(delivering, "allowed_for", lambda owner: settings.WEBHOOK_NETWORKS)
    now = timezone.now()

    def endpoint(name, tenant):
        url = f"http://127.0.0.1:{receiver.port}/{name}"
        return Endpoint.objects.create(
            tenant=tenant, name=name, host="127.0.0.1", url=sealing.sealed(url), secret=sealing.sealed("s"),
            kinds=["rollout"], created_at=now,
        )  # fmt: skip

    def queue(one, count):
        due = {"endpoint": one, "kind": "rollout", "said": {}, "created_at": now, "next_try_at": now}
        Delivery.objects.bulk_create(Delivery(number=number, **due) for number in range(count))

    for number in range(20):
        queue(endpoint(f"slow{number}", acme), 5)
    queue(endpoint("beta", beta), 30)
    queue(endpoint("operators", None), 10)
    all_came, in_time = threading.Event(), []
    lock, quick = threading.Lock(), Counter()

    def behave(handler):
        if handler.path.startswith("/slow"):
            in_time.append(all_came.wait(5))  # less than a try may take
        with lock:
            quick[handler.path] += 1
            if (quick["/beta"], quick["/operators"]) == (30, 10):
                all_came.set()
        handler.send_response(204)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    receiver.behave = behave
    assert delivering.deliver(now=now) == 140
    assert in_time
    assert all(in_time)
    assert not Delivery.objects.waiting().exists()


@pytest.mark.django_db
def test_what_falls_due_while_one_hangs_goes_at_once(add, receiver, monkeypatch):
    """A round looks again: nobody waits for the round's slowest."""
    slow, quick = add(name="slow", path="/slow")[0], add(name="quick", path="/quick")[0]
    operations.send_test(endpoint=slow, actor=SYSTEM)
    quick_came, in_time, looks = threading.Event(), [], []
    chosen = delivering._chosen

    def looked(now, on_their_way):
        looks.append(len(on_their_way))
        if len(looks) == 2:  # the slow one is on its way
            operations.send_test(endpoint=quick, actor=SYSTEM)
        return chosen(timezone.now(), on_their_way)

    def behave(handler):
        if handler.path == "/slow":
            in_time.append(quick_came.wait(5))
        else:
            quick_came.set()
        handler.send_response(204)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    receiver.behave = behave
    monkeypatch.setattr(delivering, "_chosen", looked)
    assert delivering.deliver(now=timezone.now()) == 2
    assert in_time == [True]


@pytest.mark.django_db
def test_a_round_ends_however_much_is_due(add, receiver, monkeypatch):
    endpoint, _ = add()
    now = timezone.now()
    due = {"endpoint": endpoint, "kind": "drift", "said": {}, "created_at": now, "next_try_at": now}
    Delivery.objects.bulk_create(Delivery(number=number, **due) for number in range(50))
    clock = iter(range(0, 10_000, 6))
    monkeypatch.setattr(delivering.time, "monotonic", lambda: next(clock))
    assert 0 < delivering.deliver(now=now) < 50
