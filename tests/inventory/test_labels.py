"""Labels in files: each row by itself, all of a file or nothing, and no formula for a spreadsheet."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.models import Event
from inventory.errors import LabelsRefused
from inventory.labels import COLUMNS, LONGEST, harmless, read, write_csv, write_json
from inventory.models import Server
from inventory.operations import label_servers, preview_labels
from people.models import Tenant
from tests.inventory.reports import OLGA

ROW = {"hostname": "srv-001", "rack": "r12", "unit": "4", "serial": "S1", "tenant": "acme"}
BAD = {
    "not UTF-8": (b"hostname,rack\nsrv-001,\xff\n", 0, "not UTF-8"),
    "no header": (b"srv-001,r12\n", 1, "first row must name"),
    "an unknown column": (b"hostname,colour\nsrv-001,red\n", 1, "'colour'"),
    "a column twice": (b"hostname,rack,rack\nsrv-001,a,b\n", 1, "named twice"),
    "too few cells": (b"hostname,rack\nsrv-001\n", 2, "It has 1 cells"),
    "no name": (b"hostname,rack\n ,r1\n", 2, "names no server"),
    "a server twice": (b"hostname,rack\nsrv-001,a\nSRV-001,b\n", 3, "in row 2 already"),
    "a rack too long": (f"hostname,rack\nsrv-001,{'r' * 41}\n".encode(), 2, "41 characters"),
    "unprintable": (b"hostname,rack\nsrv-001,a\x07b\n", 2, "cannot be printed"),
    "JSON that ends early": (b'[{"hostname": "srv-001"', 0, "cannot be read"),
    "JSON that is no list": (b'{"hostname": "srv-001"}', 0, "not a JSON list"),
    "a number in JSON": (b'[{"hostname": "srv-001", "unit": 4}]', 1, "not text"),
    "a field in JSON": (b'[{"hostname": "srv-001", "x": ""}]', 1, "'x'"),
    "an item in JSON": (b'["srv-001"]', 1, "not a JSON object"),
    "nested without end": (b"[" * 100_000, 0, "cannot be read"),
    "too many rows": (b"hostname\n" + b"".join(b"s%d\n" % n for n in range(5001)), 0, "more than 5000"),
    "too large": (b"hostname\n" + b"x" * 2_000_001, 0, "is the most"),
}


@pytest.mark.parametrize(("data", "row", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_told_by_row(data, row, words):
    (first, *_) = read(data).errors
    assert first[0] == row
    assert words in first[1]


def test_only_the_columns_that_are_there_are_said():
    assert read(b"Hostname;Rack\r\nsrv-001;r12\r\n\r\n").rows[0].labels == {"rack": "r12"}
    assert read("\ufeffhostname,unit\nsrv-001,\n".encode()).rows[0].labels == {"unit": ""}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\tx", "|x", "%x", "\uff1d1", "'=1", "''", "'"])
def test_no_cell_is_a_formula_and_it_comes_back_as_it_was(text):
    line = write_csv([ROW | {"rack": text}]).splitlines()[1]
    assert not line.split(",")[1].startswith(("=", "+", "-", "@", "\t", "|", "%", "\uff1d"))
    assert harmless(text).startswith("'")


_label = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20).filter(
    lambda text: text.isprintable() and text == text.strip()
)


@given(labels=st.fixed_dictionaries(dict.fromkeys(LONGEST, _label)))
def test_what_goes_out_comes_in(labels):
    row = ROW | labels
    for text in (write_csv([row]), write_json([row])):
        file = read(text.encode())
        assert not file.errors
        assert file.rows[0].labels == labels
    for cell in next(iter(list(csv.reader(io.StringIO(write_csv([row]))))[1:])):
        assert not cell.startswith(("=", "+", "-", "@"))


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data):
    read(data)
    read(b"hostname,rack\n" + data)


# --- on rows ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def rack(subnet):
    Tenant.objects.create(name="Acme", slug="acme")
    return [Server.objects.create(subnet=subnet, hostname=f"srv-{number:03}") for number in range(1, 4)]


def test_a_file_is_looked_at_and_written(subnet, rack):
    file = read(json.dumps([ROW, {"hostname": "srv-002", "rack": "r12"}]).encode())
    preview = preview_labels(subnet=subnet, file=file)
    assert [change.server.hostname for change in preview.changes] == ["srv-001", "srv-002"]
    assert preview.changes[0].changed["tenant"] == ("", "acme")
    assert not Server.objects.exclude(rack="").exists()
    assert label_servers(subnet=subnet, file=file, digest=preview.digest, actor=OLGA) == 2
    first = Server.objects.get(hostname="srv-001")
    assert (first.rack, first.unit, first.serial, first.tenant.slug) == ("r12", "4", "S1", "acme")
    events = Event.objects.filter(action="inventory:server:label").order_by("number")
    assert [(event.subject_label, event.after["rack"]) for event in events] == [("srv-001", "r12"), ("srv-002", "r12")]
    again = preview_labels(subnet=subnet, file=file)
    assert (again.changes, again.errors) == ((), ())


@pytest.mark.parametrize("bad", [{"hostname": "srv-999"}, {"hostname": "srv-003", "tenant": "nobody"}])
def test_one_bad_row_and_nothing_is_written(subnet, rack, bad):
    file = read(json.dumps([ROW, bad]).encode())
    preview = preview_labels(subnet=subnet, file=file)
    assert preview.errors[0][0] == 2
    assert not preview.changes
    with pytest.raises(LabelsRefused, match="Row 2"):
        label_servers(subnet=subnet, file=file, digest=preview.digest, actor=OLGA)
    assert not Server.objects.exclude(rack="").exists()
    assert not Event.objects.filter(action="inventory:server:label").exists()


def test_what_was_looked_at_is_what_is_written(subnet, rack):
    file = read(json.dumps([ROW]).encode())
    preview = preview_labels(subnet=subnet, file=file)
    Server.objects.filter(hostname="srv-001").update(rack="r9")
    with pytest.raises(LabelsRefused, match="meanwhile"):
        label_servers(subnet=subnet, file=file, digest=preview.digest, actor=OLGA)
    assert Server.objects.get(hostname="srv-001").rack == "r9"


def test_a_large_file_costs_few_queries_to_look_at(subnet, django_assert_max_num_queries):
    Server.objects.bulk_create(Server(subnet=subnet, hostname=f"s{number}") for number in range(1200))
    file = read(b"hostname,rack\n" + b"".join(b"s%d,r1\n" % number for number in range(1200)))
    with django_assert_max_num_queries(4):
        assert len(preview_labels(subnet=subnet, file=file).changes) == 1200


def test_the_columns_are_those_of_the_file():
    assert write_csv([]).strip() == ",".join(COLUMNS)
