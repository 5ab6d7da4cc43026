"""“Check this host”: every missing piece by name, on a host with a pretended OpenSM; and a timed sweep's verb."""

import os
import time
from pathlib import Path

import pytest

from remote.errors import OpenSMDiffers, OpenSMNotRunning
from remote.host_check import QualifiableHost
from remote.local import LocalShell
from subnet.qualification import HostFacts
from tests.remote.sites import PORT_GUID, Host, looks_like_opensm, wait_until

ANSWER = "printf 'port_guid=%s\\nstate=STANDBY\\nactivity=41\\n' 0x0210fa10000a0001"


@pytest.fixture
def host(prepared: Host) -> QualifiableHost:
    prepared.replace_reader(ANSWER)
    prepared.partitions.write_text("Default=0x7fff : ALL=limited;\n")
    prepared.log.write_text("")
    shell = LocalShell(prepared.wrapper, prepared.conf)
    return QualifiableHost("sm1", shell, prepared.wrapper_digest, prepared.reader_digest)


def missing(facts: HostFacts) -> dict[str, str]:
    return {piece.name: piece.sentence for piece in facts.missing}


def debian(prepared: Host) -> list[str]:
    """The command line of Debian's opensm@.service, with the -P that docs/manager-hosts.md adds."""
    return ["--guid", PORT_GUID, "--log_file", str(prepared.log), "-P", str(prepared.partitions)]


def started(prepared: Host, folder: Path, *words: str):
    return looks_like_opensm(
        folder, *debian(prepared), *words, simulator=prepared.simulator,
        environment={"OSM_TMP_DIR": str(prepared.list_file.parent)},
    )  # fmt: skip


def test_a_host_with_everything_misses_nothing(host: QualifiableHost, prepared: Host, tmp_path: Path) -> None:
    with started(prepared, tmp_path / "sm"):
        facts = host.check()
    assert missing(facts) == {}
    assert facts.forced_command == f"{prepared.wrapper} {prepared.conf}"
    assert facts.port_guid == PORT_GUID
    assert facts.partition_file == str(prepared.partitions)
    opensm = next(piece for piece in facts.pieces if piece.name == "opensm")
    assert "PID" in opensm.sentence
    assert sorted(path.name for path in prepared.partitions.parent.iterdir()) == ["partitions.conf"]


def test_each_thing_that_is_not_there_has_its_sentence(host: QualifiableHost, prepared: Host) -> None:
    prepared.set("PYTHON=/nonexistent/python3")
    prepared.set("IBSIM_SOCKNAME=")
    prepared.partitions.unlink()
    prepared.log.unlink()
    found = missing(host.check())
    assert {"python", "libibumad", "sm_answers", "partitions", "log", "opensm"} <= set(found)
    assert "apt install python3" in found["python"]
    assert "infiniband-diags" in found["libibumad"]
    assert "full member of Default" in found["partitions"]
    assert f"No OpenSM runs for port {PORT_GUID}" in found["opensm"]
    if not list(Path("/dev").glob("infiniband/umad*")):
        assert "modprobe ib_umad" in found["umad"]


def test_a_folder_that_is_gone_is_named(host: QualifiableHost, prepared: Host) -> None:
    prepared.set("PARTITIONS=/nonexistent/etc/partitions.conf")
    assert missing(host.check())["write"].startswith("/nonexistent/etc does not exist.")


def test_it_answers_although_the_pins_are_others(prepared: Host) -> None:
    host = QualifiableHost("sm1", LocalShell(prepared.wrapper, prepared.conf), "0" * 64, "0" * 64)
    facts = host.check()
    assert (facts.wrapper_digest, facts.reader_digest) == (prepared.wrapper_digest, prepared.reader_digest)


def test_options_come_from_the_file_then_from_the_command_line(
    host: QualifiableHost, prepared: Host, tmp_path: Path
) -> None:
    conf = tmp_path / "sm" / "opensm.conf"
    conf.parent.mkdir()
    conf.write_text(
        "# keep_pkey_indexes FALSE\nkeep_pkey_indexes TRUE\npart_enforce both\nsm_key 0x1234567890abcdef\n"
        "sm_priority 3\nlmc 1\nlmc 2\nconsole off\n"
    )
    with started(prepared, tmp_path / "sm", "-F", str(conf), "-Z", "off", "-W"):
        facts = host.check()
        first = host.identify().options_digest
    assert facts.options["keep_pkey_indexes"] == "TRUE"
    assert facts.options["part_enforce"].startswith("off")
    assert facts.options["allow_both_pkeys"].startswith("TRUE")
    assert facts.options["lmc"] == "2"
    assert "console" not in facts.options
    assert facts.options["sm_key"].startswith("sha256:")
    assert facts.options_digest == first != ""
    conf.write_text(conf.read_text().replace("sm_priority 3", "sm_priority 9"))
    with started(prepared, tmp_path / "sm", "-F", str(conf), "-Z", "off", "-W"):
        assert host.identify().options_digest == first  # a priority hands over, and makes no other OpenSM
    conf.write_text(conf.read_text().replace("lmc 2", "lmc 0"))
    with started(prepared, tmp_path / "sm", "-F", str(conf), "-Z", "off", "-W"):
        assert host.identify().options_digest != first


def test_both_verbs_read_the_options_alike_and_neither_tells_a_key(
    host: QualifiableHost, prepared: Host, tmp_path: Path
) -> None:
    conf = tmp_path / "sm" / "opensm.conf"
    conf.parent.mkdir()
    conf.write_text("sm_priority 9\npart_enforce both\nqos FALSE\nm_key 0x1\nsa_key 0x0001\nmax_op_vls 3\n")
    with started(prepared, tmp_path / "sm", "-F", str(conf), "-p", "7", "--part_enforce=off", "-Q", "-k", "0xbeef"):
        told, options = host.check().options, host.options()
        raw = host._checked("options") + host._call("check", timeout_s=40)
    assert told == {
        "sm_priority": "7 argv", "part_enforce": "off argv", "qos": "TRUE argv", "m_key": "0x1", "sa_key": "0x0001",
        "max_op_vls": "3", "sm_key": told["sm_key"],
    }  # fmt: skip
    assert options.in_file == {"sm_priority": "9", "part_enforce": "both", "qos": "FALSE", "max_op_vls": "3"}
    assert options.on_command_line == {"sm_priority": "7", "part_enforce": "off", "qos": "TRUE"}
    assert options.keys == {"m_key": True, "sa_key": False, "sm_key": True}
    assert b"beef" not in raw


def test_a_configuration_changed_since_the_start_is_told(host: QualifiableHost, prepared: Host, tmp_path: Path) -> None:
    conf = tmp_path / "sm" / "opensm.conf"
    conf.parent.mkdir()
    conf.write_text("lmc 0\n")
    os.utime(conf, (1, 1))
    with started(prepared, tmp_path / "sm", "-F", str(conf)):
        assert not host.check().is_config_newer
        later = time.time() + 100
        os.utime(conf, (later, later))
        assert host.check().is_config_newer


def test_a_sweep_is_asked_of_a_running_opensm_with_the_registered_file(
    host: QualifiableHost, prepared: Host, tmp_path: Path
) -> None:
    with pytest.raises(OpenSMNotRunning):
        host.sweep(smps_per_s=0, timeout_s=5)
    with (
        looks_like_opensm(
            tmp_path / "sm", "-g", PORT_GUID, "-P", "/elsewhere.conf", simulator=prepared.simulator
        ) as heard,
        pytest.raises(OpenSMDiffers, match="not told to sweep"),
    ):
        host.sweep(smps_per_s=0, timeout_s=5)
    assert not heard.exists() or heard.read_text() == ""


def test_a_sweep_sends_one_signal_and_times_it_by_the_hosts_clock(
    host: QualifiableHost, prepared: Host, tmp_path: Path
) -> None:
    prepared.list_file.write_text("")
    later = time.time() + 100
    os.utime(prepared.list_file, (later, later))  # as if OpenSM wrote it then
    with started(prepared, tmp_path / "sm") as heard:
        measured = host.sweep(smps_per_s=0, timeout_s=5)
        wait_until(lambda: heard.exists() and heard.read_text().count("hup") == 1)
    assert 90 < measured.seconds < 101
    assert not measured.was_read_beside
