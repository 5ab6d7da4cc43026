"""A mount namespace for one manager host, so that its disk can be full or read-only and nobody else's.

The namespace is held by file descriptors of the supervisor. Its mounts go away with its last process, so that not
even `kill -9` leaves one behind. An ordinary user gets it inside a user namespace; root needs none.
"""

import contextlib
import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabError

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_NOATIME, _MS_NODIRATIME, _MS_BIND = 32, 1024, 2048, 4096
_MS_REC, _MS_PRIVATE, _MS_RELATIME = 16384, 1 << 18, 1 << 21
_MNT_DETACH = 2
_KEPT_FLAGS = {
    os.ST_NOSUID: _MS_NOSUID,
    os.ST_NODEV: _MS_NODEV,
    os.ST_NOEXEC: _MS_NOEXEC,
    os.ST_NOATIME: _MS_NOATIME,
    os.ST_NODIRATIME: _MS_NODIRATIME,
    os.ST_RELATIME: _MS_RELATIME,
}
FILLER = "filler"
DISK_BYTES = 256 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


class MountNamespace:
    """File descriptors that keep a mount namespace (and the user namespace that owns it) alive."""

    def __init__(self, user: int | None, mount: int) -> None:
        self._user = user
        self._mount = mount

    @classmethod
    def create(cls) -> "MountNamespace | None":
        """Make a namespace; None where this machine allows none (then the disk verbs refuse)."""
        with_user = os.geteuid() != 0
        ready_read, ready_write = os.pipe()
        go_read, go_write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ready_read)
            os.close(go_write)
            _become_namespace(with_user, ready_write, go_read)
        os.close(ready_write)
        os.close(go_read)
        try:
            if os.read(ready_read, 1) != b"+":
                return None
            user = os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC) if with_user else None
            return cls(user, os.open(f"/proc/{child}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
        finally:
            os.close(ready_read)
            os.close(go_write)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)

    def enter(self) -> None:
        """Move the calling, single-threaded process into the namespace; it cannot come back."""
        if self._user is not None:
            os.setns(self._user, os.CLONE_NEWUSER)
        os.setns(self._mount, os.CLONE_NEWNS)

    def run(self, action: Callable[[], None]) -> None:
        """Run `action` in a forked process inside the namespace; raise LabError with its sentence if it fails."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(read_end)
                self.enter()
                action()
                status = 0
            except BaseException as problem:
                os.write(write_end, str(problem)[:4000].encode())
            finally:
                os._exit(status)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            said = pipe.read().decode(errors="replace")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        if said:
            raise LabError(said)

    def close(self) -> None:
        """Let go of the namespace."""
        for descriptor in (self._user, self._mount):
            if descriptor is not None:
                os.close(descriptor)


def _become_namespace(with_user: bool, ready: int, go: int) -> None:
    """In the child: unshare, report with one byte, wait until the parent holds the namespace, exit."""
    try:
        uid, gid = os.geteuid(), os.getegid()
        os.unshare((os.CLONE_NEWUSER if with_user else 0) | os.CLONE_NEWNS)
        if with_user:
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE, "")
        if not with_user and not Path("/run/sshd").is_dir():
            # root's sshd insists on this folder; the host's own /run is left as it is.
            _mount("tmpfs", "/run", "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
            Path("/run/sshd").mkdir(mode=0o755)
        os.write(ready, b"+")
        os.read(go, 1)
    except BaseException as problem:
        print(f"no mount namespace: {problem}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str) -> None:
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode()
    )
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount on {target}: {os.strerror(number)}")


def _umount(target: str) -> None:
    if _libc.umount2(target.encode(), _MNT_DETACH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"umount of {target}: {os.strerror(number)}")


def is_mounted(folder: Path) -> bool:
    """Whether something is mounted on `folder`, as the calling process sees it."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return str(folder) in {line.split()[1] for line in lines}


def fill(folder: Path) -> None:
    """Put a small file system over `folder`, with the same files in it, and fill it to the last byte."""
    contents = _contents(folder)
    size = max(DISK_BYTES, 2 * sum(len(data) for data, _ in contents.values()))
    _mount("tmpfs", str(folder), "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={size},mode=755")
    _restore(folder, contents)
    with (folder / FILLER).open("wb", buffering=0) as filler:
        block = b"\0" * 4096
        while True:
            try:
                filler.write(block)
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise
                return


def make_read_only(folder: Path) -> None:
    """Mount `folder` over itself, read-only."""
    flags = os.statvfs(folder).f_flag
    # A user namespace may add read-only but must keep every flag the mount was locked with.
    kept = sum(mount_flag for known, mount_flag in _KEPT_FLAGS.items() if flags & known)
    _mount(str(folder), str(folder), None, _MS_BIND, "")
    _mount("none", str(folder), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept, "")


def mend(folder: Path) -> None:
    """Take the fault's mounts off `folder` and keep the files that were written meanwhile."""
    while is_mounted(folder):
        contents = None if os.statvfs(folder).f_flag & os.ST_RDONLY else _contents(folder)
        _umount(str(folder))
        if contents is not None:
            contents.pop(FILLER, None)
            for gone in set(_contents(folder)) - set(contents):
                (folder / gone).unlink()
            _restore(folder, contents)


def _contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes() if path.name != FILLER else b"", stat.S_IMODE(path.stat().st_mode))
        for path in folder.iterdir()
        if path.is_file()
    }


def _restore(folder: Path, contents: dict[str, tuple[bytes, int]]) -> None:
    for name, (data, mode) in contents.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == data:
            continue
        beside = folder / f".{name}.mending"
        beside.write_bytes(data)
        beside.chmod(mode)
        beside.rename(path)
