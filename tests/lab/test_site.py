"""The lab as it comes up: roles, count, equal files, manager hosts that answer, servers that register themselves."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lab.errors import LabError
from lab.servers import boot, reboot, report, sysfs_root
from lab.site import Site
from subnet.partitions_conf import parse_strict
from tests.lab.traces import killed_client, until

pytestmark = pytest.mark.contract


def test_the_first_manager_is_master_and_the_second_standby(site):
    sms = site.sms()
    first, second = site.managers
    assert set(sms) == {first.port_guid, second.port_guid}
    assert sms[first.port_guid]["state"] == "MASTER"
    assert sms[second.port_guid]["state"] == "STANDBY"
    assert sms[first.port_guid]["priority"] > sms[second.port_guid]["priority"]


def test_ibnetdiscover_counts_what_the_fabric_says(site):
    assert site.counted_hcas() == site.fabric.end_ports == 14


def test_every_port_answers_is_active_and_follows_the_master(site):
    ports = site.read_ports()
    master_lid = ports[site.managers[0].port_guid]["lid"]
    assert set(ports) == {hca.port_guid for hca in site.fabric.hcas()}
    assert {port["state"] for port in ports.values()} == {"ACTIVE"}
    assert {port["sm_lid"] for port in ports.values()} == {master_lid}
    assert len({port["lid"] for port in ports.values()}) == len(ports)


def test_both_hosts_start_with_the_same_strict_file_and_the_fabric_shows_it(site):
    first, second = (manager.partitions_file.read_bytes() for manager in site.managers)
    assert first == second
    table = parse_strict(first).table
    assert set(table.sm_ports) == {manager.port_guid for manager in site.managers}
    for guid, port in site.read_ports().items():
        assert port["pkeys"] == {"0": 0xFFFF if guid in table.sm_ports else 0x7FFF}


def test_the_manager_hosts_have_keys_addresses_and_folders_of_their_own(site):
    first, second = site.managers
    assert first.address != second.address
    assert first.host_key != second.host_key
    assert first.directory != second.directory
    assert first.opensm_pid != second.opensm_pid
    assert first.wrapper_digest == second.wrapper_digest


@pytest.mark.parametrize("name", ["sm-a", "sm-b"])
def test_the_deploy_key_opens_the_wrapper_and_nothing_else(site, call, name):
    assert call(name, "read").stdout == site.manager(name).partitions_file.read_bytes()
    identity = dict(line.split("=", 1) for line in call(name, "identify").stdout.decode().splitlines())
    manager = site.manager(name)
    assert identity["wrapper_digest"] == manager.wrapper_digest
    assert identity["reader_digest"] == manager.reader_digest
    assert identity["pid"] == str(manager.opensm_pid)
    assert identity["process_partition_file"] == str(manager.partitions_file)
    assert call(name, "ls").exit_status == 64


def test_an_attached_site_sees_the_same_lab(site):
    other = Site.attach(site.directory)
    assert other.fabric == site.fabric
    assert other.managers == site.managers


def test_a_second_lab_in_the_same_directory_is_refused(site):
    with pytest.raises(LabError, match="There is a lab"):
        Site.up(site.directory)


def test_a_killed_client_loses_its_folder_and_its_slot(site):
    """Eight killed clients beside two SMs would fill the simulator for good."""
    for _ in range(10):
        killed_client(site)
        site.order("reap")
    assert len(site.order("console", line="Attached").splitlines()) == 2
    alive = {str(manager.opensm_pid) for manager in site.managers}
    until(lambda: {path.name.removeprefix("sys-") for path in site.layout.run.glob("sys-*")} == alive)


@pytest.fixture
def door():
    """A registration door that keeps what is posted."""
    posted = []

    class Door(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append((self.path, self.headers["Authorization"], body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"ports": []}')

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_server_boots_and_its_agent_reports_what_the_fabric_holds(site, door):
    url, posted = door
    boot(site, site.fabric.servers, url=url, token="one-token")
    reports = {body["hostname"]: body for path, _, body in posted if path == "/register/v1/reports"}
    assert set(reports) == {server.hostname for server in site.fabric.servers}
    fabric = site.read_ports()
    for server in site.fabric.servers:
        ports = reports[server.hostname]["ports"]
        assert [port["port_guid"] for port in ports] == list(server.port_guids)
        for port in ports:
            seen = fabric[port["port_guid"]]
            assert port["partition_candidate"] is True
            assert port["system_image_guid"] == server.system_guid
            assert (port["lid"], port["sm_lid"], port["state"]) == (seen["lid"], seen["sm_lid"], seen["state"])
            assert port["pkeys"] == {index: f"0x{entry:04x}" for index, entry in seen["pkeys"].items()}
        assert reports[server.hostname]["skipped"] == []


def test_a_server_that_boots_again_keeps_its_credential_and_changes_its_boot_id(site, door):
    url, posted = door
    server = site.fabric.servers[3]
    boot(site, server, url=f"{url}/register/v1/", token="one-token")
    report(site, [server], url=url, token="one-token")
    reboot(site, server)
    first, again, second = [(secret, body) for path, secret, body in posted if path == "/register/v1/reports"]
    assert first[0] == second[0]
    assert first[1]["boot_id"] == again[1]["boot_id"] != second[1]["boot_id"]
    assert first[1]["machine_id"] == second[1]["machine_id"]
    assert sysfs_root(site, server).is_dir()


def test_a_door_that_is_shut_is_an_error_that_names_the_servers(site):
    with pytest.raises(LabError, match=r"srv-001: .*not reached"):
        boot(site, site.fabric.servers[0], url="http://127.0.0.1:1", token="one-token")
