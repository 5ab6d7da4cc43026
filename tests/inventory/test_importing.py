"""Importing a listing adds what a person's word can add, and nothing else."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from inventory.errors import InventoryError
from inventory.models import HCA, Port, Server
from inventory.operations import create_subnet, import_listing
from subnet.guid import GUID
from subnet.listing_readers import read
from tests.inventory.reports import GUID_A, OLGA, enrolled, everything, port, registers

pytestmark = pytest.mark.django_db
LISTINGS = Path(__file__).resolve().parents[1] / "data" / "listings"


def path(name):
    (found,) = LISTINGS.glob(f"{name}-*.txt")
    return str(found)


def command(*arguments):
    out = io.StringIO()
    call_command("import_fabric", *arguments, stdout=out)
    return out.getvalue()


def shown(*arguments):
    return json.loads(command(*arguments, "--json"))


def test_it_shows_and_writes_nothing(subnet):
    before = everything()
    found = shown(path("B16"))
    assert len(found["new"]) == 12
    assert not found["applied"]
    assert [one["guid"] for one in found["left_out"]] == ["0x0210fa0c000b0001"]
    assert "would be added" in command(path("B16"))
    assert everything() == before


def test_applied_it_adds_unregistered_ports_with_untrusted_names(subnet):
    assert shown(path("B16"), "--apply")["applied"]
    rows = {row.guid: row for row in Port.objects.all()}
    assert len(rows) == 12
    row = rows[GUID("0x0210fa0c00060001")]
    assert (row.description, row.server, row.seen_at, row.confirmed_at, row.leaf_guid) == (
        "leading-space HCA-1", None, None, None, None,
    )  # fmt: skip
    assert not Port.objects.candidates().exists()
    assert not Server.objects.exists()
    event = Event.objects.last()
    assert (event.action, event.after["new"]["count"]) == ("inventory:port:import", 12)


def test_the_same_listing_again_writes_nothing(subnet):
    command(path("B16"), "--apply")
    before = everything()
    found = shown(path("B16"), "--apply")
    assert (found["new"], len(found["unchanged"])) == ([], 12)
    assert everything() == before


def test_b23_a_failed_scan_keeps_what_is_known(subnet):
    command(path("B16"), "--apply")
    before = everything()
    for options in ((), ("--apply",)):
        with pytest.raises(CommandError, match="what is known stays as it is"):
            command(path("B23"), *options)
    with pytest.raises(InventoryError):
        import_listing(subnet=subnet, listing=read(Path(path("B23")).read_text()), actor=OLGA)
    assert everything() == before


def test_b39_a_pasted_node_guid_is_recognised_and_its_ports_are_suggested(subnet):
    found = shown(path("B39"), "--with", path("B16"))
    assert len(found["node_guids"]) == 12
    assert found["node_guids"]["0x0210fa0c00010000"] == ["0x0210fa0c00010001", "0x0210fa0c00010002"]
    assert (found["new"], found["unknown"]) == ([], [])
    assert len(shown(path("B39"))["unknown"]) == 12


def test_a_node_guid_that_a_server_registered_is_recognised_without_another_listing(subnet, tmp_path):
    server, _ = enrolled(subnet)
    registers(server, port(GUID_A))
    pasted = tmp_path / "pasted"
    pasted.write_text(f"0x0002c90300010000\n{GUID_A}\n0x0002c90300ff0000\n0x00\n")
    found = shown(str(pasted), "--kind", "guids")
    assert found["node_guids"] == {"0x0002c90300010000": [GUID_A]}
    assert (found["unchanged"], found["unknown"]) == ([GUID_A], ["0x0002c90300ff0000"])
    assert "is a node GUID, no port's" in command(str(pasted), "--kind", "guids")


def test_one_guid_for_all_is_a_ports_guid(subnet, tmp_path):
    server, _ = enrolled(subnet)
    registers(server, port("0x0210fa0300b10000"))
    assert HCA.objects.get().node_guid == "0x0210fa0300b10000"
    pasted = tmp_path / "pasted"
    pasted.write_text("0x0210fa0300b10000\n")
    found = shown(str(pasted))
    assert (found["node_guids"], found["unchanged"]) == ({}, ["0x0210fa0300b10000"])


def test_a_registered_port_keeps_its_server_and_gets_no_name_from_a_listing(subnet):
    server, _ = enrolled(subnet)
    registers(server, port("0x0210fa0c00020001"))
    before = Port.objects.get()
    command(path("B16"), "--apply")
    after = Port.objects.get(guid="0x0210fa0c00020001")
    assert (after.server, after.description, after.confirmed_at) == (server, "", before.confirmed_at)


def test_a_port_of_another_subnet_stays_there(subnet):
    other = create_subnet(name="other", actor=OLGA)
    command(path("B16"), "--subnet", "other", "--apply")
    found = shown(path("B16"), "--subnet", "lab", "--apply")
    assert (found["new"], len(found["in_another_subnet"])) == ([], 12)
    assert Port.objects.filter(subnet=other).count() == 12


def test_ethernet_and_zero_guids_never_become_rows(subnet):
    found = shown(path("B04"), "--apply")
    assert found["new"] == ["0x0210fa0300b40000"]
    assert Port.objects.count() == 1


@pytest.mark.parametrize("name", ["B25", "B28", "B12", "B15"])
def test_what_names_no_port_guid_changes_nothing(subnet, name):
    before = everything()
    options = ["--kind", "node-descriptions"] if name == "B12" else []
    assert shown(path(name), "--apply", *options)["new"] == []
    assert everything() == before


def test_it_reads_standard_input_and_any_bytes(subnet, monkeypatch):
    data = Path(path("B39")).read_bytes().replace(b"gpu01", b"gpu\xff1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "gpu?1 HCA-2" in json.dumps(shown("-"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["/nowhere/at/all"], "cannot be read"),
        ([path("B16"), "--subnet", "none"], "no subnet called none"),
        ([path("B16"), "--kind", "ibhosts"], "Line 6 is none of ibhosts'"),
    ],
)
def test_a_mistake_is_explained(subnet, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        command(*arguments)


def test_of_several_subnets_one_must_be_named(subnet):
    create_subnet(name="other", actor=OLGA)
    with pytest.raises(CommandError, match="--subnet"):
        command(path("B16"))
