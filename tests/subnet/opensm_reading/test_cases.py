"""Files as they are found in the world: what the real OpenSM made of them, and what we must say.

Each goes through `check` and `read` as it stands and once more under other GUIDs, names and order of nodes, so that
nothing can have been looked up.
"""

import json
import re
from pathlib import Path

import pytest

from subnet.guid import GUID
from subnet.opensm_reading import Fabric, check, read

FOLDER = Path(__file__).resolve().parents[2] / "data" / "partitions_conf"
NET = (FOLDER / "oracle.net").read_text(encoding="utf-8")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SM = "node01"

# What a person must be told, by rule and line; A13 must name the token too.
TOLD = {
    "A06": [("mgid-line", line) for line in range(4, 9)],
    "A11": [("no-default-rule", 1), ("nameless", 2), ("nameless", 4)],
    "A13": [("missing-semicolon", 1), ("bad-member", 2), ("host-name", 2)],
    "A16": [("missing-semicolon", 1), ("bad-member", 2)],
    "A20": [("scheduler-file", 2)],
    "A22": [("auto-numbered", 2), ("auto-numbered", 3), ("membership-prefix", 2), ("flag-prefix", 3)],
    "A28": [("carriage-return", 1)],
    "A29": [("no-definition", 1)],
    "A33": [("bad-pkey", 2)],
    "A34": [("guid-without-0x", 2)],
    "A36": [("keyword-case", 1)],
    "A39": [("keyword-prefix", 1), ("keyword-prefix", 2)],
    "A41": [("name-unsafe", 2), ("name-unsafe", 3), ("name-cut", 4)],
    "A44": [("no-default-rule", 1)],
    "A46": [("empty-partition", 2), ("empty-partition", 3)],
    "A50": [("membership-both", 1), ("membership-both", 2)],
    "A54": [("header-over-lines", 1)],
    "A57": [("member-overridden", 3), ("member-overridden", 4)],
}


def port_of(node: str) -> str:
    """node0N's port 1, or the port 0 of leafN."""
    return f"0x0210fa0300a{node[5]}0001" if node.startswith("node") else f"0x0210fa0300e{node[4]}0000"


def tables_of(case: dict) -> dict[str, list[str]]:
    return {port_of(node): entries for node, entries in case["pkey_tables"].items()}


def disguised(text: bytes) -> bytes:
    """Other GUIDs of the same length, other names; what a byte means stays."""
    turned = bytes.maketrans(b"123456", b"462513")
    text = re.sub(rb"(?i)210fa0300([ae])([1-6])", lambda hit: b"39bcd7145" + hit[1] + hit[2].translate(turned), text)
    for old, new in ((b"Ten", b"Zeh"), (b"Twenty", b"Zwanzg"), (b"Compute", b"Rechnen"), (b"Storage", b"Lagerei")):
        text = text.replace(old, new)
    return text


def observed(data: bytes, net: str, sm: str) -> tuple[tuple[int | None, str] | None, dict[str, list[str]]]:
    reading = read(data, Fabric.from_net(net, sm_port=GUID(sm)))
    tables = {
        guid: [f"0x{entry:04x}@{index}" for index, entry in sorted(table.items())]
        for guid, table in reading.tables.items()
    }
    return reading.rejection and (reading.rejection.line, reading.rejection.message), tables


def expected_rejection(case: dict) -> tuple[int | None, str] | None:
    if not case["opensm_rejects_file"]:
        return None
    hit = re.fullmatch(r"PARSE ERROR: line (\d+): (.*)", case["opensm_error"] or "")
    return (int(hit[1]), hit[2]) if hit else (None, "no definition found")


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_read_as_opensm_reads_it(name):
    case = EXPECTED[name]
    data = (FOLDER / case["file"]).read_bytes()
    assert observed(data, NET, port_of(SM)) == (expected_rejection(case), tables_of(case))
    assert check(data).verdict == case["import_verdict"].lower()


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_read_so_under_other_names_too(name):
    case = EXPECTED[name]
    data = disguised((FOLDER / case["file"]).read_bytes())
    net = "\n\n".join(reversed(disguised(NET.encode()).decode().split("\n\n")))
    wanted = {disguised(guid.encode()).decode(): entries for guid, entries in tables_of(case).items()}
    assert wanted.keys().isdisjoint(tables_of(case)), "nothing was disguised"
    sm = disguised(port_of(SM).encode()).decode()
    assert observed(data, net, sm) == (expected_rejection(case), wanted)
    assert check(data).verdict == case["import_verdict"].lower()


@pytest.mark.parametrize("name", TOLD)
def test_people_are_told(name):
    findings = check((FOLDER / EXPECTED[name]["file"]).read_bytes()).findings
    told = {(one.rule, one.line) for one in findings if one.severity != "ok"}
    assert set(TOLD[name]) <= told


def test_a_missing_semicolon_is_shown_where_it_is_missing():
    data = (FOLDER / EXPECTED["A16"]["file"]).read_bytes()
    first = check(data).findings[0]
    assert (first.rule, first.line, first.column) == ("missing-semicolon", 1, len(data.split(b"\n")[0]) + 1)


def test_a_range_of_hosts_is_named():
    findings = check((FOLDER / EXPECTED["A13"]["file"]).read_bytes()).findings
    assert any("node[001-100]" in one.message and one.line == 2 for one in findings)
    assert any("Compute" in one.message and one.line == 2 for one in findings)


def test_an_absent_port_is_not_programmed_and_no_fault():
    data = (FOLDER / EXPECTED["A46"]["file"]).read_bytes()
    reading = read(data, Fabric.from_net(NET, sm_port=GUID(port_of(SM))))
    assert {(one.rule, one.line) for one in reading.findings if one.line == 4} == {
        ("not-programmed", 4), ("port-unknown", 4),
    }  # fmt: skip
