"""A tenant's requests: asked, commented, withdrawn; refused politely; recorded as the tenant's."""

from datetime import date, timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from partitions.models import StagedChange
from people.models import Tenant
from portal import asking, deciding
from portal.errors import OverQuota, Refused, RequestMoved
from portal.models import TenantRequest
from tests.portal import asked
from tests.portal.asked import WHY, fresh


def post(portal, client, status=302, **fields):
    answer = client.post(portal.address("requests"), {"why": WHY, **fields})
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def newest():
    return TenantRequest.objects.latest("pk")


def test_more_servers_are_asked_for_on_the_page(portal, client):
    day = timezone.localdate() + timedelta(days=3)
    post(
        portal, client, kind="MORE_SERVERS", count="4", sort="2 ports of 400 Gb/s", wanted_from=f"{day:%Y-%m-%d}",
        partition=portal.site.training.public_id,
    )  # fmt: skip
    made = newest()
    assert (made.tenant, made.count, made.wanted_from, made.partition) == (portal.acme, 4, day, portal.site.training)
    page = client.get(portal.address("request", made.public_id)).content.decode()
    for said in ("4 more servers", "2 ports of 400 Gb/s", f"{day:%Y-%m-%d}", WHY, "Max", "has not answered yet"):
        assert said in page
    event = Event.objects.get(action="portal:request:ask")
    assert (event.tenant_key, event.subject_key, event.reason) == (portal.acme.public_id, made.public_id, WHY)
    assert not StagedChange.objects.exists()  # asking moves nothing


def test_own_servers_are_asked_to_go_back_and_no_others(portal, client):
    servers = portal.provider.servers
    post(portal, client, kind="RETURN_SERVERS", servers=[servers[0].public_id, servers[2].public_id])
    assert sorted(newest().servers.values_list("name", flat=True)) == ["srv-001", "srv-003"]
    for other in (servers[3].public_id, servers[5].public_id, "nonsense"):
        post(portal, client, status=404, kind="RETURN_SERVERS", servers=[other])
    assert "srv-001 is in a request to go back already" in post(
        portal, client, status=409, kind="RETURN_SERVERS", servers=[servers[0].public_id]
    )
    assert "No server was chosen" in post(portal, client, status=409, kind="RETURN_SERVERS")


def test_only_offered_storage_is_asked_for_and_only_for_own_partitions(portal, client):
    site = portal.site
    fields = {"kind": "SHARED_STORAGE", "storage": site.storage.public_id, "partition": site.training.public_id}
    assert "Shares which storage" not in client.get(portal.address("requests")).content.decode()
    post(portal, client, status=404, **fields)  # nothing is offered yet
    deciding.offer_storage(partition=site.storage, words="for checkpoints", actor=portal.provider.olga)
    assert "storage: for checkpoints" in client.get(portal.address("requests")).content.decode()
    post(portal, client, status=404, **{**fields, "partition": site.research.public_id})
    post(portal, client, status=404, **{**fields, "storage": site.training.public_id})
    post(portal, client, **fields)
    assert newest().storage == site.storage
    assert "is asked for already" in post(portal, client, status=409, **fields)
    deciding.keep_storage(partition=site.storage, actor=portal.provider.olga)
    assert "for checkpoints" not in client.get(portal.address("requests")).content.decode()


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"count": "0"}, 409, "Ask for 1 to 100"),
        ({"count": "101"}, 409, "Ask for 1 to 100"),
        ({"count": "many"}, 422, "How many"),
        ({"count": "1", "wanted_from": "2020-01-01"}, 409, "is over"),
        ({"count": "1", "wanted_from": "soon"}, 422, "From when"),
        ({"count": "1", "why": " "}, 422, "Why"),
        ({"count": "1", "why": "x" * 1001}, 422, "Why"),
    ],
)
def test_what_cannot_be_asked_says_what_and_how_to_mend_it(portal, client, fields, status, said):
    page = post(portal, client, status=status, **{"kind": "MORE_SERVERS", "sort": "kept", **fields})
    assert said in page
    assert "Nothing was asked" in page
    assert 'value="kept"' in page  # what was typed is still there
    assert not TenantRequest.objects.exists()


def test_nobody_asks_past_the_quota_and_the_page_says_how_it_stands(portal, client):
    Tenant.objects.filter(pk=portal.acme.pk).update(most_servers=5)  # it has three
    asked.more(portal, count=1)
    page = post(portal, client, status=409, kind="MORE_SERVERS", count="2")
    assert "Acme has 3 servers, has asked for 1 more, and may have 5. Nothing was asked." in page
    with pytest.raises(OverQuota):
        asked.more(portal, count=2)
    asked.more(portal, count=1)


def test_a_retired_partition_takes_no_request(portal):
    portal.site.inference.retired_at = timezone.now()
    portal.site.inference.save()
    with pytest.raises(Refused, match="retired"):
        asked.more(portal, partition=portal.site.inference)


def test_there_is_an_end_to_open_requests_and_to_comments(portal, monkeypatch):
    monkeypatch.setattr(asking, "MOST_OPEN", 1)
    monkeypatch.setattr(asking, "MOST_COMMENTS", 1)
    made = asked.more(portal)
    with pytest.raises(Refused, match="1 request is not done yet"):
        asked.more(portal)
    asking.comment(seat=portal.seats["max"], request=made, text="one")
    with pytest.raises(Refused, match="that is the most"):
        asking.comment(seat=portal.seats["max"], request=made, text="two")


def test_both_sides_comment_and_the_provider_has_no_name(portal, client, client_of):
    made = asked.more(portal)
    client.post(portal.address("request_comment", made.public_id), {"text": "Is <b>Friday</b> possible?"})
    deciding.comment(request=made, actor=portal.provider.olga, text="On Monday.")
    page = client.get(portal.address("request", made.public_id)).content.decode()
    assert "Is &lt;b&gt;Friday&lt;/b&gt; possible?" in page
    assert "On Monday." in page
    assert "your provider" in page
    assert "Olga" not in page
    theirs = client_of(portal.provider.otto).get(f"/requests/{made.public_id}/").content.decode()
    assert "Olga" in theirs
    events = Event.objects.filter(action="portal:request:comment").order_by("number")
    assert [event.actor_name for event in events] == ["Max", "Olga"]
    assert {event.tenant_key for event in events} == {portal.acme.public_id}
    empty = client.post(portal.address("request_comment", made.public_id), {"text": "  "})
    assert empty.status_code == 409
    assert "Nothing was said" in empty.content.decode()


def test_who_asked_withdraws_and_so_does_the_administrator(portal, client, client_of):
    made = asked.more(portal, who="mia")
    refused = client.post(portal.address("request_withdraw", made.public_id))
    assert refused.status_code == 409
    assert "Ask Mia or your administrator" in refused.content.decode()
    assert fresh(made).state == "OPEN"
    anna = client_of(portal.seats["anna"].person)
    assert anna.post(portal.address("request_withdraw", made.public_id)).status_code == 302
    assert fresh(made).state == "WITHDRAWN"
    assert Event.objects.filter(action="portal:request:withdraw", tenant_key=portal.acme.public_id).count() == 1
    again = anna.post(portal.address("request_withdraw", made.public_id))
    assert again.status_code == 409
    assert "It was withdrawn at" in again.content.decode()


def test_one_that_was_answered_is_not_withdrawn_and_names_nobody(portal):
    made = asked.more(portal)
    deciding.decline(request=made, actor=portal.provider.olga, answer="no room")
    with pytest.raises(RequestMoved, match="It was declined at") as told:
        asking.withdraw(seat=portal.seats["max"], request=made)
    assert "Olga" not in str(told.value)


def test_a_viewer_reads_and_asks_nothing(portal, client_of):
    made = asked.more(portal)
    viewer = client_of(portal.seats["vera"].person)
    page = viewer.get(portal.address("requests")).content.decode()
    assert "2 more servers" in page
    assert "Ask for more servers" not in page
    for name, args in (("requests", []), ("request_comment", [made.public_id]), ("request_withdraw", [made.public_id])):
        assert viewer.post(portal.address(name, *args), {"kind": "MORE_SERVERS", "count": "1"}).status_code == 403
    assert TenantRequest.objects.count() == 1


def test_another_tenants_request_is_not_there(portal, client_of):
    made = asked.more(portal)
    bruno = client_of(portal.seats["bruno"].person)
    bert = portal.provider.bert
    for name in ("request", "request_comment", "request_withdraw"):
        verb = bruno.get if name == "request" else bruno.post
        assert verb(portal.address(name, made.public_id, tenant=bert), {"text": "x"}).status_code == 404
    assert "2 more servers" not in bruno.get(portal.address("requests", tenant=bert)).content.decode()
    assert fresh(made).comments.count() == 0


def test_what_a_tenant_reads_tells_of_nobody_else(portal, client):
    """Olga, Bert and a server that was chosen and is not Acme's yet stand on no page of Acme's."""
    provider, free = portal.provider, portal.provider.servers[4]
    made = asked.more(portal, count=1, partition=portal.site.training)
    deciding.approve(request=made, actor=provider.olga, servers=[free], answer="here you are")
    bert = asking.ask_more_servers(
        seat=portal.seats["bruno"], subnet=provider.subnet, count=7, why="canary", sort="canary"
    )
    for address in (portal.address("requests"), portal.address("request", made.public_id)):
        page = client.get(address).content.decode()
        for name in ("Olga", "Bert", "canary", free.hostname, free.public_id, bert.public_id):
            assert name not in page, (address, name)
    assert "here you are" in page


def test_the_shape_of_a_day_is_kept_in_the_trail(portal):
    asked.more(portal, wanted_from=date(2199, 1, 2))
    assert Event.objects.get(action="portal:request:ask").after["from"] == "2199-01-02"
