"""The versions on the allow-list, tried on the real OpenSM that is installed; a real site, qualified and checked."""

import contextlib
import hashlib
import json
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from audit.values import SYSTEM
from deploy import hosts, manager_key, opensm_versions, qualification, qualifying
from deploy.models import Qualification
from inventory.models import ManagerHost
from lab.rows import enrol_site
from remote.errors import AccessRefused
from remote.host_check import QualifiableHost
from remote.ssh import SSHShell
from subnet.guid import GUID
from subnet.observed import parse_reading
from subnet.qualification import UNPACED

pytestmark = pytest.mark.contract
OPEN = {0: 0xFFFF}


def installed() -> str:
    """The version that `opensm --version` names."""
    said = subprocess.run(["opensm", "--version"], check=False, capture_output=True, text=True).stdout
    return next(line.split()[1] for line in said.splitlines() if line.startswith("OpenSM "))


@contextlib.contextmanager
def host_of(site, name, *, key_file=None):
    manager = site.manager(name)
    shell = SSHShell(
        address=manager.address, port=manager.ssh_port, user=manager.user, key_file=key_file or site.manager_key,
        host_key=manager.host_key,
    )  # fmt: skip
    host = QualifiableHost(manager.name, shell, manager.wrapper_digest, manager.reader_digest)
    try:
        yield host
    finally:
        host.close()


def swept(host: QualifiableHost, data: bytes, *, generation: int) -> dict[GUID, dict[int, int]]:
    """Place these bytes, whatever they are, and read every table behind the barrier."""
    digest = hashlib.sha256(data).hexdigest()
    host.stage(data, digest=digest)
    host.place(digest=digest, generation=generation)
    host.barrier(host.reload(), timeout_s=20)
    fabric = parse_reading(host.read_tables(topology="list", timeout_s=20))
    return {guid: dict(port.pkeys) for guid, port in fabric.end_ports.items()}


def file_of(*partitions: str) -> bytes:
    first = "Default=0x7fff, ipoib, defmember=limited : ALL=limited, ALL_SWITCHES=full, SELF=full;"
    return "".join(f"{line}\n" for line in (first, *partitions)).encode()


def test_the_installed_version_is_on_the_list_and_does_what_the_list_says(site):
    """The error path and the index behaviour; for a new version the failure prints what to write into the file."""
    guid = site.fabric.servers[0].port_guids[0]
    port = GUID(guid)
    before = site.manager("sm-a").partitions_file.read_bytes()
    with host_of(site, "sm-a") as host:
        one = swept(host, file_of(f"a=0x11: {guid}=full;", f"b=0x12: {guid}=full;"), generation=901)[port]
        index = {entry: at for at, entry in one.items()}
        two = swept(host, file_of(f"b=0x12: {guid}=full;", f"c=0x13: {guid}=full;"), generation=902)[port]
        log = site.manager("sm-a").log_file.read_bytes()
        rejected = swept(host, b"Default=0x7fff : ALL=limited\n;;\n", generation=903)
        said = site.manager("sm-a").log_file.read_bytes()[len(log) :].decode(errors="replace")
        swept(host, before, generation=904)
    line = "Partition configuration in error; retrying with default config"
    found = {
        "rejected_file": "every port only 0xffff" if all(table == OPEN for table in rejected.values()) else "other",
        "rejected_log": line if line in said else "no such line",
        "survivor_keeps_index": two.get(index[0x8012]) == 0x8012,
        "new_key_after_last_used": two.get(max(index.values()) + 1) == 0x8013,
        "default_at_index_0": one[0] == two[0] == 0x7FFF,
    }
    entry = opensm_versions.raw().get(installed())
    assert entry is not None, f"{installed()} is not in {opensm_versions.FILE.name}: {json.dumps({'tried': found})}"
    assert found == entry["tried"]


def test_the_defaults_of_the_installed_version_are_those_on_the_list(tmp_path):
    conf = tmp_path / "opensm.conf"
    subprocess.run(["opensm", "-c", str(conf)], check=False, capture_output=True, cwd=tmp_path)
    told = dict(line.split(None, 1) for line in conf.read_text().splitlines() if line and not line.startswith("#"))
    defaults = opensm_versions.tried()[installed()].defaults
    assert {name: told[name].strip() for name in defaults} == dict(defaults)


@pytest.fixture
def subnet(site, db, settings, tmp_path):
    """The lab's rows, without the lab's own report; FabricUI's key is a copy that a test may change."""
    key = tmp_path / "keys" / "manager"
    key.parent.mkdir(mode=0o700)
    shutil.copy(site.manager_key, key)
    settings.MANAGER_KEY_FILE = str(key)
    subnet, _ = enrol_site(site)
    Qualification.objects.all().delete()
    return subnet


def test_the_lab_qualifies_by_what_is_measured_there(subnet, site):
    for _ in range(3):  # a busy machine can slow one sweep of a pair; a person would qualify again, too
        row = qualification.request(subnet=subnet, actor=SYSTEM, may_sweep=True)
        with hosts.connected(subnet) as connected:
            qualifying.qualify(request=row, hosts=connected, sweeps_of_each=1)
        if row.is_fit:
            break
    report = row.report
    assert row.is_fit, [one for one in report["findings"] if one["severity"] == "refuse"]
    assert {name: item["opensm_version"] for name, item in report["managers"].items()} == {
        "sm-a": installed(), "sm-b": installed(),
    }  # fmt: skip
    assert sorted(item["role"] for item in report["managers"].values()) == ["MASTER", "STANDBY"]
    hcas = sum(len(box.port_guids) for box in (*site.fabric.servers, *site.fabric.managers))
    assert report["fabric"]["ports"] == sum(report["fabric"]["capacities"].values()) == hcas
    assert report["sweeps"]["rate"] == UNPACED
    assert 0 < report["sweeps"]["alone"][0] < 5


def test_the_command_prints_the_report_and_refuses_without_a_measured_sweep(subnet):
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("qualify", "lab", "--here", "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert [one["check"] for one in report["findings"] if one["severity"] == "refuse"] == ["sweep"]
    assert qualification.why_not(subnet).startswith("The newest qualification of subnet lab speaks against it")


def test_the_check_names_what_is_missing_on_a_real_host(subnet, site):
    out = StringIO()
    call_command("check_manager_host", "lab", "sm-a", "--here", stdout=out)
    assert "MISSING" not in out.getvalue()
    assert "option   sm_priority" in out.getvalue()
    host_env = Path(site.manager("sm-a").directory) / "host" / "host.env"
    kept = host_env.read_text()
    host_env.write_text(kept + "PYTHON=/nonexistent/python3\nLOG=/nonexistent/log\n")
    try:
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("check_manager_host", "lab", "sm-a", "--here", stdout=out)
        lines = [line for line in out.getvalue().splitlines() if line.startswith("MISSING")]
    finally:
        host_env.write_text(kept)
    assert [line.split()[1].rstrip(":") for line in lines] == ["python", "libibumad", "sm_answers", "log", "binding"]
    assert "apt install python3" in lines[0]


def test_the_key_is_changed_on_the_real_hosts_and_never_locks_out(subnet, site, settings, tmp_path):
    new, current = tmp_path / "keys" / "new", Path(settings.MANAGER_KEY_FILE)
    first = manager_key.public_line(current)
    files = [Path(site.manager(name).directory) / "authorized_keys" for name in ("sm-a", "sm-b")]
    files = [file if file.exists() else next(file.parent.rglob("authorized_keys")) for file in files]
    kept = [file.read_text() for file in files]
    try:
        out = StringIO()
        with pytest.raises(CommandError, match="The old key stays in use"):
            call_command("rotate_manager_key", "--new", str(new), stdout=out)
        lines = [line.strip() for line in out.getvalue().splitlines() if "restrict,command=" in line]
        assert len(lines) == 2
        files[0].write_text(kept[0] + lines[0] + "\n")  # one host is not enough
        with pytest.raises(CommandError, match="The old key stays in use"):
            call_command("rotate_manager_key", "--new", str(new), stdout=StringIO())
        assert manager_key.public_line(current) == first
        files[1].write_text(kept[1] + lines[1] + "\n")
        call_command("rotate_manager_key", "--new", str(new), stdout=StringIO())
        assert manager_key.public_line(current) != first
        old = current.with_name("manager.previous")
        with pytest.raises(CommandError, match="Still takes the old key: sm-a, sm-b"):
            call_command("rotate_manager_key", "--retired", "--new", str(old), stdout=StringIO())
        for file, line in zip(files, lines, strict=True):
            file.write_text(line + "\n")
        call_command("rotate_manager_key", "--retired", "--new", str(old), stdout=StringIO())
        with hosts.connected(subnet) as connected:
            assert [host.identify().opensm_version for host in connected] == [installed()] * 2
        with host_of(site, "sm-a", key_file=old) as host, pytest.raises(AccessRefused):
            host.identify()
    finally:
        for file, text in zip(files, kept, strict=True):
            file.write_text(text)


def test_a_host_is_enrolled_by_the_fingerprint_read_on_it(subnet, site):
    manager = site.manager("sm-b")
    ManagerHost.objects.filter(name="sm-b").update(retired_at="2026-01-01T00:00Z")
    said = subprocess.run(
        ["ssh-keygen", "-l", "-f", "/dev/stdin"], input=manager.host_key, check=True, capture_output=True, text=True
    ).stdout
    words = [
        "enrol_manager_host", "lab", "sm-b", "--address", manager.address, "--ssh-port", str(manager.ssh_port),
        "--ssh-user", manager.user, "--port-guid", manager.port_guid, "--wrapper-digest", manager.wrapper_digest,
        "--reader-digest", manager.reader_digest,
    ]  # fmt: skip
    with pytest.raises(CommandError, match="Nothing was pinned"):
        call_command(*words, "--fingerprint", "SHA256:" + "A" * 43, stdout=StringIO())
    assert not ManagerHost.objects.filter(name="sm-b").exists()
    out = StringIO()
    call_command(*words, "--fingerprint", said.split()[1], stdout=out)
    assert said.split()[1] in out.getvalue()
    assert ManagerHost.objects.get(name="sm-b").host_key == manager.host_key
