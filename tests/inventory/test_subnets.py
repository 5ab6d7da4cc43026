"""How far FabricUI may go in a subnet, and which machines run its SMs, is a person's recorded decision."""

import pytest

from audit.models import Event
from inventory.errors import AlreadyThere, InventoryError, NotQualified
from inventory.models import ManagerHost, Port, Subnet
from inventory.operations import (
    create_subnet,
    enrol_manager_host,
    freeze,
    repin_manager_host,
    retire_manager_host,
    set_mode,
    unfreeze,
)
from subnet.errors import InvalidGUID
from tests.inventory.reports import GUID_A, GUID_B, OLGA, enrolled, everything, port, registers
from tests.qualified import qualify

pytestmark = pytest.mark.django_db

HOST = {
    "name": "ufm-a", "address": "192.0.2.1", "ssh_port": 22, "ssh_user": "fabricui",
    "host_key": "ssh-ed25519 " + "A" * 68 + " root@ufm-a", "port_guid": GUID_A,
    "wrapper_digest": "a" * 64, "reader_digest": "b" * 64,
}  # fmt: skip


def test_a_subnet_begins_in_observe(subnet):
    assert (subnet.mode, subnet.frozen_at, Subnet.objects.get().prefix) == ("OBSERVE", None, "0xfe80000000000000")
    assert Event.objects.last().action == "inventory:subnet:create"


@pytest.mark.parametrize("name", ["", "two words", "x" * 41, "-lab", "lab\n", "läb"])
def test_a_name_the_file_cannot_hold_is_refused(name, db):
    with pytest.raises(InventoryError):
        create_subnet(name=name, actor=OLGA)


def test_a_name_stands_for_one_subnet(subnet):
    with pytest.raises(AlreadyThere):
        create_subnet(name="lab", actor=OLGA)


def test_write_needs_that_no_guard_speaks_against_it(subnet, monkeypatch):
    monkeypatch.setattr("inventory.guards._before_write", [lambda subnet: "", lambda subnet: f"Not {subnet}."])
    before = everything()
    with pytest.raises(NotQualified, match=r"^Not lab\.$"):
        set_mode(subnet=subnet, mode="WRITE", actor=OLGA)
    assert everything() == before
    set_mode(subnet=subnet, mode="PROPOSE", actor=OLGA)  # which places nothing


def test_the_guard_of_the_house_asks_for_a_signed_report(subnet):
    with pytest.raises(NotQualified, match=r"manage\.py qualify lab"):
        set_mode(subnet=subnet, mode="WRITE", actor=OLGA)
    qualify(subnet)
    set_mode(subnet=subnet, mode="WRITE", actor=OLGA)
    assert subnet.mode == Subnet.objects.get().mode == "WRITE"
    set_mode(subnet=subnet, mode="OBSERVE", actor=OLGA)
    set_mode(subnet=subnet, mode="WRITE", actor=OLGA)
    event = Event.objects.last()
    assert (event.before, event.after) == ({"mode": "OBSERVE"}, {"mode": "WRITE"})


def test_there_are_three_modes(subnet):
    with pytest.raises(InventoryError, match="OBSERVE, PROPOSE, WRITE"):
        set_mode(subnet=subnet, mode="ADMIN", actor=OLGA)


def test_a_freeze_has_a_reason_and_an_end(subnet):
    with pytest.raises(InventoryError):
        freeze(subnet=subnet, actor=OLGA, reason=" ")
    freeze(subnet=subnet, actor=OLGA, reason="maintenance of the spine")
    assert Subnet.objects.get().frozen_reason == subnet.frozen_reason == "maintenance of the spine"
    freeze(subnet=subnet, actor=OLGA, reason="again")
    unfreeze(subnet=subnet, actor=OLGA)
    assert subnet.frozen_at is None
    unfreeze(subnet=subnet, actor=OLGA)
    actions = [action for action in Event.objects.values_list("action", flat=True) if "freeze" in action]
    assert actions == ["inventory:subnet:freeze", "inventory:subnet:unfreeze"]


def test_a_manager_host_is_pinned_and_its_port_taken_off_the_board(subnet):
    host = enrol_manager_host(subnet=subnet, actor=OLGA, **HOST)
    assert host.host_key == "ssh-ed25519 " + "A" * 68
    assert Port.objects.get().guid == GUID_A
    assert Event.objects.last().after["wrapper_digest"] == "a" * 64


def test_a_port_that_runs_an_sm_is_no_candidate_even_when_confirmed(subnet, enrolled_trust):
    registers(enrolled(subnet)[0], port(GUID_A))
    assert Port.objects.candidates().count() == 1
    enrol_manager_host(subnet=subnet, actor=OLGA, **HOST)
    assert not Port.objects.candidates().exists()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "ufm a"}, {"address": "-oProxyCommand=x"}, {"address": ""}, {"ssh_port": 0}, {"ssh_user": "-l"},
        {"host_key": "ssh-rsa " + "A" * 68},
        {"host_key": "ecdsa-sha2-nistp256 " + "A" * 140}, {"host_key": "AAAA"},
        {"wrapper_digest": "a"}, {"reader_digest": "A" * 64},
    ],
)  # fmt: skip
def test_a_malformed_pin_is_refused(subnet, change):
    with pytest.raises(InventoryError):
        enrol_manager_host(subnet=subnet, actor=OLGA, **HOST | change)
    assert not ManagerHost.objects.exists()


def test_an_unknown_spelling_of_a_guid_is_refused(subnet):
    with pytest.raises(InvalidGUID):
        enrol_manager_host(subnet=subnet, actor=OLGA, **HOST | {"port_guid": "20903"})


@pytest.mark.parametrize("change", [{"name": "ufm-b"}, {"port_guid": GUID_B}])
def test_a_name_and_a_port_stand_for_one_manager_host(subnet, change):
    enrol_manager_host(subnet=subnet, actor=OLGA, **HOST)
    with pytest.raises(AlreadyThere):
        enrol_manager_host(subnet=subnet, actor=OLGA, **HOST | change)


def test_a_host_is_pinned_anew_with_a_reason_only(subnet):
    host = enrol_manager_host(subnet=subnet, actor=OLGA, **HOST)
    new = {"host_key": "ssh-ed25519 " + "B" * 68, "wrapper_digest": "c" * 64, "reader_digest": "d" * 64}
    with pytest.raises(InventoryError):
        repin_manager_host(manager_host=host, actor=OLGA, reason="", **new)
    repin_manager_host(manager_host=host, actor=OLGA, reason="upgraded", **new)
    event = Event.objects.last()
    assert (event.before["wrapper_digest"], event.after["wrapper_digest"]) == ("a" * 64, "c" * 64)


def test_who_sees_servers(subnet, olga, ada, charlie, alice):
    from django.contrib.auth.models import AnonymousUser

    from inventory.models import Server

    enrolled(subnet)
    seen = {str(who): Server.objects.visible_to(who).count() for who in (olga, ada, charlie, alice, AnonymousUser())}
    assert seen == {"Olga": 1, "Ada": 1, "Charlie": 0, "Alice": 0, "AnonymousUser": 0}
    olga.is_active = False
    assert not Server.objects.visible_to(olga).exists()


def test_a_retired_manager_host_is_asked_no_more_and_its_name_is_free(subnet):
    first = enrol_manager_host(subnet=subnet, **HOST, actor=OLGA)
    retire_manager_host(manager_host=first, actor=OLGA, reason="the machine burned")
    assert not ManagerHost.objects.exists()
    assert ManagerHost.with_retired.get().retired_at is not None
    assert not subnet.manager_hosts.exists()
    event = Event.objects.last()
    assert (event.action, event.reason) == ("inventory:manager-host:retire", "the machine burned")
    again = enrol_manager_host(subnet=subnet, **HOST, actor=OLGA)
    assert ManagerHost.objects.get() == again


def test_a_retirement_needs_a_reason_happens_once_and_may_be_refused(subnet, monkeypatch):
    host = enrol_manager_host(subnet=subnet, **HOST, actor=OLGA)
    before = everything()
    with pytest.raises(InventoryError, match="reason"):
        retire_manager_host(manager_host=host, actor=OLGA, reason=" ")
    monkeypatch.setattr("inventory.guards._before_retirement", [lambda host: f"A rollout works with {host}."])
    with pytest.raises(InventoryError, match="A rollout works with ufm-a"):
        retire_manager_host(manager_host=host, actor=OLGA, reason="old")
    assert everything() == before
    monkeypatch.setattr("inventory.guards._before_retirement", [])
    retire_manager_host(manager_host=host, actor=OLGA, reason="old")
    with pytest.raises(InventoryError, match="already"):
        retire_manager_host(manager_host=host, actor=OLGA, reason="old")
