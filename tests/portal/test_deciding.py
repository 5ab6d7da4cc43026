"""An operator's answers: approving stages the work, the proof ends the request, and whoever comes late is told."""

import pytest
from django.urls import reverse
from django.utils import timezone

from audit import follow
from audit.models import Event
from audit.values import SYSTEM
from inventory.models import Port, Server
from partitions import operations
from partitions.models import Cleaning, Membership, StagedChange
from partitions.selection import Selection
from people import suspension
from people.models import Tenant
from portal import asking, deciding, finishing
from portal.errors import Refused, RequestMoved
from portal.models import StorageOffer, TenantRequest
from tests.portal import asked
from tests.portal.asked import fresh


@pytest.fixture
def operator(portal, client_of):
    """Olga's browser."""
    return client_of(portal.provider.olga)


def approve(portal, request, *numbers, by=None, **fields):
    servers = [portal.provider.servers[number] for number in numbers]
    return deciding.approve(request=request, actor=by or portal.provider.olga, servers=servers, **fields)


def roll_out(portal, by=None):
    """The plan of what is staged for Acme, proven and settled; then the followers have run."""
    provider = portal.provider
    selection = Selection.of_tenant(portal.acme)
    provider.settle(provider.roll_out(by or provider.olga, selection, reason="a request"))
    follow.tick()


def places(server):
    return set(Membership.objects.filter(port__hca__server=server).values_list("partition__name", "kind"))


def test_more_servers_are_chosen_from_the_pool_and_done_once_proven(portal, operator):
    provider, site = portal.provider, portal.site
    made = asked.more(portal, count=2)
    address = reverse("portal:operator_request", args=[made.public_id])
    page = operator.get(address).content.decode()
    assert "srv-005" in page
    assert "srv-006" in page
    assert "srv-004" not in page  # Bert's
    fields = {
        "servers": [server.public_id for server in provider.servers[4:6]],
        "partition": site.inference.public_id,
        "answer": "both of rack 12",
    }
    answer = operator.post(reverse("portal:operator_approve", args=[made.public_id]), fields, follow=True)
    assert "2 servers are staged for it" in answer.content.decode()
    assert fresh(made).state == "APPROVED"
    assert StagedChange.objects.filter(partition=site.inference, reason__contains="both of rack 12").count() == 4
    roll_out(portal)
    assert fresh(made).state == "DONE"
    assert {name for server in provider.servers[4:6] for name, _ in places(server)} == {"inference"}
    told = Event.objects.filter(subject_key=made.public_id).order_by("number")
    assert [event.action.rpartition(":")[2] for event in told] == ["ask", "approve", "done"]
    assert {event.tenant_key for event in told} == {portal.acme.public_id}
    assert told[1].after == {"servers": 2}  # by number: until the proof they are not the tenant's to know


def test_returned_servers_leave_everything_and_go_back_to_the_pool(portal, shared, client):
    provider = portal.provider
    server = provider.servers[0]  # in training, and in the provider's storage
    Server.objects.filter(pk=server.pk).update(tenant=portal.acme)
    made = asked.back(portal, 0)
    approve(portal, made, answer="thank you")
    assert set(StagedChange.objects.of_server(server).values_list("partition__name", "kind_to")) == {
        ("training", None), ("storage", None),
    }  # fmt: skip
    assert not finishing.is_done(fresh(made))
    roll_out(portal)
    assert fresh(made).state == "DONE"
    assert places(server) == set()
    server.refresh_from_db()
    assert server.tenant is None  # by the label it would still be shown to Acme
    assert Event.objects.filter(action="inventory:server:label", subject_key=server.public_id).count() == 1
    page = client.get(portal.address("servers")).content.decode()
    assert "srv-001" not in page
    assert "srv-001" in client.get(portal.address("request", made.public_id)).content.decode()  # it gave it back
    # Nobody else takes it before it is clean; then the pool has it.
    bert = asking.ask_more_servers(seat=portal.seats["bruno"], subnet=provider.subnet, count=1, why="more")
    assert server not in deciding.pool(bert)
    provider.observe()
    operations.mark_clean(server=server, actor=provider.olga, reason="erased")
    assert Cleaning.objects.exists()
    assert server in deciding.pool(bert)


def test_shared_storage_is_joined_by_each_server_as_limited(portal):
    made = asked.storage(portal)
    approve(portal, made)
    assert set(StagedChange.objects.values_list("partition__name", "kind_from", "kind_to")) == {
        ("storage", None, "limited")
    }
    assert StagedChange.objects.count() == 4
    roll_out(portal)
    assert fresh(made).state == "DONE"
    for server in portal.provider.servers[:2]:
        assert places(server) == {("training", "full"), ("storage", "limited")}


def test_what_the_fabric_shows_already_is_done_at_once(portal, operator):
    provider = portal.provider
    for server in provider.servers[:2]:
        operations.stage_add(server=server, target=portal.site.storage, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga, reason="test"))
    made = asked.storage(portal)
    answer = operator.post(reverse("portal:operator_approve", args=[made.public_id]), follow=True)
    assert "nothing was left to do" in answer.content.decode()
    assert fresh(made).state == "DONE"


def test_a_server_that_left_the_partition_meanwhile_keeps_nobody_waiting(portal):
    made = asked.storage(portal)
    approve(portal, made)
    provider, site = portal.provider, portal.site
    operations.discard(changes=StagedChange.objects.of_server(provider.servers[1]), actor=provider.olga)
    roll_out(portal)
    assert fresh(made).state == "APPROVED"  # srv-002 shares nothing yet
    provider.settled_move(provider.servers[1], site.training, site.inference)
    follow.tick()
    assert fresh(made).state == "DONE"


def test_declining_needs_a_reason_which_the_tenant_reads(portal, operator, client):
    made = asked.more(portal)
    address = reverse("portal:operator_decline", args=[made.public_id])
    refused = operator.post(address, {"answer": " "})
    assert refused.status_code == 409
    assert "Say why: the tenant reads it." in refused.content.decode()
    operator.post(address, {"answer": "no room before May"})
    page = client.get(portal.address("request", made.public_id)).content.decode()
    assert "no room before May" in page
    assert "declined" in page
    assert Event.objects.get(action="portal:request:decline").reason == "no room before May"


@pytest.mark.parametrize(
    ("numbers", "fields", "said"),
    [
        ((), {}, "Choose from 1 to 2"),
        ((4, 5, 3), {}, "3 were chosen"),
        ((4,), {}, "fewer than were asked for"),
        ((4, 3), {}, "srv-004 is not in the pool any more"),
        ((4, 0), {}, "srv-001 is not in the pool any more"),
    ],
)
def test_a_choice_that_is_none_says_why_and_stages_nothing(portal, numbers, fields, said):
    made = asked.more(portal, partition=portal.site.training)
    with pytest.raises(Refused, match=said):
        approve(portal, made, *numbers, **fields)
    assert not StagedChange.objects.exists()
    assert fresh(made).state == "OPEN"


def test_a_partition_of_somebody_else_takes_none(portal):
    made = asked.more(portal, count=1)
    with pytest.raises(Refused, match="in which partition of Acme"):
        approve(portal, made, 4)
    with pytest.raises(Refused, match="takes no servers for it"):
        approve(portal, made, 4, partition=portal.site.research)


def test_a_server_that_is_taken_while_the_page_is_open_is_told(portal, operator):
    made = asked.more(portal, count=1, partition=portal.site.training)
    free = portal.provider.servers[4]
    portal.provider.move(free, None, portal.site.research, by=portal.provider.otto)
    fields = {"servers": [free.public_id], "answer": "as you wish"}
    refused = operator.post(reverse("portal:operator_approve", args=[made.public_id]), fields)
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "srv-005 is not in the pool any more" in page
    assert "as you wish" in page  # what was typed is still there
    assert fresh(made).state == "OPEN"


def test_a_server_that_moved_to_another_tenant_is_not_returned(portal):
    made = asked.back(portal, 2)
    provider, site = portal.provider, portal.site
    provider.settled_move(provider.servers[2], site.inference, None)
    Port.objects.update(former_tenant=None)
    provider.settled_move(provider.servers[2], None, site.research)
    with pytest.raises(Refused, match="srv-003 is not Acme’s any more"):
        approve(portal, made)
    assert places(provider.servers[2]) == {("research", "full")}


def test_anothers_staged_change_stands_in_the_way_and_is_named(portal):
    made = asked.back(portal, 0, 1)
    provider, site = portal.provider, portal.site
    provider.move(provider.servers[1], site.training, site.inference, by=provider.otto)
    with pytest.raises(Refused, match="Otto has already staged srv-002"):
        approve(portal, made)
    assert not StagedChange.objects.of_server(provider.servers[0]).exists()  # all of it or nothing
    assert fresh(made).state == "OPEN"


def test_whoever_comes_second_is_told_who_was_first(portal):
    made = asked.more(portal, count=1, partition=portal.site.training)
    approve(portal, made, 4)
    with pytest.raises(RequestMoved, match=r"It was approved at .* UTC. Olga answered it."):
        approve(portal, made, 5, by=portal.provider.otto)
    with pytest.raises(RequestMoved):
        deciding.decline(request=made, actor=portal.provider.otto, answer="no")
    assert fresh(made).servers.count() == 1


def test_a_withdrawn_one_is_not_approved(portal):
    made = asked.back(portal)
    asking.withdraw(seat=portal.seats["max"], request=made)
    with pytest.raises(RequestMoved, match="It was withdrawn at"):
        approve(portal, made)
    assert not StagedChange.objects.exists()


def test_what_was_discarded_is_opened_again(portal, operator):
    made = asked.more(portal, count=1, partition=portal.site.training)
    approve(portal, made, 4)
    with pytest.raises(Refused, match="srv-005 is still staged for it"):
        deciding.reopen(request=made, actor=portal.provider.olga)
    operations.discard(changes=StagedChange.objects.all(), actor=portal.provider.olga)
    page = operator.get(reverse("portal:operator_request", args=[made.public_id])).content.decode()
    assert "Nothing is staged for it any more" in page
    operator.post(reverse("portal:operator_reopen", args=[made.public_id]))
    assert (fresh(made).state, fresh(made).servers.count()) == ("OPEN", 0)
    approve(portal, made, 5)


def test_a_suspended_tenants_request_waits(portal):
    made = asked.back(portal)
    Tenant.objects.filter(pk=portal.acme.pk).update(suspended_at=timezone.now())
    with pytest.raises(Refused, match="Acme is suspended"):
        approve(portal, made)


def test_what_a_tenant_that_is_let_go_asks_for_is_over(portal):
    """Open and approved ones, each with its event, once however often the follower hears of it; nobody else's."""
    waits, approved, over = asked.more(portal, count=1), asked.more(portal, count=1), asked.more(portal, count=1)
    approve(portal, approved, 4, partition=portal.site.training)
    deciding.decline(request=over, actor=portal.provider.olga, answer="no")
    follow.tick()
    assert fresh(waits).state == "OPEN"
    theirs = Tenant.objects.exclude(pk=portal.acme.pk).first()
    others = TenantRequest.objects.create(
        tenant=theirs, subnet=waits.subnet, kind=waits.kind, count=1, asked_by=waits.asked_by, asked_at=timezone.now()
    )
    suspension.let_go(tenant=portal.acme, actor=SYSTEM, reason="their contract ended")
    follow.tick()
    assert fresh(waits).state == "DECLINED"
    finishing.close_of_gone(Event.objects.get(action="people:tenant:offboard"))
    assert [(fresh(one).state, fresh(one).answer) for one in (waits, approved, over)] == [
        ("DECLINED", "The tenant was let go."), ("DECLINED", "The tenant was let go."), ("DECLINED", "no"),
    ]  # fmt: skip
    assert fresh(waits).ended_at is not None
    assert fresh(others).state == "OPEN"
    ended = Event.objects.filter(action="portal:request:decline", reason="The tenant was let go.").order_by("number")
    assert [(one.subject_key, one.before) for one in ended] == [
        (waits.public_id, {"state": "OPEN"}), (approved.public_id, {"state": "APPROVED"}),
    ]  # fmt: skip
    assert {one.tenant_key for one in ended} == {portal.acme.public_id}


def test_the_quota_holds_also_when_an_operator_approves(portal, operator):
    made = asked.more(portal, count=2, partition=portal.site.training)
    Tenant.objects.filter(pk=portal.acme.pk).update(most_servers=4)
    with pytest.raises(Refused, match=r"Acme has 4 servers and may have 4, so srv-006 cannot come to it. Raise"):
        approve(portal, made, 4, 5)
    assert not StagedChange.objects.exists()
    assert "3 of 4 servers" in operator.get(reverse("portal:operator_request", args=[made.public_id])).content.decode()
    Tenant.objects.filter(pk=portal.acme.pk).update(most_servers=5)
    approve(portal, made, 4, 5)


def test_only_the_providers_partitions_in_use_are_offered(portal, operator):
    with pytest.raises(Refused, match="not a partition of the provider's"):
        deciding.offer_storage(partition=portal.site.training, words="", actor=portal.provider.olga)
    key = portal.site.storage.public_id
    operator.post(reverse("portal:operator_offer"), {"partition": key, "words": "fast"})
    operator.post(reverse("portal:operator_offer"), {"partition": key, "words": "fast"})
    assert StorageOffer.objects.get().words == "fast"
    assert Event.objects.filter(action="portal:storage:offer").count() == 1  # the same again is nothing
    operator.post(reverse("portal:operator_offer"), {"partition": key, "keep": "1"})
    operator.post(reverse("portal:operator_offer"), {"partition": key, "keep": "1"})
    assert Event.objects.filter(action="portal:storage:keep").count() == 1
    assert operator.post(reverse("portal:operator_offer"), {"partition": "nonsense"}).status_code == 404


def test_an_auditor_reads_and_decides_nothing(portal, ada, client_of):
    made = asked.more(portal)
    auditor = client_of(ada)
    page = auditor.get(reverse("portal:operator_request", args=[made.public_id])).content.decode()
    assert "2 more servers" in page
    assert "Approve" not in page
    for name in ("approve", "decline", "reopen", "comment"):
        address = reverse(f"portal:operator_{name}", args=[made.public_id])
        assert auditor.post(address, {"answer": "no", "text": "x"}).status_code == 404
    assert fresh(made).state == "OPEN"
