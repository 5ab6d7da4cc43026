"""Servers, managers, partitions and the trail: with data, empty, and when something is wrong."""

import html
import re
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.urls import reverse
from django.utils import timezone

from deploy.models import Observation, Revision
from inventory.models import ManagerHost, Port, PortConflict, Subnet
from partitions.models import Partition

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def empty(db, olga, client_of):
    """Olga's browser on a subnet that has nothing."""
    Subnet.objects.create(name="lab")
    return client_of(olga)


# --- servers ------------------------------------------------------------------------------------------------------


def test_the_list_of_servers_is_filtered_by_the_address(site, operator):
    servers = site.provider.servers
    Port.objects.filter(hca__server=servers[4]).update(confirmed_at=None)
    everything = operator.get("/servers/").content.decode()
    assert "6 of 6 servers" in everything
    assert "training" in everything
    one = operator.get("/servers/?q=srv-003").content.decode()
    assert "srv-003" in one
    assert "srv-004" not in one
    by_guid = operator.get("/servers/?q=0x0002C90400000211").content.decode()
    assert "srv-002" in by_guid
    assert "2 of 2 active" in by_guid
    assert "srv-002" in operator.get("/servers/?q=400000211").content.decode()
    unconfirmed = operator.get("/servers/?q=trust:unconfirmed").content.decode()
    assert "srv-005" in unconfirmed
    assert "1 of 6 servers" in unconfirmed
    assert "No server matches" in operator.get("/servers/?q=nobody").content.decode()


def test_a_search_longer_than_any_name_finds_nothing(site, operator):
    """SQLite refuses to match a pattern of more than 50,000 bytes."""
    assert operator.get("/servers/?q=" + "a" * 60_000).context["rows"] == []


def test_the_list_of_servers_costs_the_same_queries_whatever_its_size(site, operator, django_assert_max_num_queries):
    with django_assert_max_num_queries(14) as small:
        operator.get("/servers/")
    for number in range(10, 40):
        site.provider.server(number)
    with django_assert_max_num_queries(14) as large:
        operator.get("/servers/")
    assert len(small) == len(large)


def test_no_server_yet_says_how_one_enrols(empty):
    assert "No server has registered" in empty.get("/servers/").content.decode()


def test_a_server_shows_what_the_fabric_holds(site, operator):
    server = site.provider.servers[0]
    address = reverse("console:server", args=[server.public_id])
    site.provider.observe()
    text = operator.get(address).content.decode()
    assert "In training." in text
    assert "0x0002c90400000101" in text
    assert "0xac41" in text
    assert "400 Gb/sec (4X NDR)" in text
    assert "active" in text


def test_a_port_that_was_never_read_is_not_drawn_as_known(site, operator):
    Observation.objects.update(tables=None)
    address = reverse("console:server", args=[site.provider.servers[0].public_id])
    assert "not read" in operator.get(address).content.decode()


def test_an_unconfirmed_port_is_confirmed_by_a_person(site, operator):
    server = site.provider.servers[4]
    port = Port.objects.filter(hca__server=server).first()
    Port.objects.filter(pk=port.pk).update(confirmed_at=None)
    address = reverse("console:server", args=[server.public_id])
    assert "An unconfirmed port cannot be staged." in operator.get(address).content.decode()
    answer = operator.post(reverse("console:port_confirm", args=[port.guid]), follow=True)
    assert f"Port {port.guid} is confirmed" in answer.content.decode()
    port.refresh_from_db()
    assert port.confirmed_how == "person"


def test_a_conflict_is_told_on_both_servers(site, operator):
    owner, claimant = site.provider.servers[4:6]
    port = Port.objects.filter(hca__server=owner).first()
    PortConflict.objects.create(port=port, claimed_by=claimant, claim={})
    for server in (owner, claimant):
        text = operator.get(reverse("console:server", args=[server.public_id])).content.decode()
        assert f"{claimant.hostname} reports port <code>{port.guid}</code>" in text
        assert server.hostname in operator.get("/servers/?q=trust:conflict").content.decode()


def test_a_wrong_claim_is_rejected_on_the_page_and_the_server_moves_again(site, operator):
    owner, claimant = site.provider.servers[4:6]
    conflict = PortConflict.objects.create(
        port=Port.objects.filter(hca__server=owner).first(), claimed_by=claimant, claim={}
    )
    move = {"server": owner.public_id, "source": "unassigned", "target": site.training.public_id}
    assert "is also claimed by" in operator.post(reverse("console:board_move"), move, follow=True).content.decode()
    answer = operator.post(reverse("console:conflict_decide", args=[conflict.pk, "reject"]), follow=True)
    assert f"The claim of {claimant} to port {conflict.port.guid} is rejected." in answer.content.decode()
    assert "is staged to" in operator.post(reverse("console:board_move"), move, follow=True).content.decode()


def test_what_is_staged_for_a_server_is_listed_and_discarded(site, operator):
    server = site.provider.servers[0]
    site.provider.move(server, site.training, site.inference)
    address = reverse("console:server", args=[server.public_id])
    assert "not in it to full" in operator.get(address).content.decode()
    operator.post(reverse("console:board_discard"), {"server": server.public_id})
    assert "Nothing is staged for this server." in operator.get(address).content.decode()


def test_a_server_that_is_not_there_is_not_found(site, operator):
    assert operator.get(reverse("console:server", args=["nonsense"])).status_code == 404
    assert operator.post(reverse("console:port_confirm", args=["nonsense"])).status_code == 404


# --- managers -----------------------------------------------------------------------------------------------------


def test_managers_show_role_and_file_beside_the_current_revision(site, operator):
    observation = site.provider.observe()
    current = Revision.objects.latest("pk")
    observation.managers = [
        {"host": "m1", "digest": current.digest, "revision": current.number, "role": "MASTER", "error": None},
        {
            "host": "m2", "digest": "f" * 64, "revision": None, "role": "STANDBY", "error": None,
            "problems": ["Manager host m2: OpenSM shares the dump folder."],
        },
    ]  # fmt: skip
    observation.save()
    text = operator.get("/managers/").content.decode()
    assert "master" in text
    assert "standby" in text
    assert "current" in text
    assert "differs" in text
    assert "none of ours" in text
    assert "Manager host m2: OpenSM shares the dump folder." in text


def test_a_host_that_was_not_reached_is_unknown_not_good(site, operator):
    observation = site.provider.observe()
    observation.managers = [
        {"host": "m1", "digest": "", "revision": None, "role": "", "error": "m1 cannot be reached. Start its sshd."}
    ]
    observation.census = [{"guid": "0x0002c903000c0001", "state": "MASTER", "priority": 15, "registered": False}]
    observation.save()
    text = operator.get("/managers/").content.decode()
    assert "m1 cannot be reached. Start its sshd." in text
    assert text.count(">unknown</span>") >= 4
    assert "A subnet manager that is not registered runs on port <code>0x0002c903000c0001</code>" in text


def test_a_look_is_asked_for_and_awaited(site, operator):
    answer = operator.post(reverse("console:managers_look"), follow=True)
    assert Observation.objects.filter(state="REQUESTED", why="check").count() == 1
    assert 'hx-trigger="every 1s, refresh"' in answer.content.decode()
    Observation.objects.filter(state="REQUESTED").update(
        state="FAILED", failure="No manager host answered.", finished_at=timezone.now()
    )
    text = operator.get("/managers/", HTTP_HX_REQUEST="true").content.decode()
    assert "No manager host answered." in text
    assert 'hx-trigger="every 30s, refresh"' in text


def test_no_manager_host_says_how_to_add_one(empty):
    text = empty.get("/managers/").content.decode()
    assert "No manager host" in text
    assert "--authorized-key" in text
    assert not ManagerHost.objects.exists()


# --- partitions ---------------------------------------------------------------------------------------------------


def test_partitions_show_their_keys_and_counts(site, operator):
    text = operator.get("/partitions/").content.decode()
    for word in ("training", "0x2c41", "Acme", "storage", "0x0100", "Provider"):
        assert word in text


def test_a_partition_is_created_with_a_key_drawn_or_named(site, operator):
    tenant = site.provider.acme.pk
    answer = operator.post("/partitions/", {"tenant": tenant, "name": "eval", "pkey": ""}, follow=True)
    assert "Partition eval has P_Key 0x" in answer.content.decode()
    operator.post("/partitions/", {"tenant": "", "name": "monitoring", "pkey": "0x0200"})
    made = Partition.objects.get(name="monitoring")
    assert (made.pkey, made.tenant) == (0x0200, None)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "9lives"}, "cannot be a partition name"),
        ({"name": "training"}, "training"),
        ({"name": "eval", "pkey": "0x7fff"}, "reserved"),
        ({"name": "eval", "pkey": "0xffff"}, "reserved"),
        ({"name": "eval", "pkey": "0x8001"}, "Write 0x0001 if that"),
        ({"name": "eval", "pkey": "2c41"}, "is not a P_Key"),
        ({"name": "eval", "pkey": "0x2c41"}, "is used by partition training"),
        ({"name": ""}, "required"),
        ({"name": "eval", "tenant": "999999"}, "valid choice"),
    ],
)
def test_what_cannot_be_created_is_said_beside_the_form(site, operator, fields, told):
    before = Partition.objects.count()
    answer = operator.post("/partitions/", {"tenant": "", "pkey": ""} | fields)
    assert answer.status_code == 422
    assert told in answer.content.decode()
    assert Partition.objects.count() == before


def test_no_partition_yet_says_what_to_do(empty):
    assert "No partition yet" in empty.get("/partitions/").content.decode()


# --- errors -------------------------------------------------------------------------------------------------------


def test_error_pages_say_what_still_stands(site, operator, monkeypatch):
    assert "There is nothing here" in operator.get("/nonsense/").content.decode()
    monkeypatch.setattr("console.views.board.read_board", lambda **_: 1 / 0)
    operator.raise_request_exception = False
    answer = operator.get("/board/")
    text = answer.content.decode()
    assert answer.status_code == 500
    assert "Something broke on our side" in text
    assert answer.headers["X-Request-ID"] in text


def test_a_form_without_its_token_is_explained(site):
    from django.test import Client

    browser = Client(enforce_csrf_checks=True)
    browser.force_login(site.provider.olga, backend="allauth.account.auth_backends.AuthenticationBackend")
    answer = browser.post("/partitions/", {"name": "eval"})
    assert answer.status_code == 403
    assert "The form was too old" in answer.content.decode()


@pytest.mark.parametrize(("theme", "attribute"), [("AUTO", "auto"), ("LIGHT", "light"), ("DARK", "dark")])
def test_the_server_sets_the_theme(site, operator, theme, attribute):
    operator.post(reverse("set_theme"), {"theme": theme, "next": "/board/"})
    assert f'data-bs-theme="{attribute}"' in operator.get("/board/").content.decode()


# --- what pages tell people to type -----------------------------------------------------------------------------------


def test_the_commands_that_empty_pages_name_exist(empty, client_of, olga):
    """A page that tells people to run something that is not there is worse than an empty one."""
    text = " ".join(html.unescape(empty.get(page).content.decode()) for page in ("/servers/", "/managers/"))
    Subnet.objects.all().delete()
    text += html.unescape(client_of(olga).get("/").content.decode())
    commands = re.findall(r"\./run manage ([a-z_]+)([^<]*)", text)
    assert {name for name, _ in commands} == {"enrolment_token", "enrol_manager_host", "create_subnet"}
    for name, rest in commands:
        command = load_command_class("inventory", name)
        known = {option for action in command.create_parser("x", name)._actions for option in action.option_strings}
        assert set(re.findall(r"(--[a-z-]+)", rest.split("#")[0])) <= known, name
    agent = (ROOT / "inventory" / "agent.py").read_text()
    installer = (ROOT / "remote" / "host" / "install").read_text()
    for option in re.findall(r"(--[a-z-]+)", text.split("agent.py")[1].split("</pre>")[0]):
        assert f'"{option}"' in agent
    for option in re.findall(r"(--[a-z-]+)", text.split("./install")[1].split("</pre>")[0]):
        assert option in installer
