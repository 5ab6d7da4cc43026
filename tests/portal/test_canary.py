"""Acme learns nothing of Bert: not a name, key, GUID or id of his, and no page changes by what he does."""

import re

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.models import HCA, Port, PortConflict, Server
from live.hints import hints_of, tenant_audience
from partitions.models import Partition, StagedChange
from people.models import Tenant, User
from portal import moves, own_partitions, turns
from portal.models import Turn
from subnet.pkey import PKey

MOVING = re.compile(r'(csrfmiddlewaretoken" value="|csrf-token" content="|X-CSRFToken": ")[^"]+|<time .*?</time>')


@pytest.fixture
def two(portal):
    """Bert under names that stand nowhere else, with everything a tenant can have; Acme rolls out alone as well."""
    provider, site = portal.provider, portal.site
    Tenant.objects.update(moves="ALONE")
    Tenant.objects.filter(pk=provider.bert.pk).update(name="Canarybird Ltd", slug="canarybird", most_partitions=17)
    User.objects.filter(username="bruno").update(first_name="Canaryman")
    Partition.objects.filter(pk=site.research.pk).update(name="canarynest")
    Server.objects.filter(pk=provider.servers[3].pk).update(hostname="canaryhost")
    provider.observe()
    for seat in portal.seats.values():
        seat.tenant.refresh_from_db()
    return portal


def canaries(portal) -> set[str]:
    """Everything that tells of Bert, as it could stand on a page."""
    bert, servers = portal.provider.bert, portal.provider.servers[3:]
    found = {"canary", bert.public_id, "Olga", "Bert", *(server.public_id for server in servers)}
    found |= {server.hostname for server in servers[1:]}
    for partition in Partition.objects.filter(tenant=bert):
        found |= {partition.public_id, str(PKey(partition.pkey))}
    hcas = HCA.objects.filter(server__in=servers)
    found |= {str(guid) for guid in Port.objects.filter(hca__in=hcas).values_list("guid", flat=True)}
    found |= {str(guid) for guid in hcas.values_list("node_guid", flat=True)}
    return found


def pages(portal, client) -> dict[str, str]:
    """Every page of Acme's as Max gets it, with what differs from one loading to the next taken out."""
    site = portal.site
    addresses = ["/portal/", portal.address("servers"), portal.address("partitions")]
    addresses += [portal.address("server", server.public_id) for server in site.provider.servers[:3]]
    addresses += [portal.address("partition", key) for key in (site.training.public_id, site.inference.public_id)]
    shown = {address: client.get(address, follow=True) for address in addresses}
    assert {answer.status_code for answer in shown.values()} == {200}
    return {address: MOVING.sub("", answer.content.decode()) for address, answer in shown.items()}


def refusals(portal, client) -> dict[str, str]:
    """The answers to everything that Acme's people may not, by name."""
    site, server = portal.site, portal.provider.servers[0]
    theirs = portal.provider.servers[3]
    wrong = {
        "his server": portal.fields(theirs, site.research, site.training),
        "his partition": portal.fields(server, site.training, site.research),
        "a lost source": portal.fields(server, site.inference, site.training),
        "the same": portal.fields(server, site.training, site.training),
        "no server": {"server": "nonsense", "source": site.training.public_id, "target": site.inference.public_id},
    }
    answers = {name: client.post(portal.address("move"), fields) for name, fields in wrong.items()}
    for name in ("canarynest", "canarybird.nest", "training", "x y"):
        answers[f"a partition called {name}"] = client.post(portal.address("partitions"), {"name": name})
    for name, key in (("server", theirs.public_id), ("partition", site.research.public_id)):
        answers[f"his {name}’s page"] = client.get(portal.address(name, key))
    answers["his portal"] = client.get(portal.address("servers", tenant=portal.provider.bert))
    return {name: MOVING.sub("", answer.content.decode()) for name, answer in answers.items()}


def test_no_page_and_no_refusal_tells_of_him(two, client):
    conflict = Port.objects.filter(hca__server=two.provider.servers[1]).first()
    PortConflict.objects.create(port=conflict, claimed_by=two.provider.servers[3], claim={})
    StagedChange.objects.create(
        port=Port.objects.filter(hca__server=two.provider.servers[2]).first(), partition=two.site.research,
        kind_to="full", by=two.provider.olga, at=timezone.now(), reason="canary",
    )  # fmt: skip
    asked = {
        "pending": two.fields(two.provider.servers[2], two.site.inference, two.site.training),
        "disputed": two.fields(two.provider.servers[1], two.site.training, two.site.inference),
    }
    said = {name: client.post(two.address("move"), fields).content.decode() for name, fields in asked.items()}
    said |= pages(two, client) | refusals(two, client)
    known = canaries(two)
    assert len(known) > 12
    # What Acme itself has typed comes back to it; nothing else may.
    own = {name: text.replace("canarynest", "").replace("canarybird.nest", "") if "called" in name else text
           for name, text in said.items()}  # fmt: skip
    assert [(name, canary) for name, text in own.items() for canary in known if canary in text] == []


def test_nothing_that_is_not_there_answers_otherwise_than_what_is_his(two, client):
    answers = refusals(two, client)
    his = {answers["his server’s page"], answers["his partition’s page"], answers["his portal"], answers["his server"]}
    nothing = {MOVING.sub("", client.get(two.address("server", "222222222222")).content.decode()), answers["no server"]}
    assert len(his | nothing) == 1


def test_whatever_he_does_her_pages_stay_as_they_are(two, client):
    provider, bruno = two.provider, two.seats["bruno"]
    before = pages(two, client)
    made = own_partitions.create(seat=bruno, subnet=provider.subnet, title="nest2")
    own_partitions.create(seat=bruno, subnet=provider.subnet, title="training")
    moves.move(seat=bruno, server=provider.servers[3], source=two.site.research, target=made)
    provider.move(provider.servers[4], None, two.site.research)
    assert Turn.objects.filter(tenant=provider.bert).count() == 1
    assert pages(two, client) == before


def test_ids_say_nothing_of_an_order_or_a_number(two, client):
    for text in pages(two, client).values():
        for address in re.findall(r'(?:href|action|hx-get|data-move)="(/portal/[^"]*)"', text):
            for part in address.split("/")[2:]:
                assert not part.isdecimal(), address


def test_a_hint_of_his_never_reaches_her(two):
    newest = Event.objects.latest("number").number
    bruno = two.seats["bruno"]
    made = own_partitions.create(seat=bruno, subnet=two.provider.subnet, title="nest2")
    moves.move(seat=bruno, server=two.provider.servers[3], source=two.site.research, target=made)
    turns.tick(now=timezone.now())
    events = list(Event.objects.filter(number__gt=newest))
    assert len(events) > 2
    assert tenant_audience(two.acme.public_id) not in hints_of(events)
    assert {event.tenant_key for event in events} <= {two.provider.bert.public_id, ""}
