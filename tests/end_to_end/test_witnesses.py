"""On the real fabric: both witnesses agree on every port; a pulled cable and a reboot show on the server's page."""

import pytest
from django.urls import reverse

from inventory.models import Port
from inventory.operations import register_report
from inventory.report import parse_report
from lab import breaking
from lab.servers import sysfs_root, write_tree
from partitions.errors import MoveRefused
from tests.end_to_end.conftest import until
from tests.inventory.reports import enrolled, port, said

pytestmark = pytest.mark.contract


def report(desk, box, server, boot_id):
    """What the real agent reads from the server's tree as the fabric is now, registered."""
    from inventory import agent

    write_tree(sysfs_root(desk.site, box), box, desk.site.read_ports(box.port_guids))
    read = agent.read_report(
        str(sysfs_root(desk.site, box)), {"hostname": box.hostname, "boot_id": boot_id, "machine_id": None}
    )
    return register_report(server=server, report=parse_report(read))


def seen(desk):
    observation = desk.observe()
    assert observation.state == "DONE", observation.failure


@pytest.fixture
def page(client, desk):
    client.force_login(desk.olga)

    def read(server):
        return client.get(reverse("console:server", args=[server.public_id])).content.decode()

    return read


def test_a_pulled_cable_and_a_reboot_show_within_one_look(desk, page, settings):
    settings.REGISTRATION_TRUST = "witnessed"
    Port.objects.update(confirmed_at=None, confirmed_how="")
    server, box = desk.servers[0], desk.site.fabric.servers[0]
    with pytest.raises(MoveRefused, match="not confirmed"):
        desk.stage(server, None, desk.training)
    seen(desk)
    registered = Port.objects.filter(hca__isnull=False)
    assert set(registered.values_list("testimony", "confirmed_how")) == {("agrees", "witnessed")}
    desk.stage(server, None, desk.training)
    before = page(server)
    assert "both agree" in before
    assert "link down" not in before

    hca = box.hcas[0]
    breaking.cut_link(desk.site, hca)
    try:
        until(lambda: hca.port_guid not in desk.site.read_ports([hca.port_guid]), "the cable is out")
        seen(desk)
        row = Port.objects.get(guid=hca.port_guid)
        assert (row.seen_state, row.leaf_guid, row.leaf_port) == ("ABSENT", hca.leaf_guid, hca.leaf_port)
        pulled = page(server)
        assert "link down: not there at the last look" in pulled
        assert f"ACTIVE at {hca.leaf_guid} port {hca.leaf_port}" in pulled  # in its history
        report(desk, box, server, "boot-after-the-cable")
        again = page(server)
        assert "boot-after-the-cable" in again
        assert "reboot" in again
        row.refresh_from_db()
        assert (row.state, row.confirmed_how) == ("DOWN", "witnessed")
    finally:
        breaking.restore_link(desk.site, hca)
    until(lambda: hca.port_guid in desk.site.read_ports([hca.port_guid]), "the cable is in again")
    until(lambda: desk.site.read_ports([hca.port_guid])[hca.port_guid]["state"] == "ACTIVE", "its link is up")
    report(desk, box, server, "boot-3")
    seen(desk)
    assert Port.objects.get(guid=hca.port_guid).testimony == "agrees"


def test_a_server_that_names_anothers_port_is_contradicted_by_the_fabric(desk, settings):
    """The owner has not registered yet, so there is no conflict; the fabric knows better all the same."""
    settings.REGISTRATION_TRUST = "witnessed"
    victim = desk.site.fabric.servers[1]
    hca = victim.hcas[0]
    Port.objects.filter(guid=hca.port_guid).update(hca=None, confirmed_at=None, confirmed_how="")
    desk.servers[1].hcas.filter(node_guid=hca.node_guid).delete()
    seen(desk)
    row = Port.objects.get(guid=hca.port_guid)
    spoofer = enrolled(desk.subnet, "spoofer")[0]
    claim = port(str(hca.port_guid), node_guid=str(hca.node_guid), lid=row.seen_lid, sm_lid=row.seen_sm_lid)
    register_report(server=spoofer, report=parse_report(said(claim, hostname="spoofer")))
    row.refresh_from_db()
    assert row.server == spoofer
    assert (row.testimony, row.confirmed_at) == ("disagrees", None)
    assert any("calls itself a port of" in point[4] for point in row.points)
    with pytest.raises(MoveRefused, match="not confirmed"):
        desk.stage(spoofer, None, desk.training)
