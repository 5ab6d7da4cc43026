"""The guests' kernel: Debian's package, unpacked and never installed, with the few modules that the guests load.

It is kept per user, in a folder named after the package's own digest, so that it is fetched once a machine.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.layout import program

META = "linux-image-amd64"
# What the guests load, without what these depend on: PCI transport, both cards, the shared folder, Soft-RoCE. The last
# asks the kernel's crypto for "crc32" by name, which would be modprobe's work.
WANTED = ("virtio_pci", "virtio_net", "9pnet_virtio", "9p", "crc32_generic", "rdma_rxe", "ib_uverbs")
_MODINFO_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_FETCH_S = 300


@dataclass(frozen=True, slots=True)
class Kernel:
    """An unpacked kernel; `modules` are uncompressed, each after the ones it needs. `package` is name and version."""

    package: str
    digest: str
    image: Path
    modules: tuple[Path, ...]


def cache_directory() -> Path:
    """The per-user folder of unpacked kernels."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "fabricui" / "kernels"


def kernel() -> Kernel:
    """The newest kernel package that apt knows, from the cache or fetched (70 MB). Raises LabError."""
    found = _package()
    if found is None and _refresh():
        found = _package()
    if found is None:
        raise LabError(f"apt knows no kernel behind {META}. Run apt-get update; the guests need Debian on x86-64.")
    place = cache_directory() / found.digest
    if not (place / "complete").exists():
        try:
            _unpack(found, place)
        except LabError:
            # The archive may have moved on since the lists were read.
            found = _package() if _refresh() else None
            if found is None:
                raise
            place = cache_directory() / found.digest
            _unpack(found, place)
    order = (place / "order").read_text(encoding="ascii").split()
    return Kernel(
        package=f"{found.name} {found.version}",
        digest=found.digest,
        image=place / "vmlinuz",
        modules=tuple(place / f"{module}.ko" for module in order),
    )


@dataclass(frozen=True, slots=True)
class Package:
    """A kernel package as apt announces it; `digest` is its SHA-256."""

    name: str
    version: str
    digest: str


def _package() -> Package | None:
    """The kernel package behind the meta package."""
    depends = _apt("apt-cache", "depends", META)
    for name in re.findall(r"^\s+Depends: (linux-image-[0-9][^\s]*)", depends, re.MULTILINE):
        shown = _apt("apt-cache", "show", "--no-all-versions", name)
        fields = dict(re.findall(r"^(Package|Version|SHA256): (.+)$", shown, re.MULTILINE))
        if set(fields) == {"Package", "Version", "SHA256"}:
            return Package(name, fields["Version"], fields["SHA256"])
    return None


def _refresh() -> bool:
    """Read the package lists anew, where this account may; False when nothing was done."""
    if os.geteuid() != 0:
        return False
    command = [program("apt-get"), "update"]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0


def _apt(*command: str) -> str:
    try:
        done = subprocess.run(
            [program(command[0]), *command[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
    except LabError:
        raise LabError("The guests take their kernel from Debian's packages, and there is no apt here.") from None
    return done.stdout if done.returncode == 0 else ""


def _unpack(package: Package, place: Path) -> None:
    """Fetch the package and put kernel and modules into `place`, complete or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=place.parent) as folder:
        archive = _fetch(package, Path(folder))
        made = Path(folder) / "kernel"
        made.mkdir()
        _take_out(archive, made)
        (made / "complete").touch()
        if place.exists():  # left by one that was cut short
            shutil.rmtree(place, ignore_errors=True)
        try:
            made.rename(place)
        except OSError:
            # Another one was faster; its bytes are the same, for the digest is.
            if not (place / "complete").exists():
                raise


def _fetch(package: Package, folder: Path) -> Path:
    try:
        done = subprocess.run(
            ["apt-get", "download", f"{package.name}={package.version}"],
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{package.name} was not fetched within {_FETCH_S} s.") from None
    archives = sorted(folder.glob("*.deb"))
    if done.returncode != 0 or not archives:
        raise LabError(f"apt-get download {package.name} failed: {done.stderr.strip()[-300:]}")
    with archives[0].open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != package.digest:
        raise LabError(f"{archives[0].name} is not the package that apt announced (SHA-256 {found[:16]}…).")
    return archives[0]


def _take_out(archive: Path, made: Path) -> None:
    """Write `vmlinuz`, the wanted modules with their dependencies, and `order`, the order in which they load."""
    wanted = {"rdma_rxe", *WANTED}
    with subprocess.Popen([program("dpkg-deb"), "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as unpacking:
        modules: dict[str, bytes] = {}
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as tar:
            for member in tar:
                base = member.name.rpartition("/")[2]
                stem = re.sub(r"\.ko(\.xz)?\Z", "", base).replace("-", "_")
                if base.startswith("vmlinuz-"):
                    (made / "vmlinuz").write_bytes(_read(tar, member))
                elif base.endswith((".ko", ".ko.xz")) and _is_near(member.name):
                    data = _read(tar, member)
                    modules[stem] = lzma.decompress(data) if base.endswith(".xz") else data
    missing = sorted(wanted - modules.keys())
    if missing or not (made / "vmlinuz").exists():
        raise LabError(f"{archive.name} lacks what the guests need: {', '.join(missing) or 'the kernel itself'}.")
    order = load_order(WANTED, {stem: depends(data) for stem, data in modules.items()})
    for stem in order:
        (made / f"{stem}.ko").write_bytes(modules[stem])
    (made / "order").write_text("\n".join(order), encoding="ascii")


def _is_near(name: str) -> bool:
    """Whether a module lies in a folder that the wanted ones or their dependencies come from."""
    folders = (
        "/drivers/virtio/", "/drivers/net/", "/drivers/infiniband/", "/net/", "/fs/9p/", "/fs/netfs/", "/fs/fscache/",
        "/crypto/", "/lib/",
    )  # fmt: skip
    return any(folder in name for folder in folders) and "/drivers/net/wireless/" not in name


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    return b"" if stream is None else stream.read()


def depends(module: bytes) -> list[str]:
    """The names of the modules that a module's .modinfo section says it needs."""
    found = _MODINFO_DEPENDS.search(module)
    names = found[1].decode("ascii").split(",") if found else []
    return [name.replace("-", "_") for name in names if name]


def load_order(wanted: tuple[str, ...], needs: dict[str, list[str]]) -> list[str]:
    """`wanted` and all that they need, each after its needs. Raises LabError for one that is not there."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in order:
            return
        if name not in needs:
            raise LabError(f"The kernel package has no module {name}.")
        for need in needs[name]:
            add(need)
        order.append(name)

    for name in wanted:
        add(name)
    return order
