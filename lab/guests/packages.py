"""What the RDMA guests need of this machine, and which of it is missing. `--rdma` installs it."""

import shutil
from pathlib import Path

# A program, or a pattern of a file in / → Debian's package; the same as in `run` (a test sees to it).
NEEDED = (
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("rdma", "iproute2"),
    ("ib_write_bw", "perftest"),
    ("/usr/lib/python3/dist-packages/pyverbs/device.*.so", "python3-pyverbs"),
    ("/etc/libibverbs.d/rxe.driver", "ibverbs-providers"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
)


def missing() -> list[str]:
    """The names of the packages that are missing. The kernel's is fetched, never installed (`lab/guests/kernel.py`)."""
    return [package for what, package in NEEDED if not _is_here(what)]


def _is_here(what: str) -> bool:
    if what.startswith("/"):
        return any(Path("/").glob(what.removeprefix("/")))
    return shutil.which(what, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None
