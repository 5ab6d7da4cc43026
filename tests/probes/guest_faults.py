"""What the tests do to the RDMA guests, and how it is mended. All through the lab's own key, as root in the guest."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab.guests.guests import Guest
from lab.guests.machine import DATA_MTU
from lab.layout import wait_until

CARD = "eth1"  # the second card, as QEMU lists them

# The program itself, not the `timeout` around it: the newest whose command line begins with Python.
_PID = "pid=$(pgrep -n -f '^[^ ]*python3 .*on_host.py') || exit 3\n"


@contextmanager
def python(guest: Guest, body: str) -> Iterator[None]:
    """Let the wrapper run another Python: a shell script with `body`, the program's words being "$@" without -I."""
    guest.admin(
        "mkdir -p /opt/other\n"
        f"cat >/opt/other/python3 <<'E'\n#!/bin/sh\n[ \"$1\" != -I ] || shift\n{body}\nE\n"
        "chmod 755 /opt/other/python3\nsed -i 's|^PYTHON=.*|PYTHON=/opt/other/python3|' /opt/fabricui-probe/probe.env\n"
    )
    try:
        yield
    finally:
        guest.admin("sed -i 's|^PYTHON=.*|PYTHON=/usr/bin/python3|' /opt/fabricui-probe/probe.env")


def put(guest: Guest, path: str, text: str) -> None:
    """Write a file in the guest."""
    guest.admin(f"mkdir -p $(dirname {path})\ncat >{path} <<'END OF FILE'\n{text}\nEND OF FILE\n")


def alter_memory(guest: Guest, address: int) -> None:
    """Change one byte of the running program's buffer, behind its back."""
    guest.admin(f"{_PID}printf Z | dd of=/proc/$pid/mem bs=1 seek={address} conv=notrunc status=none\n")


def kill_program(guest: Guest) -> None:
    """Kill the program as the kernel does when memory runs out; on return its queue pairs are gone.

    The signal alone is not enough: an emulated processor takes its time over a dying process, and until its queue
    pairs are destroyed the kernel acknowledges writes for it.
    """
    guest.admin(
        f"{_PID}kill -9 $pid\n"
        "for turn in $(seq 300); do\n"
        "    state=$(sed 's/.*) //' /proc/$pid/stat 2>/dev/null | cut -c1)\n"
        '    case $state in "" | Z) exit 0 ;; esac\n'
        "    sleep 0.1\n"
        "done\n"
        'echo "the killed program is still there" >&2; exit 1\n'
    )


def cut_ssh(guest: Guest) -> None:
    """End the probe account's SSH sessions without a word."""
    guest.admin("pkill -9 -f '^sshd: fabricui-probe'\n")


@contextmanager
def without_device(guest: Guest) -> Iterator[None]:
    """Take the Soft-RoCE device away."""
    guest.admin(f"rdma link delete {guest.device}")
    try:
        yield
    finally:
        guest.admin(f"rdma link add {guest.device} type rxe netdev {CARD}")


@contextmanager
def card(guest: Guest, broken: str) -> Iterator[None]:
    """Set the data card with `ip link set`, and back."""
    with mended_card(guest):
        guest.admin(f"ip link set {CARD} {broken}")
        yield


@contextmanager
def mended_card(guest: Guest) -> Iterator[None]:
    """Afterwards the data card is as it was, and the port active."""
    try:
        yield
    finally:
        guest.admin(f"ip link set {CARD} mtu {DATA_MTU} up\nip addr replace {guest.data_address}/24 dev {CARD}")
        wait_until(
            lambda: "ACTIVE" in guest.admin(f"cat /sys/class/infiniband/{guest.device}/ports/1/state"),
            timeout_s=60,
            what="the port to be active again",
        )


@contextmanager
def speed_of_card(guest: Guest, mbit_s: int) -> Iterator[None]:
    """Let the data card's driver know a speed; a virtual one knows none unless told."""
    guest.admin(f"ethtool -s {CARD} speed {mbit_s} duplex full")
    try:
        yield
    finally:
        guest.admin(f"ethtool -s {CARD} speed 4294967295")  # SPEED_UNKNOWN


@contextmanager
def traffic(sender: Guest, target: Guest) -> Iterator[None]:
    """Another process of the sender's sends datagrams to the target, over their data cards, at least until the end."""
    program = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); end = time.monotonic() + 120\n"
        f"while time.monotonic() < end: s.sendto(bytes(4000), ('{target.data_address}', 9))\n"
    )
    counter = f"/sys/class/net/{CARD}/statistics/rx_bytes"
    sender.admin(
        f"cat >/run/traffic.py <<'E'\n{program}E\n"
        "python3 /run/traffic.py >/dev/null 2>&1 </dev/null & echo $! >/run/traffic\n"
    )
    try:
        before = int(target.admin(f"cat {counter}"))
        wait_until(
            lambda: int(target.admin(f"cat {counter}")) > before + (10 << 20), timeout_s=60, what="the traffic to flow"
        )
        yield
    finally:
        sender.admin("kill $(cat /run/traffic); true")


@contextmanager
def memory_limit(guest: Guest, kib: int) -> Iterator[None]:
    """Let sessions pin at most this much; those of connections that stand already, too."""
    each = "for process in $(pgrep sshd); do prlimit --pid $process --memlock={0}:{0} || true; done"
    guest.admin(each.format(kib * 1024))
    try:
        yield
    finally:
        guest.admin(each.format("unlimited"))


@contextmanager
def clock(guest: Guest, text: str) -> Iterator[None]:
    """Set the guest's wall clock to something else."""
    before = guest.admin("date +%s").strip()
    guest.admin(f"date -s '{text}'")
    try:
        yield
    finally:
        guest.admin(f"date -s @{before}")


def wait_until_packets_flow(guest: Guest) -> None:
    """Return once packets have come in since the call; raise LabError when none do."""
    counter = f"/sys/class/infiniband/{guest.device}/ports/1/hw_counters/rcvd_pkts"
    guest.admin(
        f"begun=$(cat {counter}); end=$(($(date +%s) + 60))\n"
        f"while [ $(cat {counter}) -lt $((begun + 50)) ]; do [ $(date +%s) -lt $end ] || exit 4; sleep 0.1; done\n",
        timeout_s=90,
    )


def wait_until_nothing_runs(guest: Guest, *, timeout_s: float = 30.0) -> None:
    """Return once no probe program runs in the guest; raise LabError when one stays."""
    wait_until(
        lambda: not guest.admin("pgrep -f on_host.py", check=False).strip(),
        timeout_s=timeout_s,
        what=f"the probe programs in {guest.name} to end",
        pause_s=0.3,
    )
