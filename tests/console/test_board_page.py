"""The board's page and the one address that every move posts to."""

import re

import pytest
from django.urls import reverse

from deploy.models import Fence, Rollout
from inventory.models import Port, PortConflict, Server, Subnet
from partitions.models import Partition, StagedChange

JSON = {"HTTP_ACCEPT": "application/json"}
HTMX = {"HTTP_HX_REQUEST": "true"}


def move(browser, server, source, target, **extra):
    key = lambda place: place.public_id if place else "unassigned"  # noqa: E731
    fields = {"server": server.public_id, "source": key(source), "target": key(target)}
    return browser.post(reverse("console:board_move"), fields | extra.pop("fields", {}), **extra)


def card(page: str, server: Server, column: str) -> str:
    found = re.search(rf'<article[^>]*id="card-{column}-{server.public_id}".*?</article>', page, re.DOTALL)
    assert found, f"{server} is not in column {column}"
    return found[0]


def test_servers_stand_in_their_partitions(site, operator):
    page = operator.get("/board/").content.decode()
    servers = site.provider.servers
    card(page, servers[0], site.training.public_id)
    card(page, servers[2], site.inference.public_id)
    assert "2 ports" in card(page, servers[5], "unassigned")
    assert "6 servers" in page
    assert "Nothing is staged." in page


def test_a_move_by_script_is_staged(site, operator):
    server = site.provider.servers[0]
    answer = move(operator, server, site.training, site.inference, **JSON)
    assert answer.status_code == 200
    assert answer.json()["sentence"] == "srv-001 is staged to inference. Nothing has reached the fabric."
    assert StagedChange.objects.of_server(server).count() == 4
    text = card(operator.get("/board/").content.decode(), server, site.inference.public_id)
    assert "card-staged" in text
    assert "training" in text
    assert "you" in text


def test_a_move_by_a_plain_form_is_staged_and_told(site, operator):
    answer = move(operator, site.provider.servers[0], site.training, site.inference, follow=True)
    assert answer.redirect_chain == [("/board/", 302)]
    assert "srv-001 is staged to inference." in answer.content.decode()


def test_a_refused_move_says_why_and_changes_nothing(site, operator):
    answer = move(operator, site.provider.servers[0], site.training, site.research, fields={"keep": "1"}, **JSON)
    assert answer.status_code == 409
    assert "Acme" in answer.json()["sentence"]
    assert not StagedChange.objects.exists()
    plain = move(operator, site.provider.servers[0], site.training, site.research, fields={"keep": "1"}, follow=True)
    assert answer.json()["sentence"][:40] in plain.content.decode().replace("&#x27;", "'")


def test_keeping_adds_instead_of_moving(site, operator):
    server = site.provider.servers[0]
    answer = move(operator, server, site.training, site.storage, fields={"keep": "1"}, **JSON)
    assert answer.status_code == 200
    page = operator.get("/board/").content.decode()
    card(page, server, site.training.public_id)
    card(page, server, site.storage.public_id)


def test_moving_back_is_undoing(site, operator):
    server = site.provider.servers[0]
    move(operator, server, site.training, site.inference, **JSON)
    move(operator, server, site.inference, site.training, **JSON)
    assert not StagedChange.objects.exists()


@pytest.mark.parametrize("field", ["server", "source", "target"])
def test_a_form_that_names_nothing_real_is_not_found(site, operator, field):
    fields = {"server": site.provider.servers[0].public_id, "source": "unassigned", "target": site.training.public_id}
    for wrong in ("", "nonsense"):
        assert operator.post(reverse("console:board_move"), fields | {field: wrong}).status_code == 404
    assert not StagedChange.objects.exists()


def test_a_partition_of_another_subnet_is_not_found(site, operator):
    other = Subnet.objects.create(name="other")
    stranger = Partition.objects.create(subnet=other, name="theirs", pkey=0x77)
    assert move(operator, site.provider.servers[0], site.training, stranger, **JSON).status_code == 404


def test_others_work_is_shown_with_their_names(site, operator):
    provider = site.provider
    provider.move(provider.servers[2], site.inference, site.training, by=provider.otto)
    page = operator.get("/board/").content.decode()
    assert "Otto" in card(page, provider.servers[2], site.training.public_id)
    assert "Otto: 1 server" in page
    assert "You have staged nothing." in page
    assert "Review all" in page
    assert "Review plan" not in page


def test_the_tray_counts_and_discards_mine_only(site, operator):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.move(provider.servers[2], site.inference, site.training, by=provider.otto)
    assert "1 server, 2 ports staged" in operator.get("/board/").content.decode()
    answer = operator.post(reverse("console:board_discard"), follow=True)
    assert "The staged changes are discarded." in answer.content.decode()
    assert set(StagedChange.objects.values_list("by__username", flat=True)) == {"otto"}
    again = operator.post(reverse("console:board_discard"), follow=True)
    assert "There was nothing to discard." in again.content.decode()


def test_the_fragment_holds_only_what_changes(site, operator):
    answer = operator.get("/board/", **HTMX)
    text = answer.content.decode()
    assert "<html" not in text
    assert 'id="board"' in text
    assert 'id="tray"' in text
    assert "no-store" in answer.headers["Cache-Control"]


def test_trouble_stands_on_the_card(site, operator):
    servers = site.provider.servers
    Port.objects.filter(hca__server=servers[4]).update(confirmed_at=None)
    PortConflict.objects.create(
        port=Port.objects.filter(hca__server=servers[5]).first(), claimed_by=servers[4], claim={}
    )
    page = operator.get("/board/").content.decode()
    assert "unconfirmed" in card(page, servers[4], "unassigned")
    assert "conflict" in card(page, servers[5], "unassigned")


def test_a_running_rollout_and_settling_are_told(site, operator):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    rollout = provider.roll_out(provider.olga)
    assert f"Rollout {rollout.public_id}" in operator.get("/board/").content.decode()
    provider.prove(rollout)
    assert "settling" in operator.get("/board/").content.decode()
    provider.settle(rollout)
    assert "settling" not in operator.get("/board/").content.decode()


def test_empty_boards_say_what_to_do(db, olga, client_of):
    browser = client_of(olga)
    answer = browser.get("/board/")
    assert answer.status_code == 200
    assert "No subnet yet" in answer.content.decode()
    assert "No subnet yet" in browser.get("/").content.decode()
    Subnet.objects.create(name="lab")
    page = browser.get("/board/").content.decode()
    assert "No server has registered" in page
    assert "Create a partition" in page


def test_the_board_costs_the_same_queries_whatever_its_size(site, operator, django_assert_max_num_queries):
    """Two for the session and the person, one for the subnet with its fence and rollout, the rest the board's own."""
    provider = site.provider
    with django_assert_max_num_queries(11) as small:
        operator.get("/board/", **HTMX)
    for number in range(10, 40):
        provider.server(number)
    for server in provider.servers[6:20]:
        provider.move(server, None, site.training)
    with django_assert_max_num_queries(11) as large:
        operator.get("/board/", **HTMX)
    assert len(large) == len(small)


def test_the_subnet_chip_says_what_matters_most(site, operator):
    assert "ready" in operator.get("/servers/").content.decode()
    Subnet.objects.update(mode=Subnet.Mode.OBSERVE)
    assert "observe only" in operator.get("/servers/").content.decode()
    rollout = Rollout.objects.first()
    Rollout.objects.update(state=Rollout.State.STUCK)
    Fence.objects.update(rollout=rollout)
    page = operator.get("/servers/").content.decode()
    assert "stuck" in page
    assert reverse("console:rollout", args=[rollout.public_id]) in page
