"""Messages on their way: signed, retried by rows, bounded, given up."""

import json
import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from audit.models import Event
from audit.values import SYSTEM
from inventory.models import Subnet
from webhooks import delivering, operations, sealing
from webhooks.errors import BadEndpoint
from webhooks.models import Delivery, Endpoint
from webhooks.terms import CLAIMED_FOR, PAUSES

DOC = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.django_db


def documented():
    """The program of the docs that checks a signature."""
    space: dict = {}
    exec(re.search(r"```python\n(.*?)```", DOC, re.DOTALL)[1], space)  # noqa: S102  our own docs
    return space["is_from_fabricui"]


def test_the_documented_program_takes_our_signature_and_no_other(add, receiver):
    endpoint, secret = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    assert delivering.deliver(now=timezone.now()) == 1
    ((path, headers, body),) = receiver.taken
    check = documented()
    assert path == "/x"
    assert check(secret, headers, body)
    assert not check(secret, headers, body + b" ")
    assert not check(secret + "x", headers, body)
    assert not check(secret, {**headers, "FabricUI-Timestamp": str(int(headers["FabricUI-Timestamp"]) - 1)}, body)
    old = int(time.time()) - 400
    signed = sealing.signature(secret=secret, timestamp=old, body=body)
    assert not check(secret, {"FabricUI-Timestamp": str(old), "FabricUI-Signature": signed}, body)
    row = Delivery.objects.get()
    assert json.loads(body) == {"id": row.public_id, "type": "test", "at": row.said["at"]}
    assert headers["FabricUI-Id"] == row.public_id
    assert (row.state, row.status, row.tries) == ("DELIVERED", 204, 1)


def test_the_secret_is_nowhere_in_clear(add):
    endpoint, secret = add()
    assert endpoint.secret != secret
    assert sealing.opened(endpoint.secret) == secret
    new = operations.renew_secret(endpoint=endpoint, actor=SYSTEM)
    assert new != secret
    assert sealing.opened(Endpoint.objects.get().secret) == new


def test_a_failure_is_tried_again_by_the_row_and_later_each_time(add, receiver):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    receiver.status = 503
    now = timezone.now()
    for tries, pause in enumerate(PAUSES, 1):
        assert delivering.deliver(now=now) == 0
        row = Delivery.objects.get()
        assert (row.state, row.tries, row.failure) == ("WAITING", tries, "127.0.0.1 answered 503.")
        waits = row.next_try_at - timezone.now()
        assert pause * 0.5 < waits <= pause
        assert delivering.deliver(now=row.next_try_at - timedelta(seconds=1)) == 0
        assert len(receiver.taken) == tries
        now = row.next_try_at
    ids = {json.loads(body)["id"] for _, _, body in receiver.taken}
    assert len(ids) == 1  # the same message each time
    assert delivering.deliver(now=now) == 0
    row, endpoint = Delivery.objects.get(), Endpoint.objects.get()
    assert (row.state, row.tries) == ("GIVEN_UP", len(PAUSES) + 1)
    assert endpoint.off_since is not None
    event = Event.objects.latest("number")
    assert (event.action, event.after) == ("webhooks:endpoint:give-up", {"given_up": 1})
    assert event.reason == "It took nothing at 8 tries. 127.0.0.1 answered 503."
    assert delivering.deliver(now=now + timedelta(days=1)) == 0
    assert len(receiver.taken) == len(PAUSES) + 1


def test_it_arrives_once_the_program_is_back(add, receiver):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    receiver.status = 500
    delivering.deliver(now=timezone.now())
    receiver.status = 200
    assert delivering.deliver(now=Delivery.objects.get().next_try_at) == 1
    assert (Delivery.objects.get().state, Delivery.objects.get().failure) == ("DELIVERED", "")


def test_a_worker_that_dies_in_between_sends_it_again(add, receiver, monkeypatch):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)

    def dies(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(delivering, "_settled", dies)
        with pytest.raises(SystemExit):
            delivering.deliver(now=timezone.now())
    assert len(receiver.taken) == 1
    now = timezone.now()
    assert delivering.deliver(now=now) == 0  # it is claimed
    assert delivering.deliver(now=now + CLAIMED_FOR) == 1
    assert len(receiver.taken) == 2


def test_two_workers_never_send_the_same(add, receiver):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    now = timezone.now()
    row = Delivery.objects.get()
    assert delivering._claim(row, now)
    assert not delivering._claim(row, now)


def test_one_whose_secret_cannot_be_read_holds_up_nobody(add, receiver):
    bad, _ = add()
    good, _ = add()
    Endpoint.objects.filter(pk=bad.pk).update(secret="sealed with a key of long ago")
    for endpoint in (bad, good):
        operations.send_test(endpoint=endpoint, actor=SYSTEM)
    assert delivering.deliver(now=timezone.now()) == 1
    assert "cannot be read" in Delivery.objects.get(endpoint=bad).failure
    assert Delivery.objects.get(endpoint=good).state == "DELIVERED"


def test_one_that_takes_others_is_not_switched_off_for_a_message_that_it_refuses(add, receiver):
    endpoint, _ = add()
    now = timezone.now()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    Delivery.objects.update(tries=len(PAUSES))
    Delivery.objects.create(
        endpoint=endpoint, number=1, kind="drift", said={}, created_at=now, next_try_at=now, state="DELIVERED",
        finished_at=now + timedelta(hours=1),
    )  # fmt: skip
    receiver.status = 413
    assert delivering.deliver(now=timezone.now()) == 0
    assert Delivery.objects.get(kind="test").state == "GIVEN_UP"
    assert Endpoint.objects.get().off_since is None


def test_an_endpoint_that_was_removed_meanwhile_breaks_nothing(add, receiver, monkeypatch):
    gone, _ = add()
    stays, _ = add()
    for endpoint in (gone, stays):
        operations.send_test(endpoint=endpoint, actor=SYSTEM)
    Delivery.objects.update(tries=len(PAUSES))
    known = delivering._try

    def removed_while_it_is_sent(row):
        told = known(row)
        return told if row.endpoint_id == stays.pk else delivering.Tried(None, "away")

    def settled(row, tried):
        Endpoint.objects.filter(pk=gone.pk).delete()
        return real(row, tried)

    real = delivering._settle
    monkeypatch.setattr(delivering, "_try", removed_while_it_is_sent)
    monkeypatch.setattr(delivering, "_settle", settled)
    assert delivering.deliver(now=timezone.now()) == 1
    assert Delivery.objects.get().state == "DELIVERED"


def test_a_network_that_is_allowed_no_more_is_asked_no_more(add, receiver, settings):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    settings.WEBHOOK_NETWORKS = []
    assert delivering.deliver(now=timezone.now()) == 0
    assert receiver.taken == []
    assert "inner network" in Delivery.objects.get().failure


def test_who_is_switched_off_is_sent_nothing_and_then_only_what_is_new(add, receiver):
    endpoint, _ = add()
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    operations.switch_off(endpoint=endpoint, actor=SYSTEM, because="too loud")
    assert delivering.deliver(now=timezone.now()) == 0
    operations.switch_on(endpoint=endpoint, actor=SYSTEM)
    assert delivering.deliver(now=timezone.now()) == 0
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    assert delivering.deliver(now=timezone.now()) == 1


def test_old_messages_are_forgotten_and_waiting_ones_are_not(add):
    endpoint, _ = add()
    done, waits = (operations.send_test(endpoint=endpoint, actor=SYSTEM) for _ in range(2))
    now = timezone.now()
    Delivery.objects.filter(pk=done.pk).update(state="DELIVERED", finished_at=now - timedelta(days=15))
    assert operations.forget_old(now=now) == 1
    assert Delivery.objects.get() == waits


def test_what_the_site_allows_its_own_programs_is_no_tenants(add, receiver, acme):
    """Neither when it is made nor, should such a row be there, when it is sent."""
    inside = f"http://127.0.0.1:{receiver.port}/x"
    with pytest.raises(BadEndpoint, match="inner network"):
        operations.create_endpoint(name="x", url=inside, kinds=["rollout"], tenant=acme, actor=SYSTEM)
    endpoint, _ = add()
    Endpoint.objects.filter(pk=endpoint.pk).update(tenant=acme)
    operations.send_test(endpoint=endpoint, actor=SYSTEM)
    assert delivering.deliver(now=timezone.now()) == 0
    assert receiver.taken == []
    assert "inner network" in Delivery.objects.get().failure


def test_one_that_was_given_up_is_told_of_until_somebody_sees_to_it(add, client_of, olga, acme, settings):
    """On the home page and to Prometheus; one that a person switched off, or a tenant's, is not."""
    settings.METRICS_TOKEN = "s" * 32
    gone, off, tenants = add()[0], add(name="off")[0], add(name="theirs", tenant=acme)[0]
    operations.give_up(endpoint=gone, because="It took nothing at 8 tries.")
    operations.give_up(endpoint=tenants, because="It took nothing at 8 tries.")
    operations.switch_off(endpoint=off, actor=SYSTEM, because="too loud")

    def told():
        page = client_of(olga).get("/").content.decode()
        figures = client_of(olga).get("/metrics", headers={"Authorization": f"Bearer {'s' * 32}"}).content.decode()
        return "1 webhook took nothing" in page, re.search(r"^fabricui_webhooks_given_up (\S+)$", figures, re.M)[1]

    Subnet.objects.create(name="lab")
    assert told() == (True, "1.0")
    operations.switch_on(endpoint=gone, actor=SYSTEM)
    operations.switch_off(endpoint=gone, actor=SYSTEM, because="by a person this time")
    assert told() == (False, "0.0")
