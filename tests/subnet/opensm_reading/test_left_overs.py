"""Where OpenSM reads behind its own line, and what it then finds there; each was run on the real one."""

import pytest

from subnet.opensm_reading import check
from subnet.opensm_reading.memory import GROUP, OPEN, Memory
from tests.subnet.opensm_reading.small import keys, rejection

NO_HEADER = "no partition definition found"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        # The lone “;” ends the statement, then the line before is read again from its fourth byte.
        (b"A=0x10:\nALL\n;\n", ["0010"]),
        (b"A=0x10:\n0x21=full\n;\n", ["rejected"]),
        # “0x21” cut apart: behind the fourth byte there is “1”, which is no header.
        (b"A=0x10:\n0x21\n;\n", ["rejected"]),
        # The comma was made a NUL: behind the fourth byte there is nothing.
        (b"A=0x10:\n021,,\n;\n", [""]),
        # So was the colon of a header: “DE” is left of it, not “DE:0x21”.
        (b"ABCDE:0x21\n;\n", ["rejected"]),
        # What follows the lone “;” is parsed with its own “;” as text.
        (b"A=0x10:0x21=full; ; B=0x20:0x21=full;\n", ["8010 0020"]),
        (b"A=0x10:0x21=full; ; B=0x20:0x21=full; C=0x30:0x21=full;\n", ["rejected"]),
        # A left-over may even be a whole definition.
        (b"A=0x10:\n#ab;:B=0x20:0x21\n;\n", ["rejected"]),
        (b"Q=0x10:\n#a\0B:0x21\n;\n", ["0001"]),
    ],
)
def test_what_a_lone_semicolon_does(data, wanted):
    assert keys(data, "n2") == wanted
    found = check(data)
    assert found.verdict == "refuse"
    assert "lone-semicolon" in {one.rule for one in found.findings}


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"A=0x10:0x21\nmgid=fe80::1;\nB=0x20:0x21;", ["0010 0020"]),  # no multicast: nothing is read on
        (b"A=0x10:0x21\nmgid=fe80::1,sl=1;\n", ["rejected"]),  # but its flags are taken for a definition
        (b"A=0x10:0x21\nmgid=ff12::1,sl=1;\nB=0x20:0x21;", ["0010 0020"]),
        (b"# long enough to leave something behind, xy\nA=0x10:0x21\nmgid=ff12::1;\n", ["rejected"]),
    ],
)
def test_what_a_semicolon_behind_an_mgid_does(data, wanted):
    assert keys(data, "n2") == wanted


def test_an_mgid_that_reads_on_is_refused_even_when_it_goes_well():
    data = b"#" + b" " * 60 + b"\nA=0x10:0x21\nmgid=ff12::1;\n"
    assert keys(data, "n2") == ["0010"]
    assert check(data).verdict == "refuse"


def test_memory_nobody_wrote_is_called_so():
    data = b":\n;\n"
    assert rejection(data) == (2, NO_HEADER)
    assert "unwritten-memory" in {one.rule for one in check(data).findings}


def test_a_longer_line_covers_a_shorter_one_and_the_longest_shows_behind_it():
    data = b"A:0x1,0x2,0x3\nB\n:\n"
    memory = Memory(data)
    memory.note(0, 14, False)
    memory.note(14, 2, True)
    held = memory.load(16, 2, 0, True)
    assert bytes(held[:15]) == b":\n\0x1\0000x2\0000x3\0\0"


def test_a_noted_mgid_line_is_cut_with_its_flags():
    memory = Memory(b" mgid=ff12::1,sl=1\nX\n")
    memory.note(0, 19, OPEN | GROUP)
    held = memory.load(19, 2, 0, OPEN)
    assert bytes(held[:19]) == b"X\n\0id\0ff12::1\0sl\0" + b"1\0"
