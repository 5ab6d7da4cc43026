"""Every quick way of the reader says what the slow one says: large files in small, and random lists of mgid lines.

The slow way is the line buffer (memory.py) and one line after the other; it is older.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions import conf_report
from subnet.opensm_reading import check, group_runs, known_headers, log, read, repeats
from subnet.opensm_reading.parser import Parser
from tests.subnet.opensm_reading.shapes import SHAPES, lines_of
from tests.subnet.opensm_reading.small import FABRIC


def everything(data: bytes) -> tuple[str, ...]:
    """All that is said of a file, also by the tables and the columns."""
    found, reading = check(data), read(data, FABRIC)
    parser = Parser(data)
    parser.run()
    store = parser.store
    columns = (store.guids, store.codes, store.lines, store.columns, store.of_first, store.of_line)
    mgids = (store.mgids.texts, store.mgids.ends, store.mgids.lines, store.mgids.statements, store.mgids.accepted)
    return (
        "".join(conf_report.check_json(found)),
        "".join(conf_report.explain_json(reading)),
        *(repr(one) for one in reading.findings),
        *(bytes(column).hex() for column in (*columns, *mgids)),
        repr((found.rejection, reading.rejection, parser.place, parser.end_of_list)),
    )


def slowly(patch: pytest.MonkeyPatch) -> None:
    """Switch every quick way off."""
    patch.setattr(Parser, "_mgid_alone", lambda self, start, length, text: False)
    patch.setattr(group_runs, "read", lambda parser, at, end: at)
    patch.setattr(known_headers, "_KEPT", 0)
    patch.setattr(repeats, "_LEAST", 1 << 62)


def quickly(patch: pytest.MonkeyPatch) -> None:
    """Let a few lines be enough for every quick way."""
    patch.setattr(repeats, "_LEAST", 1)


@pytest.mark.parametrize("name", SHAPES)
def test_a_large_file_in_small(name):
    data = SHAPES[name](60_000)
    with pytest.MonkeyPatch.context() as patch:
        quickly(patch)
        quick = everything(data)
    with pytest.MonkeyPatch.context() as patch:
        slowly(patch)
        slow = everything(data)
    assert quick == slow


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.sampled_from([1, 100]))
def test_random_lines_around_mgids_and_repeats(seed, most):
    data = lines_of(Random(seed))  # noqa: S311  no secret
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "MOST_PER_RULE", most)
        quickly(patch)
        quick = everything(data)
        slowly(patch)
        slow = everything(data)
    assert quick == slow


def test_the_quick_ways_are_taken(monkeypatch):
    """Or the comparisons above compare the slow way with itself."""
    loads = []
    honest = Parser._walk
    monkeypatch.setattr(Parser, "_walk", lambda self, *line: loads.append(line) or honest(self, *line))
    lines = []
    one = Parser._read_line
    monkeypatch.setattr(Parser, "_read_line", lambda self, *line: lines.append(line) or one(self, *line))
    for name, most in {"mgid": 120, "mgid_flags": 120, "nul_lines": 300, "tiny_statements": 300}.items():
        lines.clear()
        check(SHAPES[name](100_000))
        assert len(lines) < most, name
    assert len(loads) < 5


def test_left_overs_are_looked_for_anew_when_the_length_of_a_line_changes(monkeypatch):
    """Behind the third mgid line stands scope=5, behind the second one nothing."""
    monkeypatch.setattr(log, "MOST_PER_RULE", 1)
    data = (
        b"A=0x10 :\nmgid=ff12::1\nmgid=ff12::1,sl=scope=5\nmgid=ff12::ab\nmgid=ff12::abc\nALL;\n"
        b"B=0x11, scope=5 :\nmgid=ff12::abc\nALL;\n"
    )
    quick = everything(data)
    assert "mgid-shared" in quick[0]  # both keep ff15::abc
    slowly(monkeypatch)
    assert everything(data) == quick
