"""The verbs that need no fabric, through LocalShell and through SSHShell over a real sshd: one contract, two ways."""

import os
import subprocess
from pathlib import Path

import pytest

from remote.errors import (
    DigestMismatch,
    FileMissing,
    FileNotWritable,
    FileUnreadable,
    HostBusy,
    OpenSMNotRunning,
    ReaderFailed,
    StaleGeneration,
    VerbFailed,
    WrapperMismatch,
)
from remote.manager_host import ManagerHost, ReloadMark
from tests.remote.sites import PORT_GUID, Host, sha256

# Every byte value, CR, NUL and no line end: what arrives must be what was sent.
ODD = bytes(range(256)) * 3 + b"\r\n;\x00"


def put(manager: ManagerHost, data: bytes, generation: int) -> str:
    manager.stage(data, digest=sha256(data))
    return manager.place(digest=sha256(data), generation=generation)


class TestIdentify:
    def test_says_what_is_installed_and_that_no_opensm_runs(self, manager: ManagerHost, prepared: Host) -> None:
        identity = manager.identify()
        assert identity.wrapper_digest == sha256(prepared.wrapper.read_bytes())
        assert identity.reader_digest == sha256((prepared.conf / "fabricui-tables").read_bytes())
        assert identity.partition_file == str(prepared.partitions)
        assert identity.list_file == str(prepared.list_file)
        assert identity.log_file == str(prepared.log)
        assert identity.process is None
        assert len(identity.problems) == 1
        assert f"No OpenSM runs for port {PORT_GUID}" in identity.problems[0]
        assert "sm1" in identity.problems[0]

    @pytest.mark.parametrize(("program", "name"), [("fabricui-host", "wrapper"), ("fabricui-tables", "table reader")])
    def test_refuses_a_changed_program_before_any_verb(
        self, manager: ManagerHost, prepared: Host, program: str, name: str
    ) -> None:
        prepared.partitions.write_bytes(b"x")
        with (prepared.conf / program).open("a") as file:
            file.write("# changed\n")
        with pytest.raises(WrapperMismatch, match=f"another {name}") as caught:
            manager.read()
        assert not caught.value.transient
        assert caught.value.host == "sm1"


class TestRead:
    def test_gives_every_byte(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.write_bytes(ODD)
        assert manager.read() == ODD

    def test_a_missing_file_is_said_to_be_missing(self, manager: ManagerHost) -> None:
        with pytest.raises(FileMissing, match=r"partitions\.conf does not exist"):
            manager.read()

    def test_a_folder_in_its_place_is_unreadable(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.mkdir()
        with pytest.raises(FileUnreadable):
            manager.read()


class TestStageAndPlace:
    def test_puts_exactly_these_bytes_there_and_leaves_nothing_beside(
        self, manager: ManagerHost, prepared: Host
    ) -> None:
        assert put(manager, ODD, 1) == "PLACED"
        assert prepared.partitions.read_bytes() == ODD
        assert prepared.leftovers() == []
        assert not Path(f"{prepared.partitions}.previous").exists()

    def test_takes_a_file_far_larger_than_any_pipe(self, manager: ManagerHost, prepared: Host) -> None:
        data = os.urandom(5_000_000)
        assert put(manager, data, 1) == "PLACED"
        assert manager.read() == data

    def test_staging_alone_changes_nothing(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.write_bytes(b"before")
        manager.stage(b"after", digest=sha256(b"after"))
        assert prepared.partitions.read_bytes() == b"before"

    def test_keeps_the_previous_file_and_only_when_it_differs(self, manager: ManagerHost, prepared: Host) -> None:
        previous = Path(f"{prepared.partitions}.previous")
        prepared.partitions.write_bytes(b"one")
        put(manager, b"two", 1)
        assert previous.read_bytes() == b"one"
        put(manager, b"two", 2)
        assert previous.read_bytes() == b"one"

    def test_keeps_mode_and_owner_of_the_file(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.write_bytes(b"one")
        prepared.partitions.chmod(0o640)
        put(manager, b"two", 1)
        assert prepared.partitions.stat().st_mode & 0o777 == 0o640

    def test_keeps_the_mode_that_somebody_gave_it_after_staging(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.write_bytes(b"one")
        manager.stage(b"two", digest=sha256(b"two"))
        prepared.partitions.chmod(0o600)
        manager.place(digest=sha256(b"two"), generation=1)
        assert prepared.partitions.read_bytes() == b"two"
        assert prepared.partitions.stat().st_mode & 0o777 == 0o600

    def test_a_wrong_digest_stages_nothing(self, manager: ManagerHost, prepared: Host) -> None:
        with pytest.raises(DigestMismatch) as caught:
            manager.stage(b"bytes", digest=sha256(b"other bytes"))
        assert caught.value.transient
        assert prepared.leftovers() == []

    def test_placing_what_was_never_staged_fails(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.partitions.write_bytes(b"before")
        with pytest.raises(FileMissing, match="Stage it first"):
            manager.place(digest=sha256(b"x"), generation=1)
        assert prepared.partitions.read_bytes() == b"before"

    def test_a_staged_file_that_was_touched_is_not_placed(self, manager: ManagerHost, prepared: Host) -> None:
        manager.stage(b"good", digest=sha256(b"good"))
        (prepared.partitions.parent / prepared.leftovers()[0]).write_bytes(b"evil")
        with pytest.raises(DigestMismatch):
            manager.place(digest=sha256(b"good"), generation=1)
        assert not prepared.partitions.exists()

    def test_a_folder_that_takes_no_file_is_named(self, manager: ManagerHost, prepared: Host) -> None:
        # Nobody can create a file in this folder, not even root, whom file modes do not stop.
        prepared.set("PARTITIONS=/proc/sys/partitions.conf")
        with pytest.raises(FileNotWritable, match="/proc/sys"):
            manager.stage(b"x", digest=sha256(b"x"))

    def test_a_lock_that_cannot_be_opened_is_a_sentence_too(self, manager: ManagerHost, prepared: Host) -> None:
        """As on a disk that went read-only after staging; dash ends at once when `exec` cannot redirect."""
        manager.stage(b"x", digest=sha256(b"x"))
        Path(f"{prepared.partitions}.fabricui.lock").mkdir()
        with pytest.raises(FileNotWritable, match="the partition file here is as it was"):
            manager.place(digest=sha256(b"x"), generation=1)


class TestFencing:
    def test_the_same_generation_with_the_same_bytes_is_already_done(
        self, manager: ManagerHost, prepared: Host
    ) -> None:
        put(manager, b"one", 5)
        inode = prepared.partitions.stat().st_ino
        assert manager.place(digest=sha256(b"one"), generation=5) == "ALREADY"
        assert prepared.partitions.stat().st_ino == inode

    def test_identify_says_which_generation_was_here(self, manager: ManagerHost, prepared: Host) -> None:
        assert manager.identify().generation == 0
        put(manager, b"one", 5)
        assert manager.identify().generation == 5
        Path(f"{prepared.partitions}.fabricui").write_text("generation=nonsense\n")
        identity = manager.identify()
        assert identity.generation == 0
        assert any("is damaged" in problem for problem in identity.problems)

    def test_a_lower_generation_is_refused(self, manager: ManagerHost, prepared: Host) -> None:
        put(manager, b"new", 5)
        with pytest.raises(StaleGeneration, match="generation 5 has been here") as caught:
            put(manager, b"old", 4)
        assert not caught.value.transient
        assert prepared.partitions.read_bytes() == b"new"

    def test_one_generation_places_one_digest(self, manager: ManagerHost, prepared: Host) -> None:
        put(manager, b"one", 5)
        with pytest.raises(StaleGeneration, match="other bytes"):
            put(manager, b"two", 5)
        assert prepared.partitions.read_bytes() == b"one"

    def test_a_file_edited_by_hand_is_not_taken_for_placed(self, manager: ManagerHost, prepared: Host) -> None:
        put(manager, b"one", 5)
        prepared.partitions.write_bytes(b"edited")
        assert put(manager, b"one", 5) == "PLACED"
        assert prepared.partitions.read_bytes() == b"one"
        assert Path(f"{prepared.partitions}.previous").read_bytes() == b"edited"

    def test_a_run_that_was_cut_between_sidecar_and_rename_is_finished_by_the_next(
        self, manager: ManagerHost, prepared: Host
    ) -> None:
        prepared.partitions.write_bytes(b"old")
        Path(f"{prepared.partitions}.fabricui").write_text(f"generation=7\ndigest={sha256(b'new')}\n")
        with pytest.raises(StaleGeneration):
            put(manager, b"other", 6)
        assert put(manager, b"new", 7) == "PLACED"

    def test_waits_for_the_lock_and_says_when_it_does_not_come(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.set("LOCK_S=1")
        manager.stage(b"one", digest=sha256(b"one"))
        lock = Path(f"{prepared.partitions}.fabricui.lock")
        with subprocess.Popen(["flock", lock, "cat"], stdin=subprocess.PIPE) as holder:
            try:
                while subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0:
                    pass
                with pytest.raises(HostBusy) as caught:
                    manager.place(digest=sha256(b"one"), generation=1)
                assert caught.value.transient
            finally:
                holder.communicate()
        assert manager.place(digest=sha256(b"one"), generation=1) == "PLACED"


class TestLog:
    def mark(self, log: Path) -> ReloadMark:
        status = log.stat()
        return ReloadMark(
            pid=1, started=1, list_mtime_ns=0, activity=0, log_offset=status.st_size, log_inode=status.st_ino
        )

    def test_gives_what_came_after_the_mark(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.log.write_bytes(b"before\n")
        mark = self.mark(prepared.log)
        with prepared.log.open("ab") as file:
            file.write(b"after\n")
        assert manager.log_since(mark) == b"after\n"
        assert manager.log_since(ReloadMark.from_json(mark.to_json())) == b"after\n"

    def test_follows_a_rotation(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.log.write_bytes(b"before\n")
        mark = self.mark(prepared.log)
        with prepared.log.open("ab") as file:
            file.write(b"after\n")
        prepared.log.rename(f"{prepared.log}.1")
        prepared.log.write_bytes(b"new file\n")
        assert manager.log_since(mark) == b"after\nnew file\n"

    def test_says_when_the_log_of_the_mark_is_gone(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.log.write_bytes(b"before\n")
        mark = self.mark(prepared.log)
        prepared.log.rename(prepared.conf / "elsewhere")  # as when it was compressed; this keeps its inode taken
        prepared.log.write_bytes(b"new file\n")
        said = manager.log_since(mark)
        assert said.startswith(b"fabricui-host: the log before the rotation of ")
        assert said.endswith(b" is gone\nnew file\n")

    def test_starts_again_after_a_truncation(self, manager: ManagerHost, prepared: Host) -> None:
        prepared.log.write_bytes(b"a long history\n")
        mark = self.mark(prepared.log)
        with prepared.log.open("r+b") as file:
            file.truncate(0)
            file.write(b"new\n")
        assert manager.log_since(mark) == b"new\n"

    def test_a_missing_log_is_said_to_be_missing(self, manager: ManagerHost) -> None:
        with pytest.raises(FileMissing):
            manager.log_since(ReloadMark(1, 1, 0, 0, 0, 0))


class TestWithoutFabric:
    def test_nothing_is_reloaded_where_no_opensm_runs(self, manager: ManagerHost) -> None:
        with pytest.raises(OpenSMNotRunning, match="systemctl start opensm@"):
            manager.reload()

    def test_a_machine_without_the_port_is_named(self, manager: ManagerHost) -> None:
        with pytest.raises(ReaderFailed):
            manager.sm_state()
        with pytest.raises(ReaderFailed):
            manager.read_tables(topology="discovery", timeout_s=5)

    def test_an_unprepared_machine_says_what_to_run(self, manager: ManagerHost, prepared: Host) -> None:
        (prepared.conf / "host.env").unlink()
        with pytest.raises(VerbFailed, match="Run FabricUI's install") as caught:
            manager.read()
        assert caught.value.exit_status == 78
