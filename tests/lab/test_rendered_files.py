"""The golden files through the real OpenSM: each port gets the keys that the table says, and no group is refused."""

import pytest

from lab.oracle import Oracle
from subnet.guid import GUID
from subnet.partitions_conf import render
from subnet.pkey import entry
from tests.subnet.fabrics import LEAF, SM1, guid
from tests.subnet.golden import GOLDEN, one_tenant

pytestmark = pytest.mark.contract

# Long lists are the same lines again, and a simulator of 600 HCAs takes long to start.
FILES = sorted(GOLDEN.keys() - {"long-list.conf"})
VERBOSE = ("-D", "0x07")


def net(ports: set[GUID]) -> str:
    """One switch with an HCA on each port; an HCA's port GUID is its node GUID and the port's number."""
    nodes = [f"{port.number - 1:016x}" for port in sorted(ports)]
    cables = [f'[{at}] "H-{node}"[1]' for at, node in enumerate(nodes, start=1)]
    switch = [f"switchguid={LEAF}", f'Switch {len(nodes)} "S-{LEAF[2:]}" "leaf"', *cables, ""]
    hcas = [
        f'caguid=0x{node}\nHca 1 "H-{node}" "hca-{at}"\n[1] "S-{LEAF[2:]}"[{at}]\n'
        for at, node in enumerate(nodes, start=1)
    ]
    return "\n".join([*switch, *hcas])


def named_in(table) -> set[GUID]:
    return {*table.by_port(), *table.sm_ports, *(member.guid for member in table.default.members), guid(0x777)}


@pytest.mark.parametrize("name", FILES)
def test_opensm_does_what_the_table_says(name):
    table, header = GOLDEN[name]
    ports = named_in(table)
    with Oracle(net(ports)) as oracle:
        answer = oracle.run(render(table, header), sm_port=SM1)
    assert not answer.rejected
    for port in ports:
        keys = table.keys_of(port, "CA", is_self=port == SM1)
        assert set(answer.tables[port].values()) == {entry(*key) for key in keys.items()}, port
    keys = table.keys_of(LEAF, "SW")
    assert set(answer.tables[LEAF].values()) == {entry(*key) for key in keys.items()}
    assert not [line for line in answer.log_lines if "MC group" in line or "mgid" in line]


def test_a_group_without_flags_needs_its_comma_and_a_line_of_its_own():
    data = render(one_tenant(), GOLDEN["one-tenant.conf"][1]).decode()
    head = "training=0x2c41, defmember=limited :\n"
    with Oracle(net(named_in(one_tenant()))) as oracle:

        def verbose(text: str):
            return oracle.run(data.replace(head, head + text).encode(), sm_port=SM1, options=VERBOSE)

        with_comma, without = verbose(" mgid=ff12:401b::1234,\n"), verbose(" mgid=ff12:401b::1234\n")
        swallowing = oracle.run(
            data.replace("# server srv-001, 2 ports\n ", " mgid=ff12::1,sl=1, ").encode(), sm_port=SM1
        )
    # Without it OpenSM takes for flags what an earlier, longer line left behind this one's end.
    assert not [line for line in with_comma.log_lines if "unrecognized mgroup flag" in line]
    assert [line for line in without.log_lines if "unrecognized mgroup flag" in line]
    assert 0xAC41 in with_comma.tables[guid(1)].values()
    assert 0xAC41 not in swallowing.tables[guid(1)].values()
    assert 0xAC41 in swallowing.tables[guid(0x11)].values()
