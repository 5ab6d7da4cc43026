"""What the RDMA guests are made of: the initramfs, the order of the modules, one machine's identity."""

import gzip

import pytest

from lab.errors import LabError
from lab.guests.initramfs import Archive
from lab.guests.kernel import depends, load_order
from lab.guests.machine import new_record


def entries(packed):
    """(path, mode, data) of each entry, read as cpio(5) describes `newc`."""
    data, at, found = gzip.decompress(packed), 0, []
    while True:
        assert data[at : at + 6] == b"070701"
        numbers = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name_end = at + 110 + numbers[11]
        name = data[at + 110 : name_end - 1].decode()
        body = name_end + -name_end % 4
        end = body + numbers[6]
        if name == "TRAILER!!!":
            return found
        found.append((name, numbers[1], data[body:end]))
        at = end + -end % 4


def test_an_initramfs_holds_what_was_put_in():
    archive = Archive()
    archive.put("etc/ssh/host_key", b"secret", mode=0o600)
    archive.link("bin", "usr/bin")
    archive.folder("tmp", mode=0o1777)
    found = {name: (mode, data) for name, mode, data in entries(archive.pack())}
    assert found["etc/ssh/host_key"] == (0o100600, b"secret")
    assert found["bin"] == (0o120777, b"usr/bin")
    assert found["tmp"] == (0o041777, b"")
    assert found["etc"] == found["etc/ssh"] == (0o040755, b"")


def test_folders_come_before_what_lies_in_them():
    archive = Archive()
    archive.put("a/b/c", "x")
    assert [name for name, _, _ in entries(archive.pack())] == ["a", "a/b", "a/b/c"]


def test_a_module_says_what_it_needs():
    assert depends(b"..\0license=GPL\0depends=ib_core,udp-tunnel\0name=rdma_rxe\0") == ["ib_core", "udp_tunnel"]
    assert depends(b"\0depends=\0name=ib_core\0") == []


def test_each_module_loads_after_its_needs():
    needs = {"rxe": ["uverbs", "tunnel"], "uverbs": ["core"], "core": [], "tunnel": ["core"], "net": []}
    order = load_order(("net", "rxe"), needs)
    assert order == ["net", "core", "uverbs", "tunnel", "rxe"]


def test_a_missing_module_is_named():
    with pytest.raises(LabError, match="no module udp_tunnel"):
        load_order(("rxe",), {"rxe": ["udp_tunnel"]})


def test_a_guest_knows_the_guid_that_soft_roce_will_show():
    record = new_record(2, name="rdma-decode", network="127.9.9", host_key="ssh-ed25519 A")
    octets = record.data_mac.split(":")
    expected = "0x" + "50" + "".join(octets[1:3]) + "fffe" + "".join(octets[3:])
    assert record.node_guid == expected
    assert new_record(2, name="x", network="127.9.9", host_key="").data_mac != record.data_mac
