"""The guest's first and only root: busybox, modules and a few files, packed as the kernel expects it (cpio, newc).

There is no disk. /usr is the host's own, read-only over 9p; everything else lies in memory and is gone with the guest.
"""

import gzip
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TRAILER = "TRAILER!!!"


@dataclass(slots=True)
class Archive:
    """What goes into an initramfs, by absolute path without the first slash."""

    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)

    def put(self, path: str, data: bytes | str, *, mode: int = 0o644) -> None:
        """Add a file and the folders above it."""
        self._make_way(path)
        self.files[path] = (mode, data.encode() if isinstance(data, str) else data)

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link and the folders above it."""
        self._make_way(path)
        self.links[path] = target

    def folder(self, path: str, *, mode: int = 0o755) -> None:
        """Add a folder and the folders above it."""
        self._make_way(path)
        self.folders[path] = mode

    def _make_way(self, path: str) -> None:
        for parent in reversed(Path(path).parents):
            if str(parent) != ".":
                self.folders.setdefault(str(parent), 0o755)

    def pack(self) -> bytes:
        """The archive, compressed lightly: the guest unpacks it in emulation."""
        parts = [_entry(path, stat.S_IFDIR | mode, b"") for path, mode in self.folders.items()]
        parts += [_entry(path, stat.S_IFLNK | 0o777, target.encode()) for path, target in self.links.items()]
        parts += [_entry(path, stat.S_IFREG | mode, data) for path, (mode, data) in self.files.items()]
        parts.append(_entry(_TRAILER, 0, b""))
        return gzip.compress(b"".join(parts), compresslevel=1, mtime=0)


def _entry(path: str, mode: int, data: bytes) -> bytes:
    """One newc entry: 13 numbers of 8 hex digits, the name, the data, each padded to 4 bytes. Owner is root."""
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (0, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def base(*, busybox: Path, modules: Iterable[Path], init: str, accounts: Mapping[str, tuple[int, str]]) -> Archive:
    """What every guest has: busybox, modules in the order they load, /init, accounts (name → uid, home).

    The folders of a merged /usr are links, as on the Debian whose /usr it becomes.
    """
    archive = Archive()
    archive.put("busybox", busybox.read_bytes(), mode=0o755)
    archive.put("init", init, mode=0o755)
    for name in ("bin", "sbin", "lib", "lib64"):
        archive.link(name, f"usr/{name}")
    for name in ("usr", "dev", "proc", "sys", "run/sshd", "root", "var/log", "var/empty", "etc/ssh"):
        archive.folder(name)
    archive.folder("tmp", mode=0o1777)
    archive.folder("root", mode=0o700)
    order = []
    for number, module in enumerate(modules):
        archive.put(f"modules/{number:02d}-{module.name}", module.read_bytes())
        order.append(f"{number:02d}-{module.name}")
    archive.put("modules/order", "\n".join(order) + "\n")
    people = {"root": (0, "/root"), "sshd": (101, "/run/sshd"), "nobody": (65534, "/"), **accounts}
    rows = [f"{name}:x:{uid}:{uid}::{home}:/bin/sh\n" for name, (uid, home) in people.items()]
    archive.put("etc/passwd", "".join(rows))
    archive.put("etc/group", "".join(f"{name}:x:{uid}:\n" for name, (uid, _) in people.items()))
    # '*' is no password and, unlike '!', not a locked account (ground truth: real parts, recipe facts).
    archive.put("etc/shadow", "".join(f"{name}:*:19000:0:99999:7:::\n" for name in people), mode=0o600)
    archive.put("etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    for path in sorted(Path("/etc/libibverbs.d").glob("*.driver")):
        archive.put(f"etc/libibverbs.d/{path.name}", path.read_bytes())
    return archive
