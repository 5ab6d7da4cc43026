"""The board's page and the one address that every move posts to."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from deploy.models import Fence, Rollout
from inventory.models import Port, PortConflict, Subnet
from partitions.models import Partition, StagedChange
from tests.console.on_board import card, check, drift, watch

JSON = {"HTTP_ACCEPT": "application/json"}
HTMX = {"HTTP_HX_REQUEST": "true"}


def move(browser, server, source, target, **extra):
    key = lambda place: place.public_id if place else "unassigned"  # noqa: E731
    fields = {"server": server.public_id, "source": key(source), "target": key(target)}
    return browser.post(reverse("console:board_move"), fields | extra.pop("fields", {}), **extra)


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


BEFORE, HEAD = 2, 2  # queries: session and person; the trail's lamp in the head of every page


def test_the_board_costs_six_queries_whatever_its_size(site, operator, django_assert_num_queries):
    provider = site.provider
    with django_assert_num_queries(BEFORE + HEAD + 6):
        operator.get("/board/", **HTMX)
    for number in range(10, 40):
        provider.server(number)
    for server in provider.servers[6:20]:
        provider.move(server, None, site.training)
    with django_assert_num_queries(BEFORE + HEAD + 6):
        operator.get("/board/", **HTMX)


def test_asking_again_costs_three_queries_while_nothing_has_changed(site, operator, django_assert_num_queries):
    tag = operator.get("/board/", **HTMX).headers["ETag"]
    again = HTMX | {"HTTP_IF_NONE_MATCH": tag}
    with django_assert_num_queries(BEFORE + 1):
        answer = operator.get("/board/", **again)
    assert (answer.status_code, answer.content) == (304, b"")
    assert operator.get("/board/", HTTP_IF_NONE_MATCH=tag).status_code == 200  # a page is never half a page
    site.provider.move(site.provider.servers[0], site.training, site.inference, by=site.provider.otto)
    changed = operator.get("/board/", **again)
    assert changed.status_code == 200
    assert "Otto" in changed.content.decode()


def test_the_fingerprint_is_of_the_address_and_the_person(site, operator, auditor):
    tags = {
        browser.get(address, **HTMX).headers["ETag"]
        for browser in (operator, auditor)
        for address in ("/board/", "/board/?q=srv", "/board/?open=")
    }
    assert len(tags) == 6


@pytest.mark.parametrize("name", ["the files", "the tables", "a drift of tables", "a probe"])
def test_what_no_event_tells_changes_the_fingerprint(site, operator, name):
    tag = operator.get("/board/", **HTMX).headers["ETag"]
    if name == "the files":
        watch(site, checked_at=timezone.now(), managers=[{"host": "m1", "digest": "0" * 64, "error": None}])
    elif name == "the tables":
        watch(site, covered_at=timezone.now())
    elif name == "a drift of tables":
        drift(site, str(Port.objects.filter(hca__server=site.provider.servers[0]).first().guid))
    else:
        check(site, "LEAK")
    assert operator.get("/board/", **HTMX).headers["ETag"] != tag


def test_another_file_on_a_host_is_seen_on_every_card(site, operator):
    hosts = [{"host": "m1", "digest": "0" * 64, "revision": None, "error": None}]
    watch(site, checked_at=timezone.now(), managers=hosts)
    Rollout.objects.update(finished_at=timezone.now() - timedelta(hours=1))
    page = operator.get("/board/").content.decode()
    assert "another file on m1" in card(page, site.provider.servers[0], site.training.public_id)


def test_the_control_plane_alone_lights_half_a_lamp(site, operator):
    check(site, "ISOLATED")
    page = operator.get("/board/").content.decode()
    assert "b-half" in card(page, site.provider.servers[0], site.training.public_id)
    assert "Probed: control plane only." in page
    check(site, "ISOLATED", plane="DATA")
    page = operator.get("/board/").content.decode()
    assert "b-good" in card(page, site.provider.servers[0], site.training.public_id)


def test_the_search_counts_and_opens_what_it_found(site, operator):
    page = operator.get("/board/", {"q": "tenant:acme srv-00", "open": ""}).content.decode()
    assert 'data-found="3"' in page
    card(page, site.provider.servers[0], site.training.public_id)
    assert f'id="tile-{site.research.public_id}"' in page
    assert "0 <small>of 1</small>" in page
    wrong = operator.get("/board/", {"q": "colour:red"}).content.decode()
    assert "There is no colour: to search by." in wrong


def test_the_address_says_which_columns_are_open(site, operator):
    page = operator.get("/board/", {"open": site.training.public_id}).content.decode()
    assert f'id="cards-{site.training.public_id}"' in page
    assert f'id="tile-{site.inference.public_id}"' in page
    assert 'id="tile-unassigned"' in page
    closed = operator.get("/board/", {"open": ""}).content.decode()
    assert "<article" not in closed
    assert "<article" in operator.get("/board/", {"open": "all"}).content.decode()


def test_many_servers_go_in_one_request(site, operator):
    first, second = site.provider.servers[:2]
    PortConflict.objects.create(port=Port.objects.filter(hca__server=first).first(), claimed_by=second, claim={})
    fields = {
        "server": [first.public_id, second.public_id], "source": [site.training.public_id] * 2,
        "target": site.inference.public_id,
    }  # fmt: skip
    answer = operator.post(reverse("console:board_move"), fields, **JSON)
    assert answer.status_code == 200
    told = answer.json()
    assert told["sentence"] == (
        "1 server is staged to inference. 1 was refused: srv-001. Nothing has reached the fabric."
    )
    assert [one["server"] for one in told["refused"]] == [first.public_id]
    assert "is also claimed by srv-002" in told["refused"][0]["sentence"]
    assert set(StagedChange.objects.values_list("port__hca__server", flat=True)) == {second.pk}
    again = operator.post(reverse("console:board_move"), fields, **JSON)
    assert again.status_code == 409
    assert again.json()["sentence"].startswith("None of 2 servers is staged.")


@pytest.mark.parametrize("sources", [[], ["unassigned"], ["unassigned"] * 3])
def test_each_server_of_a_request_has_its_source(site, operator, sources):
    fields = {
        "server": [server.public_id for server in site.provider.servers[4:6]], "source": sources,
        "target": site.training.public_id,
    }  # fmt: skip
    assert operator.post(reverse("console:board_move"), fields, **JSON).status_code == 404
    twice = fields | {"server": [site.provider.servers[4].public_id] * 2, "source": ["unassigned"] * 2}
    assert operator.post(reverse("console:board_move"), twice, **JSON).status_code == 404


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
