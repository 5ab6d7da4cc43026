"""The rows of the ground truth on OpenSM's partition language, 2.2 to 2.10, one by one.

The fabric is small.py's: the SM's HCA port 0x11, HCA ports 0x21 and 0x31, switch 0xe0, router port 0xf1.
"""

import pytest

from subnet.opensm_reading import check, read
from tests.subnet.opensm_reading.small import ALL, FABRIC, default, keys, rejection, table

NO_HEADER, BAD_HEADER, BAD_GUID = "no partition definition found", "bad partition definition", "bad PortGUID"


# 2.2 physical limits
def test_a_line_of_4094_bytes_is_one_line():
    line = b"A=0x10:" + b" " * (4094 - 7 - 11) + b"0x21=full;\n"
    assert len(line) == 4094
    assert keys(line, "n2") == ["8010"]


def test_a_longer_line_is_cut_even_inside_a_guid():
    line = b"A=0x10:" + b" " * (4094 - 7 - 3) + b"0x21=full;\n"  # the cut falls behind “0x2”
    assert keys(line, *ALL) == [""] * 5
    assert check(line).verdict == "refuse"


def test_a_cut_between_members_is_harmless():
    line = b"A=1:" + b"0x21," * 818 + b"0x31;\n"
    assert len(line) > 4094
    assert keys(line, "n2", "n3") == ["0001", "0001"]
    assert check(line).verdict == "warn"


def test_a_long_comment_goes_on_as_text():
    assert rejection(b"#" + b"c" * 5000 + b"\nA=0x10:ALL;\n") == (2, NO_HEADER)


def test_opensm_counts_the_pieces_of_a_long_line():
    data = b"A=1:" + b" " * 9000 + b"0x21;\nbad\n"
    assert rejection(data) == (4, NO_HEADER)
    assert [one.line for one in check(data).findings if one.rule == "no-header"] == [2]


# 2.3 names
@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"a b=0x10", "a b"),
        (b"  x\t=0x10", "x"),
        (b"=0x10", "0010"),
        (b"0x10", "0010"),
        (b"x" * 31 + b"=0x10", "x" * 31),
        (b"x" * 40 + b"=0x10", "x" * 31),
        (b"2nd-floor=0x10", "2nd-floor"),
        (b"f\xc3\xb6\xe4=0x10", "fö\\xe4"),
    ],
)
def test_a_name(head, name):
    reading = read(head + b": 0x21=full;", FABRIC)
    assert [(one.pkey, one.name) for one in reading.partitions] == [(0x10, name)]


def test_a_name_that_begins_with_a_digit_is_a_pkey():
    assert rejection(b"2nd-floor : ALL;") == (1, BAD_HEADER)
    assert keys(b"16 : 0x21=full;", "n2") == ["8010"]


def test_a_colon_in_the_name_ends_the_header():
    reading = read(b"A:1=0x1:", FABRIC)
    assert [(one.pkey, one.name, one.auto_numbered) for one in reading.partitions] == [(1, "A", True)]


# 2.4 P_Keys
@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        (b"0x10", 0x10), (b"0X10", 0x10), (b"16", 0x10), (b"020", 0x10), (b"0x8010", 0x10), (b"0x18010", 0x10),
        (b"-65520", 0x10), (b"+0x10", 0x10), (b"\x0b0x10", 0x10), (b"0xffffffffffff0010", 0x10), (b"010", 8),
    ],
)  # fmt: skip
def test_a_pkey(spelled, key):
    assert keys(b"A=" + spelled + b":0x21=full;", "n2") == [f"{key | 0x8000:04x}"]


@pytest.mark.parametrize("spelled", [b"0x7fff", b"0xffff", b"-1", b"99999999999999999999999"])
def test_a_pkey_that_is_default(spelled):
    assert default(b"X=" + spelled + b":0x21=full;") == "FFlll"


@pytest.mark.parametrize("spelled", [b"", b"0x", b"8abc", b"0x12x", b"0x10\r", b"b=0x1", b"'0x10'", b"08"])
def test_no_pkey(spelled):
    assert rejection(b"A=" + spelled + b":ALL;") == (1, BAD_HEADER)


@pytest.mark.parametrize("spelled", [b"=0", b"=0x8000", b"=0x0", b"=0x10000", b""])
def test_a_pkey_of_zero_is_none(spelled):
    assert keys(b"A" + spelled + b":0x21=full;B:0x31;", "n2", "n3") == ["8001", "0002"]


def test_numbers_are_given_in_the_order_of_the_file_past_those_taken():
    assert keys(b"A=0x1:0x21;B:0x21;C=0x4:0x21;D:0x21;E:0x21;", "n2") == ["0001 0002 0003 0004 0005"]


def test_an_explicit_pkey_may_merge_with_a_given_one():
    assert keys(b"A:0x21=full;B=0x1:0x31=full;", "n2", "n3") == ["8001", "8001"]
    assert "auto-number-claimed" in {one.rule for one in check(b"A:0x21=full;B=0x1:0x31=full;").findings}


def test_a_name_without_a_pkey_is_looked_up():
    assert keys(b"A=0x10:0x21;A:0x31;", "n2", "n3") == ["0010", "0010"]
    assert default(b"Default:ALL=full;") == "FFFFF"


def test_the_look_up_takes_the_first_in_byte_swapped_order():
    # 0x0100 sorts before 0x0002, because OpenSM compares network-order keys as little-endian numbers.
    assert keys(b"A=0x2:;A=0x100:;A:0x21;", "n2") == ["0100"]


def test_a_name_of_32_bytes_is_never_found_again():
    name = b"x" * 32
    assert keys(name + b":0x21;" + name + b":0x31;", "n2", "n3") == ["0001", "0002"]


def test_the_last_number_but_one_is_the_end():
    most = b"".join(b"P%d:;" % number + (b"\n" if number % 100 == 0 else b"") for number in range(1, 0x7FFF))
    assert rejection(most + b"\n") is None
    assert rejection(most + b"\nQ:;") == (most.count(b"\n") + 2, BAD_HEADER)


# 2.5 header flags
@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        (b"ipoib", "ipoib", True), (b"i", "ipoib", True), (b"IPOIB", "ipoib", False),
        (b"mtu=5", "mtu", 5), (b"m=0x5", "mtu", 5), (b"=5", "mtu", 5), (b"mtu", "mtu", None), (b"mtu=", "mtu", 0),
        (b"rate=7", "rate", 7), (b"r=7", "rate", 7), (b"sl=3", "sl", 3), (b"sl=16", "sl", None), (b"sl=3x", "sl", None),
        (b"sl=3 x", "sl", 3), (b"scope=2", "scope", (2,)), (b"s=5", "scope", (5,)), (b"scope=16", "scope", ()),
        (b"Q_Key=0x1234", "q_key", 0x1234), (b"Q=1", "q_key", 1), (b"TClass=0x101", "tclass", 1), (b"T=9", "tclass", 9),
        (b"FlowLabel=0xfffff", "flow_label", 0xFFFFF), (b"FlowLabel=0x100000", "flow_label", None),
        (b"indx0", "indx0", True), (b"indx", "indx0", False),
        (b"defmember=full", "defmember", "full"), (b"d=f", "defmember", "full"), (b"defmember=", "defmember", "full"),
        (b"defmember=both", "defmember", "both"), (b"defmember=FULL", "defmember", "limited"),
        (b"defmember", "defmember", "limited"), (b"mtux=5", "mtu", None),
    ],
)  # fmt: skip
def test_a_flag(flag, field, value):
    partition = read(b"A=0x10," + flag + b":;", FABRIC).partitions[0]
    assert getattr(partition.statements[0].flags, field) == value


def test_scopes_add_up_and_flags_end_with_their_statement():
    first, second = read(b"A=0x10,scope=3,scope=1,ipoib:;A=0x10:;", FABRIC).partitions[0].statements
    assert (first.flags.scope, first.flags.ipoib) == ((1, 3), True)
    assert (second.flags.scope, second.flags.ipoib) == ((), False)


# 2.6 members
@pytest.mark.parametrize(
    ("token", "who"),
    [
        *((token, ALL) for token in (b"ALL", b"A", b"AL")),
        *((token, ("sm", "n2", "n3")) for token in (b"ALL_CAS", b"ALL_", b"ALL_C", b"ALL_CA")),
        *((token, ("sw",)) for token in (b"ALL_SWITCHES", b"ALL_S")),
        *((token, ("rt",)) for token in (b"ALL_ROUTERS", b"ALL_R")),
        *((token, ("sm",)) for token in (b"SELF", b"S", b"SEL")),
        *((token, ()) for token in (b"NONE", b"N", b"", b" ", b"\n", b"0x99", b"-1", b"9" * 23)),
        *((token, ("n2",)) for token in (b"0x21", b"0X21", b"0x0000000000000021", b"33", b"041", b"+33", b"\v\f33")),
        (b"0x20", ()),  # a node GUID
    ],
)  # fmt: skip
def test_a_member(token, who):
    assert keys(b"A=0x10:" + token + b"=full;") == ["8010" if port in who else "" for port in ALL]


@pytest.mark.parametrize(
    "token", [b"0", b"0x0", b"0x", b"all", b"0x21x", b"node1", b"00:02", b"021f", b"'0x21'", b"0x21\r", b"SELFX", b"-0"]
)
def test_no_member(token):
    assert rejection(b"A=0x10:" + token + b";") == (1, BAD_GUID)


@pytest.mark.parametrize(
    ("suffix", "entry"),
    [
        (b"", "0010"), (b"=full", "8010"), (b"=f", "8010"), (b"=", "8010"), (b" =\t full ", "8010"), (b"=both", "8010"),
        (b"=b", "8010"), (b"=limited", "0010"), (b"=l", "0010"), (b"=FULL", "0010"), (b"=Full", "0010"),
        (b"=fully", "0010"), (b"=full x", "0010"), (b"=full=full", "0010"), (b"=full\r", "0010"),
    ],
)  # fmt: skip
def test_a_membership(suffix, entry):
    assert keys(b"A=0x10:0x21" + suffix + b";", "n2") == [entry]


def test_without_a_membership_it_is_defmember_s():
    assert keys(b"A=0x10,defmember=full:0x21,0x31=limited;", "n2", "n3") == ["8010", "0010"]


# 2.7 precedence and merging
@pytest.mark.parametrize(
    ("members", "entry"),
    [
        (b"0x21=full,0x21", "0010"), (b"0x21,0x21=full", "8010"), (b"ALL=full,0x21", "0010"),
        (b"0x21=full,ALL", "0010"), (b"ALL_CAS=full,ALL_SWITCHES", "8010"), (b"0x21=full,ALL_SWITCHES", "8010"),
        (b"0x21=full;A=0x8010:0x21", "0010"), (b"0x21;B=16:ALL_CAS=full", "8010"), (b"0x21=both,NONE", "8010"),
    ],
)  # fmt: skip
def test_the_last_mention_wins(members, entry):
    assert keys(b"A=0x10:" + members + b";", "n2") == [entry]


def test_self_and_all():
    assert keys(b"A=0x10:ALL=limited,SELF=full;", "sm", "n2") == ["8010", "0010"]
    assert keys(b"A=0x10:SELF=full,ALL=limited;", "sm", "n2") == ["0010", "0010"]


# 2.8 mgid lines
@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        (b"mgid=ff12:401b::16", True), (b"mgid=ff12:401b:8010::16", True), (b"mgid=ff12:401b:8011::16", False),
        (b"mgid=ff12:401b:ffff::ffff:ffff", True), (b"mgid=ff12:401b:ffff::16", False), (b"mgid=ff12::1", True),
        (b"mgid=ff12:601b::1,rate=3,mtu=4", True), (b"mgid=ff12:601b::1,rate=7", False), (b"mgid=fe80::1", False),
        (b"mgid=ff12::1%1", False), (b"mgid=x", False), (b"mgid=", False), (b"mgid=ff12:401b::1,mtu=5", False),
    ],
)  # fmt: skip
def test_an_mgid(line, accepted):
    data = b"A=0x10:\n" + line + b"\n0x21=full;\n"
    assert keys(data, "n2") == ["8010"]
    statement = read(data, FABRIC).partitions[0].statements[0]
    assert [(one.line, one.text, one.accepted) for one in statement.mgids] == [(2, line.decode(), accepted)]


def test_an_mgid_takes_the_members_on_its_line():
    assert keys(b"A=0x10:0x21,mgid=ff12::1,sl=1,0x31=full\n", "n2", "n3") == ["0010", ""]


def test_an_mgid_without_a_value_ends_opensm():
    assert rejection(b"A=0x10:mgid;") == (1, "OpenSM crashes: mgid without a value")


# 2.9 what makes the whole file invalid, and what does not
@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", (None, "no definition found")),
        (b"# c\n\n \t\n", (None, "no definition found")),
        (b"\0A=0x1:ALL;", (None, "no definition found")),
        (b"\xef\xbb\xbf# c\nA=0x1:;", (1, NO_HEADER)),
        (b"A=0x1:ALL;\r\n", (1, NO_HEADER)),
        (b"A=0x1:\r\nALL;\n", (1, BAD_GUID)),
        (b";\n", (1, NO_HEADER)),
        (b"A=0x1:ALL;\n;\n", (2, NO_HEADER)),
        (b"A=0x1:ALL;;\n", (1, NO_HEADER)),
        (b"A=0x1:ALL\nB=0x2:ALL;\n", (2, BAD_GUID)),
        (b"A=0x1,\nipoib:ALL;\n", (1, NO_HEADER)),
        (b"A=b=0x1:ALL;\n", (1, BAD_HEADER)),
        (b"A# =0x1:ALL;\n", (1, NO_HEADER)),
        (b"A=0x1:0x21=full,\f;\n", (1, BAD_GUID)),
    ],
)
def test_the_whole_file_is_invalid(data, wanted):
    assert rejection(data) == wanted
    assert check(data).verdict == "refuse"
    assert default(data) == "rejected"
    assert {port: table(read(data, FABRIC), port) for port in ALL} == dict.fromkeys(ALL, "ffff@0")
    assert read(data, FABRIC).partitions == ()


@pytest.mark.parametrize(
    "data",
    [b"A=0x10:,0x21=full,,\n\n# c\n,;", b"A=0x10:0x21=full", b"A=0x10,,:0x21=full\0;x\n", b"A=0x10:\n#c;\n0x21=full\n"],
)
def test_the_file_is_valid(data):
    assert keys(data, "n2") == ["8010"]


# 2.10 Default
@pytest.mark.parametrize(
    ("data", "held"),
    [
        (b"A=0x10:;", "Fllll"), (b"Default=0x7fff:0x21=full;", "FFlll"), (b"X=0xffff:ALL=full;", "FFFFF"),
        (b"Default=0x7fff:ALL=limited;", "lllll"), (b"Default=0x7fff:ALL_CAS=limited;", "lllll"),
        (b"Default=0x7fff:ALL=limited,SELF=full;", "Fllll"), (b"Default=0x7fff:;", "Fllll"),
        (b"Default=0x7fff:ALL=limited,ALL_SWITCHES=full,ALL_ROUTERS=full,SELF=full,0x31=full;", "FlFFF"),
        (b"Default=0x7fff:0x11=limited;", "lllll"), (b"Default=0x5:ALL=full;Default:0x21=full;", "Fllll"),
    ],
)  # fmt: skip
def test_default(data, held):
    assert default(data) == held
