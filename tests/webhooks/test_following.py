"""From an event of the trail to a row for each endpoint that may know of it."""

import json
import socket
from pathlib import Path

import pytest

from audit import follow
from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM, Subject
from people.models import Tenant
from tests.audit.events import record_one
from tests.console.conftest import settled_site
from webhooks import following
from webhooks.kinds import FOLLOWED, OF_OPERATORS, OF_TENANTS, SEVERITY, WORDS, Kind, kind_of
from webhooks.models import Delivery, Endpoint
from webhooks.operations import create_endpoint
from webhooks.terms import MOST_WAITING

pytestmark = pytest.mark.django_db


def happened(action, key="r1", label="revision 2 of lab", kind="rollout", **more):
    return record_one(action=action, subject=Subject(kind=kind, key=key, label=label), **more)


def said(endpoint):
    return [row.said for row in endpoint.deliveries.order_by("pk")]


@pytest.mark.parametrize(
    ("action", "after", "kind"),
    [
        (Action.ROLLOUT_START, None, "rollout"),
        (Action.ROLLOUT_PROVEN, None, "rollout"),
        (Action.ROLLOUT_STUCK, None, "stuck"),
        (Action.ROLLOUT_PLACING, None, None),
        (Action.DRIFT_OPEN, {"kind": "FILE"}, "drift"),
        (Action.DRIFT_OPEN, {"kind": "ROGUE_SM"}, "rogue_sm"),
        (Action.DRIFT_OPEN, {"kind": "ISOLATION_LOST"}, "isolation_lost"),
        (Action.ISOLATION_LEAK, None, "leak"),
        (Action.PROBE_INCIDENT_OPEN, None, "incident"),
        (Action.TRAIL_BROKEN, None, "trail"),
        (Action.PERSON_LOGIN, None, None),
    ],
)
def test_which_event_is_of_which_kind(action, after, kind):
    found = kind_of(happened(action, after=after))
    assert (found.value if found else None) == kind
    assert (action in FOLLOWED) == (kind is not None)


def test_every_kind_has_words_a_severity_and_its_place_in_the_docs():
    doc = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
    assert set(OF_OPERATORS) == set(WORDS) == set(Kind) - {Kind.TEST}
    assert set(OF_TENANTS) <= set(OF_OPERATORS)
    assert set(SEVERITY) == set(Kind)
    assert not [kind for kind in Kind if f"| `{kind.value}` |" not in doc]


def test_a_request_of_tenants_is_known_by_the_name_of_its_action():
    event = happened(Action.PERSON_LOGIN)
    event.action = "portal:request:submit"
    assert kind_of(event) is Kind.REQUEST


def test_operators_are_told_in_words_and_never_a_reason(add, handed):
    endpoint, _ = add()
    event = happened(Action.ROLLOUT_STUCK, reason="the password is hunter2")
    handed()
    (told,) = said(endpoint)
    assert told == {
        "type": "stuck", "action": "deploy:rollout:stuck", "at": told["at"], "event": event.number, "rollout": "r1",
        "subject": {"kind": "rollout", "id": "r1", "label": "revision 2 of lab"}, "sentence": told["sentence"],
    }  # fmt: skip
    assert "needs a person for revision 2 of lab" in told["sentence"]
    assert "hunter2" not in json.dumps(told)


def test_who_did_not_ask_for_it_or_is_off_is_not_told(add, handed):
    asked, _ = add(kinds=["stuck"])
    other, _ = add(name="other", kinds=["leak"])
    off, _ = add(name="off", kinds=["stuck"])
    Endpoint.objects.filter(pk=off.pk).update(off_since=off.created_at)
    happened(Action.ROLLOUT_STUCK)
    handed()
    assert [len(said(one)) for one in (asked, other, off)] == [1, 0, 0]


def test_an_event_that_is_handed_over_twice_is_one_message(add, handed):
    endpoint, _ = add()
    event = happened(Action.ROLLOUT_STUCK)
    handed()
    following.queue([event, event])
    assert len(said(endpoint)) == 1


def test_a_tenant_is_told_of_its_own_and_learns_nothing_of_others(add, handed, acme):
    other = Tenant.objects.create(name="Canary-Globex", slug="canary-globex")
    ours, theirs = add(tenant=acme)[0], add(tenant=other)[0]
    more = {"kind": "incident", "label": "canary-pair", "reason": "canary-reason", "after": {"x": "canary-after"}}
    event = happened(Action.PROBE_INCIDENT_OPEN, key="i1", tenant_key=acme.public_id, **more)
    happened(Action.PROBE_INCIDENT_OPEN, key="i2", tenant_key="", **more)
    happened(Action.ISOLATION_LEAK, key="i3", tenant_key=acme.public_id, **more)  # never a tenant's, whatever it says
    happened(Action.DRIFT_OPEN, key="d1", tenant_key=acme.public_id, **more)
    handed()
    assert said(theirs) == []
    (told,) = said(ours)
    assert told == {
        "type": "incident", "action": "probes:incident:open", "at": told["at"], "subject": {"kind": "incident"},
    }  # fmt: skip
    assert "canary" not in json.dumps(told).lower()
    assert str(event.number) not in json.dumps({**told, "at": ""})


def test_a_tenant_hears_of_rollouts_that_changed_its_partitions(receiver, handed):
    site = settled_site()
    acme, bert = site.provider.acme, site.provider.bert
    url = "https://hooks.example.com/x"
    made = {
        tenant: create_endpoint(name="own", url=url, kinds=["rollout"], tenant=tenant, actor=SYSTEM)[0]
        for tenant in (acme, bert)
    }
    follow.tick()
    Delivery.objects.all().delete()
    site.provider.move(site.provider.servers[0], site.training, site.inference)  # both are Acme's
    site.provider.settle(site.provider.roll_out(site.provider.olga, reason="a move"))
    follow.tick()
    assert said(made[bert]) == []
    told = said(made[acme])
    assert told
    assert {one["type"] for one in told} == {"rollout"}
    assert all(one["subject"] == {"kind": "rollout"} for one in told)


def test_without_endpoints_nothing_is_asked(handed, django_assert_max_num_queries):
    event = happened(Action.ROLLOUT_STUCK)
    with django_assert_max_num_queries(1):
        following.queue([event])


def test_what_waits_is_bounded_and_then_given_up_with_one_event(add, handed, monkeypatch):
    monkeypatch.setattr(following, "MOST_WAITING", 3)
    endpoint, _ = add()
    for number in range(5):
        happened(Action.ROLLOUT_STUCK, key=f"r{number}")
    handed()
    endpoint.refresh_from_db()
    assert endpoint.off_since is not None
    assert set(endpoint.deliveries.values_list("state", flat=True)) == {"GIVEN_UP"}
    event = Event.objects.get(action=Action.WEBHOOK_GIVE_UP)
    assert event.after == {"given_up": 5}
    assert event.reason == f"{MOST_WAITING} messages wait for it, and that is the most. It was switched off."


def test_syslog_gets_a_line_and_keeps_its_place_while_it_is_away(tmp_path, settings, monkeypatch, db):
    path = tmp_path / "log"
    settings.SYSLOG = str(path)
    monkeypatch.setattr(follow, "_followers", {})
    follow.register_many("webhooks.syslog", FOLLOWED, following.tell_syslog)
    follow.tick()
    happened(Action.DRIFT_OPEN, kind="drift", key="d1", label='rogue "SM"] on lab', after={"kind": "ROGUE_SM"})
    assert follow.tick() == 0  # it failed
    cursor = follow.FollowerCursor.objects.get(name="webhooks.syslog")
    assert "takes nothing" in cursor.failure
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.bind(str(path))
        wire.settimeout(10)
        follow.FollowerCursor.objects.update(next_try_at=None)
        follow.tick()
        line = wire.recv(4096)
    assert line.startswith(b"<105>1 ")
    assert b" rogue_sm [fabricui@32473 event=" in line
    assert line.endswith(b'rogue "SM"] on lab')
