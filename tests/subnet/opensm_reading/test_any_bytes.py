"""Whatever the bytes: an answer, never an error; and `check` refuses all that OpenSM rejects."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from subnet.opensm_reading import check, read
from tests.subnet.opensm_reading.small import FABRIC

PIECES = [
    b";", b"\n", b",", b"=", b":", b"#", b" ", b"\t", b"\r", b"\0", b"\x0b", b"\xff", b"A", b"ALL", b"S", b"0x10",
    b"0x21", b"=full", b"=b", b"Default=0x7fff", b"A=0x10:", b":0x21;", b"mgid=ff12::1", b"mgid", b",sl=1", b",indx0",
    b"ipoib", b" " * 4090, b"c" * 4095, b"0x21," * 800, b"99999999999999999999",
]  # fmt: skip
files = st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))


@given(files, st.booleans(), st.booleans())
def test_there_is_always_an_answer(data, both, qos):
    reading = read(data, FABRIC, allow_both_pkeys=both, qos=qos)
    found = check(data)
    assert reading.tables.keys() == FABRIC.ports.keys()
    assert found.rejection == reading.rejection
    if reading.rejection is not None:
        assert found.verdict == "refuse"
        assert not reading.partitions
    for table in reading.tables.values():
        assert sum(entry & 0x7FFF == 0x7FFF for entry in table.values()) == 1 or both
    end = data.count(b"\n") + 1
    assert all(1 <= one.line <= end and one.column >= 1 for one in found.findings)


@given(files)
def test_the_statements_hold_what_the_tables_come_from(data):
    reading = read(data, FABRIC)
    for partition in reading.partitions:
        assert partition.statements
        for statement in partition.statements:
            assert all(spec.line >= 1 and (spec.guid is None) == (spec.kind != "guid") for spec in statement.specs)
            assert len(statement.specs) == len(tuple(statement.specs))


def steps(data: bytes) -> int:
    """How many functions are called in checking `data`: a measure of work that no busy machine changes."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        check(data)
    finally:
        sys.setprofile(before)
    return count


def large(statements: int) -> bytes:
    lines = [b"Default=0x7fff:ALL=limited,SELF=full;\n"]
    for number in range(statements):
        lines.append(b"P%d=%d, ipoib :\n" % (number, number % 500 + 1))
        lines += [b" 0x%016x=full,\n" % (number * 50 + member + 1) for member in range(40)]
        lines.append(b"mgid=ff12::1\n 0x%016x=FULL;\n" % (number + 1) if number % 9 == 0 else b" ALL_CAS;\n")
    return b"".join(lines)


def test_the_work_grows_with_the_size():
    once, fourfold = steps(large(50)), steps(large(200))
    assert 3 < fourfold / once < 5
