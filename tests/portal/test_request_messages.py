"""Webhooks and open pages hear of requests: operators of all, a tenant of its own, and nobody of what was said."""

import json

import pytest

from audit import follow
from audit.models import Event
from audit.values import SYSTEM
from live.hints import PROVIDER, Hint, Kind, hints_of, tenant_audience
from portal import asking, deciding
from tests.portal import asked
from webhooks.models import Delivery
from webhooks.operations import create_endpoint


@pytest.fixture
def endpoints(portal):
    made = {}
    for name, tenant in (("operators", None), ("acme", portal.acme), ("bert", portal.provider.bert)):
        made[name], _ = create_endpoint(
            name=name, url="https://hooks.example.com/x", kinds=["request"], actor=SYSTEM, tenant=tenant
        )
    follow.tick()
    return made


def test_each_step_is_told_once_and_a_tenant_hears_no_name_and_no_words(portal, endpoints):
    made = asked.more(portal, count=1, partition=portal.site.training)
    asking.comment(seat=portal.seats["max"], request=made, text="a secret word")
    deciding.approve(
        request=made, actor=portal.provider.olga, servers=[portal.provider.servers[4]], answer="a secret word"
    )
    follow.tick()
    steps = ["portal:request:ask", "portal:request:comment", "portal:request:approve"]
    for name, expected in (("operators", steps), ("acme", steps), ("bert", [])):
        rows = Delivery.objects.filter(endpoint=endpoints[name]).order_by("number")
        assert [row.said["action"] for row in rows] == expected, name
        assert {row.kind for row in rows} <= {"request"}
        assert "secret" not in json.dumps([row.said for row in rows])
    ours = Delivery.objects.filter(endpoint=endpoints["acme"]).latest("number").said
    assert ours["subject"] == {"kind": "request", "id": made.public_id}
    assert "Olga" not in json.dumps(ours)
    theirs = Delivery.objects.filter(endpoint=endpoints["operators"]).latest("number").said
    assert theirs["sentence"] == "Olga approved the request for 1 more server for Acme"


def test_open_pages_of_the_tenant_and_of_operators_hear_of_it(portal):
    made = asked.more(portal)
    batch = hints_of(Event.objects.filter(action="portal:request:ask"))
    hint = Hint(Kind.REQUEST, made.public_id)
    assert batch == {PROVIDER: {hint}, tenant_audience(portal.acme.public_id): {hint}}
    deciding.offer_storage(partition=portal.site.storage, words="", actor=portal.provider.olga)
    assert set(hints_of(Event.objects.filter(action="portal:storage:offer"))) == {PROVIDER}
