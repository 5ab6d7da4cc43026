"""What a lab leaves on a machine, looked up here without the lab's own code."""

import os
import signal
import subprocess
import time
from pathlib import Path


def processes(state):
    """Command lines of all live processes that belong to the lab, by PID."""
    mark = f"FABRICUI_LAB={state.lab}".encode()
    wanted = sockets_at(state)
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            command = (entry / "cmdline").read_bytes()
            held = {str(descriptor.readlink()) for descriptor in (entry / "fd").iterdir()}
            is_ours = mark in (entry / "environ").read_bytes() or state.directory.encode() in command
            if is_ours or held & wanted:
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


def sockets_at(state):
    """The sockets at the manager hosts' addresses, as /proc/PID/fd names them."""
    ends = {"".join(f"{int(part):02X}" for part in reversed(record.address.split("."))) for record in state.managers}
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[1].split(":")[0] in ends and row[9] != "0"}


def unix_sockets(state):
    """Unix sockets of the lab, abstract ones included."""
    rows = Path("/proc/net/unix").read_text().splitlines()
    return [row for row in rows if state.socket_name in row or state.directory in row]


def mounts(state):
    """Mounts below the lab's directory that this process sees."""
    return [row for row in Path("/proc/self/mounts").read_text().splitlines() if state.directory in row]


def folders(state):
    """`sys-*` folders of dead clients in the lab's directory, the root folder and here."""
    places = [Path(state.directory), *(Path(place) for place in ("/", ".", Path.home(), "/tmp"))]
    return [str(path) for place in places if place.is_dir() for path in place.glob("sys-[0-9]*")]


def all_of(state):
    """Everything above, and the files; all empty once the lab is down."""
    directory = Path(state.directory)
    return {
        "processes": processes(state),
        "sockets": unix_sockets(state),
        "listeners": sockets_at(state),
        "mounts": mounts(state),
        "folders": folders(state),
        "files": [str(path) for path in directory.rglob("*")] if directory.exists() else [],
    }


NOTHING = {"processes": {}, "sockets": [], "listeners": set(), "mounts": [], "folders": [], "files": []}


def until(claim, *, timeout_s=20.0):
    """Wait until `claim()` is true; its value. The test fails when it never is."""
    deadline = time.monotonic() + timeout_s
    while not (value := claim()):
        assert time.monotonic() < deadline, f"still not so after {timeout_s} s"
        time.sleep(0.02)
    return value


def attached_client(site):
    """Start a fabric client that holds a slot and does nothing; the simulator knows it when this returns."""
    sleeper = (
        "import ctypes, time\n"
        "mad = ctypes.CDLL('libibmad.so.5')\n"
        "mad.mad_rpc_open_port(None, 0, (ctypes.c_int * 1)(1), 1)\n"
        "time.sleep(600)\n"
    )
    client = subprocess.Popen(
        ["/usr/bin/python3", "-c", sleeper],
        cwd=site.layout.run,
        env=site.client_environment(),
        stderr=subprocess.DEVNULL,
    )
    until(lambda: f"pid {client.pid} " in site.order("console", line="Attached"))
    return client


def killed_client(site):
    """Kill a client so that it leaves its slot and its folder behind; its PID."""
    client = attached_client(site)
    client.send_signal(signal.SIGKILL)
    client.wait()
    return client.pid
