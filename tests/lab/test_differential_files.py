"""The differential's own parts: files decided by their number, a comparison and a reducer that can be trusted."""

import subprocess
import sys
from hashlib import sha256

import pytest

from lab.differential.cases import Case, load, outcome, save
from lab.differential.comparison import differences
from lab.differential.fabric import END_PORTS, SM_PORT, net_text
from lab.differential.generator import KINDS, example
from lab.differential.reduction import reduced
from lab.differential.rows import FILES, ROWS, STATEMENTS
from lab.oracle import OracleAnswer
from subnet.guid import GUID
from subnet.opensm_reading import Reading, Rejection
from subnet.opensm_reading.parser import CRASH
from subnet.partitions_conf import parse_strict


def test_a_number_always_gives_the_same_file():
    digest = "from lab.differential.generator import example; from hashlib import sha256;"
    digest += "print(sha256(b''.join(example(n).data for n in range(200))).hexdigest())"
    fresh = subprocess.run([sys.executable, "-c", digest], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == sha256(b"".join(example(number).data for number in range(200))).hexdigest()


def test_numbers_give_different_files():
    assert len({example(number).data for number in range(400)}) > 380


@pytest.mark.parametrize("first", [0, 17, 100_000])
def test_any_long_enough_run_of_numbers_holds_every_row(first):
    needed = (-(-len(ROWS) // KINDS.count("row")) + 1) * len(KINDS)
    rows = {row for number in range(first, first + needed) for row in example(number).rows}
    assert rows == set(ROWS)
    assert needed < 300


def test_rows_are_of_every_section_that_was_asked_for():
    sections = {row.split()[0] for row in ROWS}
    assert sections >= {"2.1", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "5.3", "not"}
    assert not set(STATEMENTS) & set(FILES)


def test_tables_are_canonical_files():
    tables = [one.data for one in map(example, range(200)) if one.kind == "table"]
    assert len(tables) == 20
    for data in tables:
        parse_strict(data)


def test_the_fabric_names_its_ports_as_the_simulator_does():
    assert len(set(END_PORTS)) == len(END_PORTS)
    assert SM_PORT in END_PORTS
    assert net_text().count("\nCa\t") == 6
    assert net_text().count("Switch\t") == 2


A, B = GUID("0x1"), GUID("0x2")


def reading(tables, rejection=None):
    return Reading(rejection=rejection, tables=tables, partitions=(), findings=())


def answer(tables, *log, died=0):
    rejected = bool(log)
    return OracleAnswer(rejected=rejected, log_lines=log, tables=tables, died=died)


FALLBACK = {A: {0: 0xFFFF}}
PARSE_ERROR = "parse_part_conf: PARSE ERROR: line 2: bad PortGUID"


@pytest.mark.parametrize(
    ("model", "real", "agree"),
    [
        (reading({A: {0: 0x7FFF}}), answer({A: {0: 0x7FFF}}), True),
        (reading({A: {0: 0x7FFF}}), answer({A: {0: 0xFFFF}}), False),
        (reading({A: {0: 0x7FFF, 1: 0x10}}), answer({A: {0: 0x7FFF, 2: 0x10}}), False),
        (reading({A: {0: 0x7FFF}}), answer({A: {0: 0x7FFF}, B: {0: 0x7FFF}}), False),
        (reading({A: {0: 0x7FFF}, B: {}}), answer({A: {0: 0x7FFF}}), False),
        (reading(FALLBACK, Rejection(2, "bad PortGUID")), answer(FALLBACK, PARSE_ERROR), True),
        (reading(FALLBACK, Rejection(3, "bad PortGUID")), answer(FALLBACK, PARSE_ERROR), False),
        (reading(FALLBACK, Rejection(2, "bad partition definition")), answer(FALLBACK, PARSE_ERROR), False),
        (reading(FALLBACK), answer(FALLBACK, PARSE_ERROR), False),
        (reading(FALLBACK, Rejection(2, "bad PortGUID")), answer(FALLBACK), False),
        (reading(FALLBACK, Rejection(None, "no definition")), answer(FALLBACK, "retrying"), True),
        (reading(FALLBACK, Rejection(None, "no definition")), answer(FALLBACK, PARSE_ERROR), False),
        (reading(FALLBACK, Rejection(1, CRASH)), answer({}, died=11), True),
        (reading(FALLBACK, Rejection(1, "bad PortGUID")), answer({}, died=11), False),
        (reading(FALLBACK, Rejection(1, CRASH)), answer(FALLBACK, PARSE_ERROR), False),
    ],
)
def test_the_comparison_sees_every_kind_of_difference(model, real, agree):
    assert (differences(model, real) == []) is agree


def test_the_reducer_leaves_what_is_needed():
    data = b"".join(b"line %d of many\n" % number for number in range(64))
    small = reduced(data, lambda text: b"7" in text and b"line 40" in text)
    assert sorted(small) == sorted(b"7line 40") or small.replace(b"\n", b"") == b"7line 40"
    assert reduced(b"abc", lambda text: True) == b""
    assert reduced(b"abc", lambda text: text == b"abc") == b"abc"


def test_the_reducer_keeps_to_its_tries():
    asked = []

    def holds(text):
        asked.append(text)
        return len(text) > 500

    small = reduced(b"x\n" * 1000, holds, most_tries=30)
    assert len(asked) == 30
    assert len(small) > 500


def test_a_case_is_what_was_saved(tmp_path):
    real = answer({A: {0: 0x7FFF, 3: 0x8010}}, PARSE_ERROR)
    case = Case("odd", b"\xff\0\r\n;", ("-W",), outcome(real), "because")
    assert load(save(case, tmp_path)) == case
    assert case.expected["tables"] == {A: ["0x7fff@0", "0x8010@3"]}
    assert {path.name for path in tmp_path.iterdir()} == {"odd.conf", "odd.json"}
