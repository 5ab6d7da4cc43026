"""PartitionTable: what cannot exist, and what stays the same in every order."""

import json

import pytest
from hypothesis import given

from subnet.errors import InvalidName, InvalidPKey, InvalidTable, SubnetError
from subnet.guid import GUID
from subnet.pkey import DEFAULT, PKey
from subnet.table import Member, Partition, PartitionTable, partition_name, safe_label
from tests.subnet.fabrics import FULL, INFERENCE, LIMITED, SM1, SM2, TRAINING, guid, partition, table
from tests.subnet.strategies import tables


@pytest.mark.parametrize("name", ["a", "training", "A1", "x.y-z_0", "N" * 31, "ipoib", "ALL"])
def test_names_that_opensm_reads_as_they_are(name):
    assert partition_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "2nd-floor", "a b", "a:b", "a=b", "a,b", "a;b", "a#b", "N" * 32, "é", "-a", ".a", "Default", "DEFAULT", "a\n"],
)
def test_names_that_opensm_would_misread(name):
    with pytest.raises(InvalidName):
        partition_name(name)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("srv-001", "srv-001"),
        ("a b;c", "a_b_c"),
        ("", "unnamed"),
        ("é" * 80, "_"),
        ("x" * 99, "x" * 60),
        ("a\nb", "a_b"),
    ],
)
def test_labels_are_made_safe(text, label):
    assert safe_label(text) == label


@pytest.mark.parametrize("pkey", [DEFAULT, 0, 0x8001])
def test_no_partition_has_a_reserved_pkey(pkey):
    with pytest.raises(InvalidPKey):
        Partition(pkey, "a")


def test_no_port_is_in_a_partition_twice():
    members = (Member(guid(1), FULL), Member(guid(2), FULL), Member(guid(1), LIMITED))
    with pytest.raises(InvalidTable, match=rf"{guid(1)}.*training \(0x2c41\)"):
        Partition(TRAINING, "training", None, members)


def test_no_two_partitions_share_a_pkey():
    with pytest.raises(InvalidTable, match="0x2c41 stands for both"):
        table(partition(TRAINING, "a", None), partition(TRAINING, "b", None))


def test_no_two_partitions_share_a_name_in_any_case():
    with pytest.raises(InvalidTable, match="called"):
        table(partition(TRAINING, "train", None), partition(INFERENCE, "TRAIN", None))


def test_two_owners_never_look_like_one():
    with pytest.raises(InvalidName, match="slug"):
        partition(TRAINING, "a", "acme corp")


def test_text_from_rows_becomes_values():
    member = Member("0002c90300010001", "limited")
    assert type(member.guid) is GUID
    assert member.membership is LIMITED
    assert member == Member(guid(1), LIMITED)
    assert type(Partition(0x2C41, "a").pkey) is PKey
    with pytest.raises(ValueError, match="Full"):
        Member(guid(1), "Full")


def test_order_of_insertion_is_forgotten():
    a, b = partition(TRAINING, "a", None, guid(2), guid(1)), partition(INFERENCE, "b", None)
    assert table(a, b) == table(b, a, sm_ports=(SM2, SM1, SM2))
    assert a.members[0].guid == guid(1)


def test_labels_are_for_people_only():
    a = partition(TRAINING, "a", None, guid(1))
    labelled = table(a, labels={guid(1): "srv 001"})
    assert labelled == table(a)
    assert labelled.labels == {guid(1): "srv_001"}


def test_by_port_and_partition_look_things_up():
    a = partition(TRAINING, "a", None, guid(1))
    b = partition(INFERENCE, "b", None, guid(1), guid(2), membership=LIMITED)
    both = table(a, b)
    assert both.by_port() == {guid(1): {TRAINING: FULL, INFERENCE: LIMITED}, guid(2): {INFERENCE: LIMITED}}
    assert both.partition(TRAINING) is a
    assert both.partition(PKey(5)) is None


@given(tables())
def test_json_brings_the_same_table_back(value):
    again = PartitionTable.from_json(json.loads(json.dumps(value.to_json())))
    assert again == value
    assert again.labels == value.labels
    assert all(isinstance(text, str) for text in value.to_json()["sm_ports"])


def test_json_of_an_impossible_table_is_refused():
    value = table(partition(TRAINING, "a", None, guid(1))).to_json()
    value["partitions"][0]["pkey"] = "0x7fff"
    with pytest.raises(SubnetError):
        PartitionTable.from_json(value)
