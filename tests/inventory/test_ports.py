"""What the fabric shows is kept beside what servers say; a person's word confirms."""

from types import SimpleNamespace

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.errors import PortUnknown
from inventory.models import Port
from inventory.operations import confirm_port, confirm_ports, create_subnet, enrol_manager_host, record_seen
from subnet.guid import GUID
from tests.inventory.reports import GUID_A, GUID_B, OLGA, enrolled, port, registers

pytestmark = pytest.mark.django_db
LEAF = GUID("0x0002c90200000010")


def reading(guid, *, node_type="CA", said="read", leaf=(LEAF, 4), **changes):
    """A PortReading, as far as this room looks at it; it agrees with `tests.inventory.reports.port`."""
    end = None if leaf is None else SimpleNamespace(guid=leaf[0], port=leaf[1])
    values = {"node_guid": GUID(guid[:-1] + "0"), "lid": 7, "master_sm_lid": 1, "state": "ACTIVE", "description": ""}
    return SimpleNamespace(guid=GUID(guid), node_type=node_type, number=1, reading=said, leaf=end, **values | changes)


def test_a_seen_port_is_known_with_its_cable(subnet):
    at = timezone.now()
    assert record_seen(subnet=subnet, readings=[reading(GUID_A)], at=at) == 1
    row = Port.objects.get()
    assert (row.guid, row.hca, row.seen_at, row.leaf_guid, row.leaf_port) == (GUID_A, None, at, LEAF, 4)
    event = Event.objects.last()
    assert event.action == "inventory:port:seen"
    assert event.after["unregistered"] == {"count": 1, "ports": [GUID_A]}


def test_only_hca_ports_that_answered_were_seen(subnet):
    readings = [reading(GUID_A, said="unreadable"), reading(GUID_B, node_type="SW")]
    assert record_seen(subnet=subnet, readings=readings, at=timezone.now()) == 0
    assert not Port.objects.exists()


def test_seen_again_moves_the_time_and_records_nothing(subnet):
    record_seen(subnet=subnet, readings=[reading(GUID_A)], at=timezone.now())
    events, at = Event.objects.count(), timezone.now()
    record_seen(subnet=subnet, readings=[reading(GUID_A)], at=at)
    assert Port.objects.get().seen_at == at
    assert Event.objects.count() == events


def test_a_new_cable_is_news_and_a_reading_without_one_is_not(subnet):
    record_seen(subnet=subnet, readings=[reading(GUID_A)], at=timezone.now())
    record_seen(subnet=subnet, readings=[reading(GUID_A, leaf=None)], at=timezone.now())
    assert Port.objects.get().leaf_port == 4
    record_seen(subnet=subnet, readings=[reading(GUID_A, leaf=(LEAF, 9))], at=timezone.now())
    assert Port.objects.get().leaf_port == 9
    assert Event.objects.last().after["cabling"]["ports"] == {GUID_A: f"{LEAF}/9"}


def test_a_port_that_was_not_seen_keeps_its_time(subnet):
    first = timezone.now()
    record_seen(subnet=subnet, readings=[reading(GUID_A), reading(GUID_B)], at=first)
    record_seen(subnet=subnet, readings=[reading(GUID_A)], at=timezone.now())
    assert Port.objects.get(guid=GUID_B).seen_at == first


def test_a_port_of_another_subnet_stays_there(subnet):
    elsewhere = create_subnet(name="lab-2", actor=OLGA)
    record_seen(subnet=elsewhere, readings=[reading(GUID_A)], at=timezone.now())
    assert record_seen(subnet=subnet, readings=[reading(GUID_A)], at=timezone.now()) == 0
    assert Port.objects.get().subnet == elsewhere


def test_a_thousand_ports_cost_few_queries(subnet, django_assert_max_num_queries):
    readings = [reading(f"0x0002c903{number:08x}") for number in range(1, 1201)]
    record_seen(subnet=subnet, readings=readings, at=timezone.now())
    with django_assert_max_num_queries(8):
        record_seen(subnet=subnet, readings=readings, at=timezone.now())
    assert len(Event.objects.last().after["unregistered"]["ports"]) == 100


def test_a_person_confirms_and_it_is_recorded(subnet):
    registers(enrolled(subnet)[0], port(GUID_A))
    confirm_port(port=Port.objects.get(), actor=OLGA, reason="label read at the rack")
    assert Port.objects.get().confirmed_how == "person"
    assert Port.objects.candidates().count() == 1
    event = Event.objects.last()
    assert (event.action, event.actor_name, event.reason) == (
        "inventory:port:confirm",
        "Olga",
        "label read at the rack",
    )
    assert confirm_ports(ports=[Port.objects.get()], actor=OLGA) == 0


def test_ports_that_cannot_be_in_a_partition_are_not_confirmed(subnet):
    server = enrolled(subnet)[0]
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    registers(server, port(GUID_A, link_layer="Ethernet", port_guid=None), port(GUID_B, device="mlx5_1"))
    with pytest.raises(PortUnknown, match="speaks Ethernet"):
        confirm_ports(ports=list(Port.objects.all()), actor=OLGA)
    assert not Port.objects.exclude(confirmed_at=None).exists()
    enrol_manager_host(
        subnet=subnet, name="ufm-a", address="127.0.0.1", ssh_port=22, ssh_user="root",
        host_key="ssh-ed25519 " + "A" * 68, port_guid=GUID_B, wrapper_digest="a" * 64, reader_digest="b" * 64,
        actor=OLGA,
    )  # fmt: skip
    with pytest.raises(PortUnknown, match="runs the SM of ufm-a"):
        confirm_port(port=Port.objects.get(guid=GUID_B), actor=OLGA)
