"""Which OpenSM a manager host binds to: by port GUID, and only if it reads the registered partition file."""

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from remote.errors import OpenSMDiffers, OpenSMNotRunning
from remote.manager_host import ManagerHost
from tests.remote.sites import PORT_GUID, Host, looks_like_opensm, wait_until

OTHER_GUID = "0x0210fa10000b0001"
ANSWER = "printf 'port_guid=%s\\nactivity=41\\n' 0x0210fa10000a0001"


@pytest.fixture
def manager(prepared: Host) -> ManagerHost:
    prepared.replace_reader(ANSWER)
    return prepared.locally()


def arguments(prepared: Host, guid: str = PORT_GUID) -> list[str]:
    return ["-g", guid, "-P", str(prepared.partitions), "-f", str(prepared.log)]


def conf_of(prepared: Host, folder: Path, *lines: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "opensm.conf"
    conf.write_text("".join(f"{line}\n" for line in (f"dump_files_dir {prepared.list_file.parent}", *lines)))
    return str(conf)


def pretend(
    prepared: Host, folder: Path, *words: str, environment: dict[str, str] | None = None, simulator: str = ""
) -> AbstractContextManager[Path]:
    return looks_like_opensm(folder, *words, simulator=simulator or prepared.simulator, environment=environment)


class TestBinding:
    def test_names_the_process_and_what_it_really_uses(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        conf = conf_of(prepared, tmp_path / "sm")
        with pretend(prepared, tmp_path / "sm", "-F", conf, *arguments(prepared)):
            identity = manager.identify()
        assert identity.problems == ()
        assert identity.process is not None
        assert identity.process.port_guid == PORT_GUID
        assert identity.process.partition_file == str(prepared.partitions)
        assert identity.process.config_file == conf
        assert identity.process.cwd == str(tmp_path / "sm")
        assert identity.process.started > 0

    @pytest.mark.parametrize(
        "spelling",
        [
            ["-g", "0x210fa10000a0001"],
            ["-g0210FA10000A0001"],
            ["--guid", "0x0210FA10000A0001"],
            ["--guid=0x0210fa10000a0001"],
            ["-g", OTHER_GUID, "-g", PORT_GUID],
        ],
    )
    def test_finds_it_by_any_spelling_of_the_guid(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path, spelling: list[str]
    ) -> None:
        with pretend(prepared, tmp_path / "sm", *spelling, "-P", str(prepared.partitions)):
            process = manager.identify().process
        assert process is not None
        assert process.port_guid == PORT_GUID

    def test_takes_guid_and_partition_file_from_the_configuration(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        conf = conf_of(
            prepared, tmp_path / "sm", "guid 0x0210fa10000a0001", f"partition_config_file {prepared.partitions}",
            f"log_file {prepared.log}",
        )  # fmt: skip
        os.utime(conf, (time.time() - 60, time.time() - 60))
        with pretend(prepared, tmp_path / "sm", "--config", conf):
            identity = manager.identify()
            assert identity.problems == ()
            assert identity.process is not None
            # OpenSM takes the file's name once: a later edit says nothing about the running process.
            os.utime(conf, (time.time() + 60, time.time() + 60))
            [problem] = manager.identify().problems
            assert "was changed after OpenSM" in problem
            with pytest.raises(OpenSMDiffers):
                manager.reload()

    def test_resolves_relative_paths_where_the_process_stands(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        conf_of(prepared, tmp_path / "sm")
        words = ["-F", "opensm.conf", "-g", PORT_GUID, "-P", "../etc/partitions.conf", "-f", "../log/opensm.log"]
        prepared.partitions.write_bytes(b"x")
        prepared.log.write_bytes(b"x")
        with pretend(prepared, tmp_path / "sm", *words):
            assert manager.identify().problems == ()


class TestProblems:
    def test_another_partition_file_is_a_problem_and_forbids_a_reload(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        conf = conf_of(prepared, tmp_path / "sm")
        words = ["-F", conf, "-g", PORT_GUID, "-P", "/etc/opensm/other.conf", "-f", str(prepared.log)]
        with pretend(prepared, tmp_path / "sm", *words) as hups:
            [problem] = manager.identify().problems
            assert "reads /etc/opensm/other.conf" in problem
            assert f"-P {prepared.partitions}" in problem
            with pytest.raises(OpenSMDiffers, match="OpenSM was not reloaded"):
                manager.reload()
            assert not hups.exists()

    def test_another_list_and_another_log_are_problems(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        with pretend(prepared, tmp_path / "sm", "-g", PORT_GUID, "-P", str(prepared.partitions), "-f", "/tmp/x.log"):
            text = "\n".join(manager.identify().problems)
        assert f"writes its list to {tmp_path}/sm/opensm-subnet.lst" in text
        assert "logs to /tmp/x.log" in text

    def test_two_for_one_port_are_a_problem(self, manager: ManagerHost, prepared: Host, tmp_path: Path) -> None:
        first = pretend(prepared, tmp_path / "a", "-F", conf_of(prepared, tmp_path / "a"), *arguments(prepared))
        second = pretend(prepared, tmp_path / "b", "-F", conf_of(prepared, tmp_path / "b"), *arguments(prepared))
        with first, second:
            assert any("Two OpenSM run for port" in problem for problem in manager.identify().problems)
            with pytest.raises(OpenSMDiffers):
                manager.reload()

    def test_one_that_shares_the_partition_file_is_named(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        conf = conf_of(prepared, tmp_path / "a")
        first = pretend(prepared, tmp_path / "a", "-F", conf, *arguments(prepared))
        second = pretend(prepared, tmp_path / "b", "-P", str(prepared.partitions), "-g", OTHER_GUID)
        with first, second:
            identity = manager.identify()
        assert len(identity.sharing) == 1
        assert OTHER_GUID in identity.sharing[0]
        assert "the partition file" in identity.sharing[0]
        assert "dump folder" not in identity.sharing[0]
        assert identity.sharing[0] in identity.problems[0]

    def test_one_that_shares_dump_and_cache_folder_is_named(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        first = pretend(prepared, tmp_path / "a", *arguments(prepared))
        shared = {"OSM_TMP_DIR": str(tmp_path / "a"), "OSM_CACHE_DIR": str(tmp_path / "a")}
        second = pretend(prepared, tmp_path / "b", "-P", "/x", "-g", OTHER_GUID, environment=shared)
        with first, second:
            [sentence] = manager.identify().sharing
        assert f"the dump folder {tmp_path}/a, the cache folder {tmp_path}/a" in sentence

    def test_one_without_a_guid_is_mentioned(self, manager: ManagerHost, prepared: Host, tmp_path: Path) -> None:
        with pretend(prepared, tmp_path / "sm", "-P", str(prepared.partitions)):
            [problem] = manager.identify().problems
        assert "was started without a port GUID" in problem

    def test_one_that_sits_at_a_place_of_the_lab_is_ours(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        with pretend(prepared, tmp_path / "sm", *arguments(prepared), simulator=f"{prepared.simulator}:sm"):
            identity = manager.identify()
        assert identity.process is not None

    @pytest.mark.parametrize("simulator", ["another", "another:sm", "{own}2", "{own}2:sm"])
    def test_one_on_another_simulated_fabric_of_this_machine_is_none_of_ours(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path, simulator: str
    ) -> None:
        simulator = simulator.format(own=prepared.simulator)
        with pretend(prepared, tmp_path / "sm", *arguments(prepared), simulator=simulator):
            identity = manager.identify()
        assert identity.process is None
        assert identity.sharing == ()


class TestReload:
    def test_signals_exactly_this_process_and_returns_what_was_before(
        self, manager: ManagerHost, prepared: Host, tmp_path: Path
    ) -> None:
        prepared.list_file.write_bytes(b"list")
        prepared.log.write_bytes(b"0123456789")
        other = pretend(prepared, tmp_path / "b", "-P", "/x", "-g", OTHER_GUID)
        with pretend(prepared, tmp_path / "a", *arguments(prepared)) as hups, other as other_hups:
            mark = manager.reload()
            identity = manager.identify()
            wait_until(hups.exists)
            assert not other_hups.exists()
        assert identity.process is not None
        assert (mark.pid, mark.started) == (identity.process.pid, identity.process.started)
        assert mark.list_mtime_ns == prepared.list_file.stat().st_mtime_ns
        assert mark.activity == 41
        assert (mark.log_inode, mark.log_offset) == (prepared.log.stat().st_ino, 10)

    def test_a_silent_sm_is_reloaded_all_the_same(self, manager: ManagerHost, prepared: Host, tmp_path: Path) -> None:
        prepared.replace_reader("exit 81")
        manager = prepared.locally()
        with pretend(prepared, tmp_path / "sm", *arguments(prepared)) as hups:
            mark = manager.reload()
            wait_until(hups.exists)
        assert (mark.activity, mark.list_mtime_ns, mark.log_offset, mark.log_inode) == (-1, 0, 0, 0)

    def test_only_another_ports_opensm_is_no_opensm(self, manager: ManagerHost, prepared: Host, tmp_path: Path) -> None:
        with pretend(prepared, tmp_path / "sm", "-g", OTHER_GUID, "-P", str(prepared.partitions)) as hups:
            with pytest.raises(OpenSMNotRunning):
                manager.reload()
            assert not hups.exists()
