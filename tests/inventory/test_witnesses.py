"""Both witnesses on rows: what a look and a report bring together, what is confirmed by it, and what is history."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.history import KEPT
from inventory.models import HistoryEntry, Port, PortConflict, Server
from inventory.operations import confirm_port, create_subnet, record_seen
from subnet.guid import GUID
from tests.inventory.reports import GUID_A, GUID_B, OLGA, enrolled, outcomes, port, registers
from tests.inventory.test_ports import LEAF, reading

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(subnet):
    return enrolled(subnet)[0]


@pytest.fixture
def witnessed_trust(settings):
    settings.REGISTRATION_TRUST = "witnessed"


def switch(guid=LEAF):
    """The entry of a leaf in a reading."""
    return reading("0x0002c90200000011", node_type="SW", node_guid=guid, leaf=None)


def look(subnet, *readings, at=None, **options):
    return record_seen(
        subnet=subnet, readings=[switch(), *readings], at=at or timezone.now(), **{"is_complete": True, **options}
    )


def history(kind):
    return list(HistoryEntry.objects.filter(kind=kind).order_by("id").values_list("before", "after", "witness"))


# --- the verdict on the row ------------------------------------------------------------------------------------------


def test_a_report_and_then_a_look_agree(server, subnet):
    registers(server, port(GUID_A))
    assert Port.objects.get().testimony == "unseen"
    look(subnet, reading(GUID_A))
    row = Port.objects.get()
    assert (row.testimony, row.seen_lid, row.seen_sm_lid, row.seen_state) == ("agrees", 7, 1, "ACTIVE")
    assert row.confirmed_at is None  # a person confirms here


def test_a_look_and_then_a_report_agree(server, subnet):
    look(subnet, reading(GUID_A))
    assert Port.objects.get().testimony == "unregistered"
    registers(server, port(GUID_A))
    assert Port.objects.get().testimony == "agrees"


def test_a_node_guid_pasted_for_a_port_guid_is_named(server, subnet):
    look(subnet, reading(GUID_A))
    registers(server, port(GUID_A[:-1] + "0", node_guid=None))
    row = Port.objects.get(guid=GUID_A[:-1] + "0")
    assert row.testimony == "disagrees"
    assert any(f"port GUID {GUID_A}" in point[4] for point in row.points)
    look(subnet, reading(GUID_A))
    assert Port.objects.get(guid=GUID_A[:-1] + "0").testimony == "disagrees"


def test_a_port_that_names_another_host_is_contradicted(server, subnet):
    enrolled(subnet, "srv-002")
    registers(server, port(GUID_A))
    look(subnet, reading(GUID_A, description="srv-002 mlx5_0"))
    assert Port.objects.get().testimony == "disagrees"
    look(subnet, reading(GUID_A, description="srv-001 mlx5_0"))
    assert Port.objects.get().testimony == "agrees"


def test_another_subnet_is_a_disagreement(server, subnet):
    registers(server, port(GUID_A, subnet_prefix="0xfec0000000000002"))
    look(subnet, reading(GUID_A))
    assert Port.objects.get().testimony == "disagrees"


# --- a cable is pulled -----------------------------------------------------------------------------------------------


def test_a_pulled_cable_is_seen_by_the_next_complete_look(server, subnet):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    look(subnet, reading(GUID_A), reading(GUID_B, leaf=(LEAF, 5)))
    look(subnet, reading(GUID_B, leaf=(LEAF, 5)))
    row = Port.objects.get(guid=GUID_A)
    assert (row.seen_state, row.testimony, row.leaf_port) == ("ABSENT", "disagrees", 4)
    assert history("LINK") == [(f"ACTIVE at {LEAF} port 4", "not there", "FABRIC")]
    look(subnet, reading(GUID_A), reading(GUID_B, leaf=(LEAF, 5)))
    assert Port.objects.get(guid=GUID_A).testimony == "agrees"
    assert history("LINK")[-1] == ("not there", f"ACTIVE at {LEAF} port 4", "FABRIC")


def test_a_partial_look_says_nothing_of_who_is_not_in_it(server, subnet):
    registers(server, port(GUID_A))
    look(subnet, reading(GUID_A))
    look(subnet, reading(GUID_B, leaf=(LEAF, 5)), is_complete=False)
    assert Port.objects.get(guid=GUID_A).seen_state == "ACTIVE"


def test_an_unreadable_port_and_one_behind_a_dead_leaf_are_not_gone(server, subnet):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    other = GUID("0x0002c90200000099")
    look(subnet, reading(GUID_A), reading(GUID_B, leaf=(other, 1)), switch(other))
    look(subnet, reading(GUID_A, said="unreadable"))
    assert set(Port.objects.values_list("seen_state", flat=True)) == {"ACTIVE"}


def test_an_older_look_that_comes_late_changes_nothing(server, subnet):
    registers(server, port(GUID_A))
    now = timezone.now()
    look(subnet, reading(GUID_A), at=now)
    look(subnet, reading(GUID_A, lid=9, leaf=(LEAF, 9)), at=now - timedelta(minutes=1))
    row = Port.objects.get()
    subnet.refresh_from_db()
    assert (row.seen_lid, row.leaf_port, row.seen_at, subnet.looked_at) == (7, 4, now, now)


# --- who owns a port -------------------------------------------------------------------------------------------------


def test_the_passive_proof_confirms_where_the_site_takes_it(server, subnet, witnessed_trust):
    assert not registers(server, port(GUID_A)).outcomes[0].is_confirmed
    assert not Port.objects.candidates().exists()
    look(subnet, reading(GUID_A))
    row = Port.objects.get()
    assert (row.confirmed_how, row.home_leaf_guid, row.home_leaf_port) == ("witnessed", LEAF, 4)
    assert Port.objects.candidates().count() == 1
    event = Event.objects.filter(action="inventory:port:witness").get()
    assert event.after["ports"] == [GUID_A]


def test_a_report_after_the_look_is_confirmed_at_once(server, subnet, witnessed_trust):
    look(subnet, reading(GUID_A))
    assert registers(server, port(GUID_A)).outcomes[0].is_confirmed
    assert Port.objects.get().confirmed_how == "witnessed"
    assert Event.objects.last().after[GUID_A]["confirmed_how"] == "witnessed"


@pytest.mark.parametrize(
    "seen",
    [
        {"lid": 9}, {"master_sm_lid": 3}, {"state": "INIT"}, {"leaf": None}, {"node_guid": GUID(GUID_B)},
        {"description": "srv-002 mlx5_0"},
    ],
    ids=lambda seen: next(iter(seen)),
)  # fmt: skip
def test_one_point_that_does_not_agree_confirms_nothing(server, subnet, witnessed_trust, seen):
    enrolled(subnet, "srv-002")
    registers(server, port(GUID_A))
    look(subnet, reading(GUID_A, **seen))
    assert Port.objects.get().confirmed_at is None
    assert not Port.objects.candidates().exists()


def test_a_disputed_port_is_not_confirmed_by_witnesses(server, subnet, witnessed_trust):
    registers(server, port(GUID_A))
    assert outcomes(registers(enrolled(subnet, "srv-002")[0], port(GUID_A))) == ["conflict"]
    look(subnet, reading(GUID_A))
    assert Port.objects.get().confirmed_at is None


def test_a_person_confirms_without_any_proof(server, subnet, witnessed_trust):
    registers(server, port(GUID_A, state="DOWN"))
    confirm_port(port=Port.objects.get(), actor=OLGA)
    assert Port.objects.candidates().count() == 1


def test_a_site_that_asks_for_more_takes_back_what_it_trusted(server, settings):
    settings.REGISTRATION_TRUST = "enrolled"
    registers(server, port(GUID_A))
    assert Port.objects.candidates().count() == 1
    for trust in ("witnessed", "person"):
        settings.REGISTRATION_TRUST = trust
        assert not Port.objects.candidates().exists()
    confirm_port(port=Port.objects.get(), actor=OLGA)
    assert Port.objects.candidates().count() == 1
    assert Event.objects.last().before == {"confirmed_how": "enrolled"}


def test_a_confirmed_port_that_is_recabled_is_told_until_a_person_says_so(server, subnet):
    registers(server, port(GUID_A))
    look(subnet, reading(GUID_A))
    confirm_port(port=Port.objects.get(), actor=OLGA)
    look(subnet, reading(GUID_A, leaf=(LEAF, 9)))
    row = Port.objects.get()
    assert (row.testimony, row.home_leaf_port, row.leaf_port) == ("disagrees", 4, 9)
    assert history("CABLE") == [(f"{LEAF} port 4", f"{LEAF} port 9", "FABRIC")]
    confirm_port(port=row, actor=OLGA, reason="moved to another leaf port")
    look(subnet, reading(GUID_A, leaf=(LEAF, 9)))
    assert Port.objects.get().testimony == "agrees"


# --- history ---------------------------------------------------------------------------------------------------------


def test_reboot_rename_and_firmware_are_history_and_move_nothing(server):
    registers(server, port(GUID_A, firmware="20.31"), boot_id="boot-1")
    row = Port.objects.values("id", "hca_id", "confirmed_at").get()
    assert not HistoryEntry.objects.exists()
    registers(server, port(GUID_A, firmware="20.39", device="ibp65s0", state="DOWN"), boot_id="boot-2")
    assert history("REBOOT") == [("boot-1", "boot-2", "SERVER")]
    assert history("FIRMWARE") == [("20.31", "20.39", "SERVER")]
    assert history("DEVICE") == [("mlx5_0", "ibp65s0", "SERVER")]
    assert history("LINK") == [("ACTIVE", "DOWN", "SERVER")]
    assert Port.objects.values("id", "hca_id", "confirmed_at").get() == row


def test_a_port_that_goes_and_comes_is_history(server):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    registers(server, port(GUID_A))
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    assert history("MISSING") == [("reported", "missing", "SERVER"), ("missing", "reported again", "SERVER")]


def test_the_history_of_a_server_does_not_grow_for_ever(server):
    HistoryEntry.objects.bulk_create(
        HistoryEntry(server=server, at=timezone.now(), kind="LINK", witness="SERVER", what="x")
        for _ in range(KEPT + 20)
    )
    registers(server, port(GUID_A), boot_id="boot-1")
    registers(server, port(GUID_A), boot_id="boot-2")
    assert HistoryEntry.objects.count() == KEPT
    assert HistoryEntry.objects.last().after == "boot-2"


# --- evidence --------------------------------------------------------------------------------------------------------


def test_a_conflict_keeps_both_sides_and_the_fabric(server, subnet):
    registers(server, port(GUID_A), machine_id="m1", serial="S1")
    look(subnet, reading(GUID_A, description="srv-001 mlx5_0"))
    other = enrolled(subnet, "srv-002")[0]
    registers(other, port(GUID_A, lid=9), machine_id="m1", boot_id="boot-9")
    evidence = PortConflict.objects.get().evidence
    assert evidence["holder"]["hostname"] == "srv-001"
    assert (evidence["holder"]["port"]["lid"], evidence["claimant"]["port"]["lid"]) == (7, 9)
    assert evidence["claimant"]["boot_id"] == "boot-9"
    assert evidence["fabric"]["cable"] == f"{LEAF} port 4"
    assert any("same machine id" in hint for hint in evidence["hints"])
    assert any("another LID" in hint for hint in evidence["hints"])


def test_a_claim_to_a_card_without_ports_is_a_conflict_too(server, subnet):
    registers(server, port(GUID_A))
    Port.objects.all().delete()
    other = enrolled(subnet, "srv-002")[0]
    assert outcomes(registers(other, port(GUID_A))) == ["conflict"]
    assert PortConflict.objects.get().port.guid == GUID_A
    assert Server.objects.get(pk=other.pk).hcas.count() == 0


def test_looks_at_a_large_subnet_cost_few_queries(subnet, server, django_assert_max_num_queries):
    registers(server, port(GUID_A))
    readings = [reading(f"0x0002c903{number:08x}", leaf=(LEAF, number % 40)) for number in range(1, 1201)]
    look(subnet, *readings)
    with django_assert_max_num_queries(10):
        look(subnet, *readings)


def test_a_look_at_one_subnet_leaves_another_alone(subnet, server):
    registers(server, port(GUID_A))
    look(subnet, reading(GUID_A))
    look(create_subnet(name="lab-2", actor=OLGA))
    assert Port.objects.get().seen_state == "ACTIVE"
