"""What OpenSM makes of a rendered file is what the table says: the model of its parser against the renderer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subnet import policy, policy_reading
from subnet.opensm_reading import EndPort, Fabric, check, read
from subnet.partitions_conf import Header, Layout, render
from subnet.pkey import entry
from subnet.policy import Limits
from tests.subnet.fabrics import guid
from tests.subnet.golden import GOLDEN
from tests.subnet.strategies import headers, near_guids, tables


def fabric_of(table, more, draw_type) -> Fabric:
    """Every port that the table names, and more; SM ports and the rest are of any node type."""
    named = {*table.by_port(), *table.sm_ports, *(m.guid for m in table.default.members), *more, guid(0x777)}
    ports = {name: EndPort(guid=name, node_guid=name, node_type=draw_type(), capacity=64) for name in named}
    return Fabric(ports=ports, sm_port=table.sm_ports[0])


@given(tables(), headers, st.lists(near_guids, max_size=5), st.data())
def test_opensm_gives_each_port_the_keys_of_the_table(table, header, more, data):
    fabric = fabric_of(table, more, lambda: data.draw(st.sampled_from(["CA", "CA", "SW", "RT"])))
    reading = read(render(table, header), fabric)
    assert reading.rejection is None
    for name, port in fabric.ports.items():
        keys = table.keys_of(name, port.node_type, is_self=name == fabric.sm_port)
        assert set(reading.tables[name].values()) == {entry(*key) for key in keys.items()}, name


# OpenSM looks for a group's flags behind a line that has none: with our comma there it finds an empty one.
HARMLESS = {"mgid-line"}


@given(tables(), headers)
def test_nothing_rendered_is_found_fault_with(table, header):
    checked = check(render(table, header))
    faults = {finding.rule for finding in checked.findings if finding.severity != "ok"} - HARMLESS
    # What only a multicast group can do: the last rule of the policy refuses such a table.
    assert (checked.verdict == "refuse") == bool(tuple(policy_reading.violations(table)))
    if not policy.check(table, Limits(64), sm_ports_registered=table.sm_ports):
        assert faults == set()


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("layout", Layout)
def test_golden_tables_have_no_findings(name, layout):
    table, header = GOLDEN[name]
    checked = check(render(table, Header(header.subnet, header.revision, header.parent, layout)))
    assert {finding.rule for finding in checked.findings if finding.severity != "ok"} <= HARMLESS
