"""My servers and one of them: state, P_Key and index as last read, settings, and how stable the index is."""

import json
import zlib

import pytest
from django.utils import timezone

from deploy import table_history
from deploy.models import Observation, TableChanges
from deploy.queries import observed_fabric
from inventory.models import Port
from partitions.models import Membership
from people.models import TenantRole
from portal import sight
from portal.ports import server_rows
from portal.stability import newest_changes


def kept(observation):
    """What the worker keeps of a look."""
    table_history.keep(observation, fabric=observed_fabric(observation), processes={"m1": (1, 1), "m2": (1, 1)})
    return observation


def test_the_list_shows_device_key_and_index_as_read(portal, client):
    portal.provider.observe()
    page = client.get(portal.address("servers")).content.decode()
    assert "srv-001" in page
    assert "srv-002" in page
    assert "srv-003" in page
    assert "mlx5_0" in page
    assert "0x2c41" in page
    assert "srv-004" not in page
    assert "research" not in page
    assert "srv-005" not in page


def test_before_the_first_reading_nothing_is_claimed(portal, client):
    Observation.objects.update(state="FAILED")
    page = client.get(portal.address("servers")).content.decode()
    assert "not read" in page
    server = portal.provider.servers[0]
    assert "NCCL_IB_PKEY" not in client.get(portal.address("server", server.public_id)).content.decode()


def test_the_servers_page_has_what_to_paste(portal, client):
    portal.provider.observe()
    page = client.get(portal.address("server", portal.provider.servers[0].public_id)).content.decode()
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nNCCL_IB_PKEY=1\n" in page
    assert "UCX_IB_PKEY=0x2c41" in page


def test_a_limited_member_is_told_so(portal, shared, client):
    portal.provider.observe()
    page = client.get(portal.address("server", portal.provider.servers[0].public_id)).content.decode()
    assert "limited member" in page
    assert "0x0100" in page


def test_a_key_that_should_not_be_there_is_counted_and_not_shown(portal, client):
    server = portal.provider.servers[0]
    guid = str(Port.objects.filter(hca__server=server).order_by("guid").first().guid)
    portal.provider.observe(extra={guid: 0x8000 | portal.site.research.pkey})
    page = client.get(portal.address("server", server.public_id)).content.decode()
    assert "It holds 1 key that it should not" in page
    assert "not as it should be" in page
    assert "3d02" not in page


def test_a_port_without_its_key_is_not_as_it_should_be(portal):
    guid = str(Port.objects.filter(hca__server=portal.provider.servers[0]).order_by("guid").first().guid)
    portal.provider.observe(unread=[guid])
    rows = server_rows(sight.own_servers(portal.seats["max"]))
    assert [row.lamp.word for row in rows] == ["did not answer", "as it should be", "as it should be"]


def test_an_empty_portal_says_why(portal, client_of):
    Membership.objects.all().delete()
    page = client_of(portal.seats["max"].person).get(portal.address("servers")).content.decode()
    assert "No server yet" in page


def test_the_newest_change_of_an_index_is_found(portal):
    provider, server = portal.provider, portal.provider.servers[0]
    guid = str(Port.objects.filter(hca__server=server).order_by("guid").first().guid)
    key = portal.site.training.pkey
    kept(provider.observe())
    before = newest_changes(subnet=provider.subnet, guids=[guid], pkeys=[key])
    assert before.changes == {}
    assert set(before.known) == {(guid, key)}
    provider.settled_move(provider.servers[4], None, portal.site.training)
    at = timezone.now()
    kept(provider.observe(read_at=at))
    row = TableChanges.objects.latest("pk")
    changed = table_history.unpacked(row.data)
    changed[guid] = {"0": 0x7FFF, "2": 0x8000 | key}
    TableChanges.objects.filter(pk=row.pk).update(data=zlib.compress(json.dumps(changed).encode()))
    found = newest_changes(subnet=provider.subnet, guids=[guid], pkeys=[key])
    change = found.changes[guid, key]
    assert (change.before, change.after, change.at) == (1, 2, at)


@pytest.mark.parametrize("name", ["servers", "partitions"])
@pytest.mark.parametrize("who", ["olga", "bruno"])
def test_who_has_no_role_there_gets_nothing(portal, client_of, name, who):
    person = portal.provider.olga if who == "olga" else portal.seats["bruno"].person
    assert client_of(person).get(portal.address(name)).status_code == 404


def test_anothers_server_is_not_there(portal, client):
    for server in portal.provider.servers[3:]:
        assert client.get(portal.address("server", server.public_id)).status_code == 404


def test_a_tenants_person_lands_in_the_portal(portal, client, client_of):
    assert client.get("/", follow=True).request["PATH_INFO"] == portal.address("servers")
    assert client_of(portal.provider.olga).get("/").status_code == 200


def test_who_acts_for_two_tenants_chooses(portal, client, client_of):
    TenantRole.objects.create(user=portal.seats["max"].person, tenant=portal.provider.bert, role="VIEWER")
    page = client.get("/portal/").content.decode()
    assert "Acme" in page
    assert "Bert" in page


def test_a_stranger_finds_no_portal(portal, client_of, charlie):
    assert client_of(charlie).get("/portal/").status_code == 404
    assert client_of(charlie).get("/").status_code == 404
