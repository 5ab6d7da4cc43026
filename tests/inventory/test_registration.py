"""A report registers what is the server's own, changes what changed, and takes nothing from anybody."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.models import Event
from inventory import agent
from inventory.models import HCA, Port, PortConflict, Server
from inventory.operations import confirm_port, create_subnet, enrol_manager_host, move_card, record_seen, reject_claim
from tests.inventory.reports import GUID_A, GUID_B, OLGA, enrolled, outcomes, port, registers
from tests.inventory.trees import DATA, case, materialise

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(subnet):
    return enrolled(subnet)[0]


@pytest.fixture
def other(subnet):
    return enrolled(subnet, "srv-002")[0]


def booted(server, name, tmp_path):
    """What becomes of the tree of a case, reported by the real agent's reader."""
    top = materialise(case(name), tmp_path / name)
    report = agent.read_report(str(top), {"hostname": server.hostname, "boot_id": "boot-1", "machine_id": None})
    from inventory.operations import register_report
    from inventory.report import parse_report

    return register_report(server=server, report=parse_report(report))


def test_a_new_port_is_stored_unconfirmed(server):
    receipt = registers(server, port(GUID_A))
    row = Port.objects.get()
    assert outcomes(receipt) == ["new"]
    assert (str(row.guid), row.server, row.hca.device, row.lid) == (GUID_A, server, "mlx5_0", 7)
    assert row.confirmed_at is None
    assert not Port.objects.candidates().exists()
    assert Event.objects.last().action == "inventory:server:register"


def test_an_enrolled_servers_port_is_confirmed_where_the_site_says_so(server, enrolled_trust):
    receipt = registers(server, port(GUID_A))
    assert receipt.outcomes[0].is_confirmed
    assert Port.objects.get().confirmed_how == "enrolled"
    assert Port.objects.candidates().count() == 1


def test_an_unchanged_report_writes_when_it_came_and_nothing_else(server):
    registers(server, port(GUID_A), port(GUID_B, port=2))
    before, events = Server.objects.values().get(pk=server.pk), Event.objects.count()
    rows = list(Port.objects.values()), list(HCA.objects.values())
    with CaptureQueriesContext(
        connection,
    ) as queries:
        receipt = registers(server, port(GUID_A), port(GUID_B, port=2))
    after = Server.objects.values().get(pk=server.pk)
    writes = [query["sql"] for query in queries if query["sql"].split()[0] in {"INSERT", "UPDATE", "DELETE"}]
    assert outcomes(receipt) == ["unchanged", "unchanged"]
    assert {name for name in before if before[name] != after[name]} == {"reported_at"}
    assert len(writes) == 1
    assert 'SET "reported_at"' in writes[0]
    assert (list(Port.objects.values()), list(HCA.objects.values())) == rows
    assert Event.objects.count() == events


def test_a_report_costs_the_same_whatever_the_inventory_holds(server, subnet):
    ports = [port(f"0x0002c903000{number}0001", device=f"mlx5_{number}") for number in range(8)]
    registers(server, *ports)
    with CaptureQueriesContext(connection) as few:
        registers(server, *ports)
    for number in range(3, 12):
        registers(enrolled(subnet, f"srv-{number:03}")[0], port(f"0x0002c90400{number:02}0001"))
    with CaptureQueriesContext(connection) as many:
        registers(server, *ports)
    assert len(few) == len(many) <= 10


def test_what_changed_is_in_the_trail(server):
    registers(server, port(GUID_A))
    receipt = registers(server, port(GUID_A, state="DOWN", lid=None), boot_id="boot-2")
    event = Event.objects.last()
    assert outcomes(receipt) == ["changed"]
    assert event.action == "inventory:server:report-changed"
    assert (event.actor_kind, event.actor_key, event.subject_label) == ("SERVER", server.public_id, "srv-001")
    assert event.before == {GUID_A: {"state": "ACTIVE", "lid": 7}, "boot_id": "boot-1"}
    assert event.after["boot_id"] == "boot-2"
    assert event.after[GUID_A] == {"state": "DOWN", "lid": None}


def test_a_renamed_device_keeps_its_rows(server):
    registers(server, port(GUID_A))
    row = Port.objects.get()
    registers(server, port(GUID_A, device="ibp65s0"))
    assert Port.objects.get().pk == row.pk
    assert HCA.objects.get().device == "ibp65s0"


def test_two_ports_of_one_hca_share_it(server):
    node = {"node_guid": "0x0002c90300010000"}
    registers(server, port(GUID_A, **node), port("0x0002c90300010002", port=2, **node))
    assert HCA.objects.get().ports.count() == 2


def test_an_unreadable_node_guid_costs_no_port(server):
    assert outcomes(registers(server, port(GUID_A, node_guid=None))) == ["new"]
    assert outcomes(registers(server, port(GUID_A))) == ["changed"]
    assert str(HCA.objects.get().node_guid) == GUID_A[:-1] + "0"


# --- who a GUID belongs to -------------------------------------------------------------------------------------------


def test_a_spoofed_guid_is_a_conflict_and_moves_nothing(server, other, enrolled_trust):
    registers(server, port(GUID_A))
    before = Port.objects.values().get()
    receipt = registers(other, port(GUID_A.replace("c9", "C9")))
    assert outcomes(receipt) == ["conflict"]
    assert Port.objects.values().get() == before
    conflict = PortConflict.objects.get()
    assert (conflict.port_id, conflict.claimed_by, conflict.closed_at) == (before["id"], other, None)
    event = Event.objects.last()
    assert (event.action, event.subject_key) == ("inventory:port:conflict", GUID_A)
    assert event.after["claimed_by"] == other.public_id


def test_a_spoofer_with_an_hca_of_its_own_is_found_as_well(server, other):
    registers(server, port(GUID_A))
    assert outcomes(registers(other, port(GUID_A, node_guid="0x0002c903000f0000"))) == ["conflict"]
    assert Port.objects.get().server == server
    assert not HCA.objects.filter(server=other).exists()


def test_a_repeated_claim_opens_no_second_conflict(server, other):
    registers(server, port(GUID_A))
    registers(other, port(GUID_A))
    events = Event.objects.count()
    assert outcomes(registers(other, port(GUID_A))) == ["conflict"]
    assert (PortConflict.objects.count(), Event.objects.count()) == (1, events)


def test_a_claim_that_was_rejected_stops_nobody_again(server, other):
    registers(server, port(GUID_A))
    registers(other, port(GUID_A))
    conflict = PortConflict.objects.get()
    reject_claim(conflict=conflict, actor=OLGA, reason="looked at both machines")
    reject_claim(conflict=conflict, actor=OLGA)
    decided = Event.objects.filter(action="inventory:port:conflict-decide")
    assert [event.subject_key for event in decided] == [GUID_A]
    assert outcomes(registers(other, port(GUID_A))) == ["conflict"]
    assert not PortConflict.objects.filter(closed_at=None).exists()
    assert Port.objects.get().server == server


def test_b14_two_hosts_one_guid(subnet, enrolled_trust):
    """Nothing moves by a report, whatever the spelling; a card that really moved takes a person's word."""
    expected = json.loads((DATA / "B14.expected.json").read_text())
    first, second = json.loads((DATA / "B14-two-hosts-one-guid.registrations.json").read_text())
    a, b = enrolled(subnet, first["hostname"])[0], enrolled(subnet, second["hostname"])[0]
    told = [registers(a, port(None, **first["ports"][0])), registers(b, port(None, **second["ports"][0]))]
    assert [one.to_json()["ports"] for one in told] == expected["answers"]
    assert _standing() == expected["port"]
    conflict = PortConflict.objects.get()
    evidence = conflict.evidence
    assert {
        "claimed_by": conflict.claimed_by.hostname,
        "decision": conflict.decision,
        "holder": [evidence["holder"]["hostname"], evidence["holder"]["port"]["port_guid"]],
        "claimant": [evidence["claimant"]["hostname"], evidence["claimant"]["port"]["port_guid"]],
        "hints": evidence["hints"],
    } == expected["conflict"]
    registers(a, boot_id="boot-2")  # its card is gone, and it says so
    assert _standing() == expected["port"] | {"missing": True}
    move_card(conflict=conflict, actor=OLGA, reason="seen in node14b")
    assert _standing() == expected["moved"]


def _standing():
    row = Port.objects.get()
    return {
        "guid": row.guid,
        "server": row.server.hostname,
        "lid": row.lid,
        "state": row.state,
        "confirmed": row.confirmed_how,
        "missing": row.missing_since is not None,
    }


def test_another_servers_hca_is_a_conflict_too(server, other):
    registers(server, port(GUID_A))
    receipt = registers(other, port("0x0002c90300010002", node_guid=GUID_A[:-1] + "0"))
    assert outcomes(receipt) == ["conflict"]
    assert Port.objects.count() == 1
    assert PortConflict.objects.get().port.guid == GUID_A


def test_a_manager_hosts_port_cannot_be_claimed(server, subnet, enrolled_trust):
    enrol_manager_host(
        subnet=subnet, name="ufm-a", address="127.0.0.1", ssh_port=22, ssh_user="root",
        host_key="ssh-ed25519 " + "A" * 68, port_guid=GUID_A, wrapper_digest="a" * 64, reader_digest="b" * 64,
        actor=OLGA,
    )  # fmt: skip
    assert outcomes(registers(server, port(GUID_A))) == ["conflict"]
    assert Port.objects.get().hca is None
    assert not Port.objects.candidates().exists()


def test_a_port_seen_in_another_subnet_is_a_conflict(server):
    elsewhere = create_subnet(name="lab-2", actor=OLGA)
    Port.objects.create(subnet=elsewhere, guid=GUID_A, seen_at=timezone.now())
    assert outcomes(registers(server, port(GUID_A))) == ["conflict"]
    assert Port.objects.get().hca is None


def test_one_guid_twice_in_a_report_is_stored_for_neither(server):
    receipt = registers(server, port(GUID_A), port(GUID_A, device="mlx5_1"))
    assert outcomes(receipt) == ["duplicate", "duplicate"]
    assert not Port.objects.exists()


def test_a_port_that_was_only_seen_becomes_its_servers(server, subnet):
    row = Port.objects.create(subnet=subnet, guid=GUID_A, seen_at=timezone.now())
    assert outcomes(registers(server, port(GUID_A))) == ["new"]
    assert (Port.objects.get().pk, Port.objects.get().server) == (row.pk, server)


def test_a_server_keeps_the_name_it_enrolled_under(server, other):
    receipt = registers(server, port(GUID_A), hostname="srv-002")
    assert receipt.sentence == "The server reports as srv-002; here it stays srv-001, as enrolled."
    assert Server.objects.get(pk=server.pk).hostname == "srv-001"
    assert Port.objects.get().server == server


# --- what is not reported, and what is no port -----------------------------------------------------------------------


def test_a_missing_port_is_noted_and_stays(server, enrolled_trust):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    receipt = registers(server, port(GUID_A))
    missing = Port.objects.get(guid=GUID_B)
    assert receipt.not_reported == (GUID_B,)
    assert missing.missing_since is not None
    assert missing.server == server
    assert missing in Port.objects.candidates()
    since = missing.missing_since
    assert not registers(server, port(GUID_A)).is_changed
    assert Port.objects.get(guid=GUID_B).missing_since == since
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    assert Port.objects.get(guid=GUID_B).missing_since is None


def test_a_port_whose_guid_cannot_be_read_now_is_not_missing(server):
    registers(server, port(GUID_A))
    receipt = registers(server, port(GUID_A, port_guid=None))
    assert outcomes(receipt) == ["no_guid"]
    assert receipt.not_reported == ()
    assert Port.objects.get().missing_since is None


def test_a_port_switched_to_ethernet_is_no_candidate_and_comes_back(server, enrolled_trust):
    registers(server, port(GUID_A))
    assert outcomes(registers(server, port(GUID_A, link_layer="Ethernet", port_guid=None))) == ["ethernet"]
    assert Port.objects.get().link_layer == Port.LinkLayer.ETHERNET
    assert not Port.objects.candidates().exists()
    registers(server, port(GUID_A))
    assert Port.objects.candidates().count() == 1


def test_two_zero_guids_of_ethernet_ports_do_not_collide(server, other):
    for each in (server, other):
        receipt = registers(each, port("0x0000000000000000", link_layer="Ethernet", node_guid=None))
        assert outcomes(receipt) == ["ethernet"]
    assert outcomes(registers(server, port("0x0000000000000000", node_guid=None))) == ["no_guid"]
    assert not Port.objects.exists()


# --- the cases -------------------------------------------------------------------------------------------------------


def test_b01_one_guid_for_port_node_and_system(server, tmp_path):
    assert outcomes(booted(server, "B01", tmp_path)) == ["new"]
    row = Port.objects.get()
    assert row.guid == row.hca.node_guid == row.hca.system_image_guid == "0x0210fa0300b10000"


def test_b02_the_ethernet_port_is_listed_and_not_stored(server, tmp_path):
    assert outcomes(booted(server, "B02", tmp_path)) == ["new", "ethernet"]
    row = Port.objects.get()
    assert (row.guid, row.state, row.phys_state) == ("0x0210fa0300b20001", "DOWN", "Polling")
    assert (row.rate_text, row.rate_gbps) == ("10 Gb/sec (4X)", 10.0)
    assert [one["link_layer"] for one in Server.objects.get().report["ports"]] == ["InfiniBand", "Ethernet"]


def test_b07_three_infiniband_ports_whatever_they_are_called(server, tmp_path):
    assert sorted(outcomes(booted(server, "B07", tmp_path))) == ["ethernet", "new", "new", "new"]
    assert Port.objects.count() == 3


def test_b10_an_unreadable_rate_is_unknown_for_that_port_only(server, tmp_path):
    booted(server, "B10", tmp_path)
    rates = dict(Port.objects.values_list("guid", "rate_gbps"))
    assert rates == {"0x0210fa0300ba0000": None, "0x0210fa0300ba0001": 10.0, "0x0210fa0300ba0002": 400.0}


def test_b30_no_subnet_manager_is_said_and_odd_lids_are_not_stored(server, tmp_path):
    receipt = booted(server, "B30", tmp_path)
    assert outcomes(receipt) == ["new", "new", "new"]
    assert receipt.outcomes[0].sentence == "The port knows no subnet manager."
    assert list(Port.objects.order_by("guid").values_list("lid", flat=True)) == [None, 0x44, None]


def test_b32_no_devices_removes_nothing(server, tmp_path, enrolled_trust):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    receipt = booted(server, "B32", tmp_path)
    assert receipt.not_reported == (GUID_A, GUID_B)
    assert receipt.sentence.startswith("no devices: ")
    assert Port.objects.filter(missing_since__isnull=False, hca__server=server).count() == 2
    assert Port.objects.candidates().count() == 2


def test_b35_a_port_of_another_fabric_is_no_candidate(server, tmp_path, enrolled_trust):
    receipt = booted(server, "B35", tmp_path)
    assert outcomes(receipt) == ["new", "new"]
    assert "in another subnet (prefix 0xfec0000000000002)" in receipt.outcomes[1].sentence
    assert [port.guid for port in Port.objects.candidates()] == ["0x0210fa0300d30000"]
    assert set(Port.objects.values_list("lid", flat=True)) == {0x21}
    away = Port.objects.get(guid="0x0210fa0300d30001")
    assert away.confirmed_at is None
    confirm_port(port=away, actor=OLGA)
    assert away not in Port.objects.candidates()


def test_nothing_is_recorded_of_a_registration_that_failed(server, monkeypatch):
    from inventory.operations import reports

    monkeypatch.setattr(reports, "record_all", lambda drafts: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        registers(server, port(GUID_A))
    assert not Port.objects.exists()


def test_seen_and_registered_meet_on_one_row(server, subnet):
    from tests.inventory.test_ports import reading

    registers(server, port(GUID_A))
    record_seen(subnet=subnet, readings=[reading(GUID_A)], at=timezone.now() + timedelta(seconds=1))
    row = Port.objects.get()
    assert (row.server, row.leaf_port) == (server, 4)
