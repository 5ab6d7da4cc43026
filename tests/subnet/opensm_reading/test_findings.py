"""Every rule of the closed list: a file that offends it, where, how bad; and its row in the documentation."""

import re
from pathlib import Path

import pytest

from subnet.opensm_reading import check, read
from subnet.opensm_reading.log import MOST_PER_RULE
from subnet.opensm_reading.rules import RULES
from tests.subnet.opensm_reading.small import FABRIC

DOC = Path(__file__).resolve().parents[3] / "docs" / "partitions-conf.md"
DEFAULT = b"Default=0x7fff:ALL=limited,SELF=full;\n"

# rule → (file, line, column); the line of Default above it is counted.
OFFENDERS = {
    "no-definition": (b"", 1, 1),
    "no-header": (DEFAULT + b"  words\n", 2, 3),
    "header-over-lines": (DEFAULT + b"A=0x10,\nipoib: 0x21;\n", 2, 8),
    "scheduler-file": (b"# slurm\nPartitionName=x Nodes=a:b\n", 2, 1),
    "bad-pkey": (DEFAULT + b"A=8abc:;", 2, 1),
    "no-pkey-left": (b"P:;\n" + b"".join(b"%d:;\n" % key for key in range(2, 0x7FFF)) + b"Q:;", 32767, 1),
    "bad-member": (DEFAULT + b"A=0x10: 0x21, 0x21-x;", 2, 15),
    "missing-semicolon": (DEFAULT + b"A=0x10: 0x21  # c\nB=0x20: 0x21;", 2, 13),
    "keyword-case": (DEFAULT + b"A=0x10:All;", 2, 8),
    "guid-without-0x": (DEFAULT + b"A=0x10: 0002c9;", 2, 9),
    "guid-zero": (DEFAULT + b"A=0x10:0x0;", 2, 8),
    "guid-with-colons": (DEFAULT + b"A=0x10:00:02:c9:03:00:0a:00:01;", 2, 8),
    "host-name": (DEFAULT + b"A=0x10:node[1,2];", 2, 8),
    "mgid-without-value": (DEFAULT + b"A=0x10:\nmgid\n", 3, 1),
    "lone-semicolon": (DEFAULT + b"A=0x10:0x21;;", 2, 13),
    "mgid-semicolon": (DEFAULT + b"A=0x10:\n mgid=ff12::1;", 3, 2),
    "mgid-shared": (b"A=0x10:\n mgid=ff15::2,\n 0x1;\nB=0x11:\n mgid=ff15::2,\n 0x1;\n", 5, 2),
    "unwritten-memory": (b":\n;\n", 2, 2),
    "long-line": (b"A=1:" + b" " * 4089 + b"0x21;\n", 1, 4095),
    "nul-byte": (DEFAULT + b"A=0x10:0x21;\0", 2, 13),
    "carriage-return": (DEFAULT + b"A=0x10:0x21=full\r\n;", 2, 17),
    "byte-order-mark": (b"\xef\xbb\xbfA=0x10:0x21;", 1, 1),
    "no-default-rule": (b"A=0x10:0x21;", 1, 1),
    "sm-limited-in-default": (b"Default=0x7fff: SELF=full, ALL;", 1, 28),
    "auto-numbered": (DEFAULT + b" A:0x21;", 2, 2),
    "auto-number-claimed": (DEFAULT + b"A:0x21; B=0x1:0x31;", 2, 9),
    "nameless": (DEFAULT + b"0x10:0x21;", 2, 1),
    "name-cut": (DEFAULT + b"x" * 32 + b"=0x10:0x21;", 2, 1),
    "name-unsafe": (DEFAULT + b"a b=0x10:0x21;", 2, 1),
    "pkey-truncated": (DEFAULT + b"A=0x10010:0x21;", 2, 1),
    "pkey-octal": (DEFAULT + b"A=020:0x21;", 2, 1),
    "flag-prefix": (DEFAULT + b"A=0x10, i:0x21;", 2, 9),
    "flag-unknown": (DEFAULT + b"A=0x10,ipoib, vlan=3:0x21;", 2, 15),
    "flag-value": (DEFAULT + b"A=0x10,sl=99:0x21;", 2, 8),
    "sl-differs": (DEFAULT + b"A=0x10,sl=1:0x21;\nA=0x10:0x31;", 3, 1),
    "indx0": (DEFAULT + b"A=0x10,indx0:0x21;", 2, 8),
    "keyword-prefix": (DEFAULT + b"A=0x10:\n AL;", 3, 2),
    "membership-prefix": (DEFAULT + b"A=0x10:0x21=f;", 2, 8),
    "membership-empty": (DEFAULT + b"A=0x10:0x21=;", 2, 8),
    "membership-unknown": (DEFAULT + b"A=0x10:0x21=FULL;", 2, 8),
    "membership-both": (DEFAULT + b"A=0x10:0x21=both;", 2, 8),
    "value-without-member": (DEFAULT + b"A=0x10:0x21, =full;", 2, 14),
    "guid-not-hex": (DEFAULT + b"A=0x10:33;", 2, 8),
    "guid-out-of-range": (DEFAULT + b"A=0x10:-1;", 2, 8),
    "control-byte": (DEFAULT + b"A=0x10:\v0x21;", 2, 8),
    "member-overridden": (DEFAULT + b"A=0x10:0x21,0x21=full;", 2, 13),
    "keyword-overrides": (DEFAULT + b"A=0x10:0x21=full,ALL;", 2, 18),
    "empty-partition": (DEFAULT + b"A=0x10:;", 2, 1),
    "mgid-line": (DEFAULT + b"A=0x10:\nmgid=ff12::1\n0x21;", 3, 1),
    "mgid-skipped": (DEFAULT + b"A=0x10:\nmgid=fe80::1\n0x21;", 3, 1),
    "mgid-swallows": (DEFAULT + b"A=0x10:\nmgid=ff12::1,sl=1,0x21\n0x31;", 3, 1),
    "no-final-semicolon": (DEFAULT + b"A=0x10:0x21\n", 2, 12),
    "port-unknown": (DEFAULT + b"A=0x10:0x21,0x99;", 2, 13),
    "node-guid": (DEFAULT + b"A=0x10:0x21,0x20;", 2, 13),
    "not-programmed": (DEFAULT + b"A=0x10:0x99;", 2, 1),
    "table-full": (DEFAULT + b"".join(b"P=%d:ALL;\n" % key for key in range(1, 10)), 1, 1),
    "default-off-index-0": (DEFAULT + b"A=0x10,indx0:0x21;", 1, 1),
    "default-open": (b"Default=0x7fff: ALL=full;", 1, 17),
    "merged-name": (DEFAULT + b"A=0x10:0x21;\nB=0x10:0x31;", 3, 1),
    "pkey-with-bit-15": (DEFAULT + b"A=0x8010:0x21;", 2, 1),
    "sl-without-qos": (DEFAULT + b"A=0x10,sl=1:0x21;", 2, 1),
}


def test_every_rule_has_an_offender():
    assert OFFENDERS.keys() == RULES.keys()


@pytest.mark.parametrize("rule", RULES)
def test_the_offender_is_found_where_it_is(rule):
    data, line, column = OFFENDERS[rule]
    findings = read(data, FABRIC).findings
    places = [(one.line, one.column, one.severity) for one in findings if one.rule == rule]
    severity = {"long-line": "refuse", "byte-order-mark": "warn"}.get(rule, RULES[rule])
    assert places == [(line, column, severity)]


@pytest.mark.parametrize("rule", RULES)
def test_nobody_offends_it_without_cause(rule):
    clean = DEFAULT + b"# a comment; with: signs\nA=0x10, ipoib, mtu=4, rate=3:\n 0x21=full,\n 0x31=limited;\n"
    assert rule not in {one.rule for one in read(clean, FABRIC).findings}


@pytest.mark.parametrize("rule", RULES)
def test_every_finding_says_what_and_how(rule):
    for one in read(OFFENDERS[rule][0], FABRIC).findings:
        assert one.message.endswith(".")
        assert one.fix.endswith((".", "”."))


@pytest.mark.parametrize("rule", RULES)
def test_it_stands_in_the_documentation(rule):
    row = re.search(rf"^\| `{rule}` \| (\w+)", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None, f"docs/partitions-conf.md says nothing of {rule}"
    assert row[1] == RULES[rule]


def test_the_documentation_names_no_other_rule():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (?:refuse|warn|ok)\b", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(RULES)


def test_too_many_of_a_rule_are_counted():
    data = DEFAULT + b"A=0x10:\n" + b"".join(b"0x%x=FULL,\n" % number for number in range(1, 251)) + b"0x21;"
    found = [one for one in check(data).findings if one.rule == "membership-unknown"]
    assert len(found) == MOST_PER_RULE
    assert "150 further places" in found[-1].message


def test_a_hidden_character_does_not_reach_the_reader():
    messages = [one.message for one in check(b"\x1b[2J\x07:;\xc2\x85=0x1:0x21;").findings]
    assert all(char.isprintable() for message in messages for char in message)
