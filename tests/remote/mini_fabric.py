"""A small simulated fabric of our own: ibsim, six HCAs on two leaf switches, and real OpenSM on request."""

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lab.processes import die_with_parent
from lab.transactions import READY
from tests.remote.sites import Host, install, wait_until

LEAVES = (0x0210FA2000000000, 0x0210FA2000000001)
HCAS = tuple(0x0210FA1000000000 + index * 0x10 for index in range(6))


def port_guid(hca: int) -> str:
    """The GUID of an HCA's only port: the simulator adds the port number to the node GUID."""
    return f"0x{HCAS[hca] + 1:016x}"


def _topology() -> str:
    """Three HCAs on each leaf (ports 1 to 3), the leaves cabled to each other (port 4)."""
    lines = []
    for number, leaf in enumerate(LEAVES):
        lines += [f"switchguid=0x{leaf:x}({leaf:x})", f'Switch\t5 "S-{leaf:016x}"\t# "leaf{number}" enhanced port 0']
        lines += [f'[{slot + 1}]\t"H-{HCAS[number * 3 + slot]:016x}"[1]' for slot in range(3)]
        lines += [f'[4]\t"S-{LEAVES[1 - number]:016x}"[4]', ""]
    for index, hca in enumerate(HCAS):
        lines += [f"caguid=0x{hca:x}", f'Ca\t1 "H-{hca:016x}"\t# "srv{index // 2} mlx5_{index % 2}"']
        lines += [f'[1]({hca + 1:x})\t"S-{LEAVES[index // 3]:016x}"[{index % 3 + 1}]', ""]
    return "\n".join(lines)


def _umad2sim() -> str:
    return str(next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")))


@dataclass
class MiniFabric:
    """One running simulator. Everything started through it ends with it."""

    root: Path
    socket_name: str = field(default_factory=lambda: f"remote-{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        # Also where the run of the tests is killed: an OpenSM without its simulator would stay for ever.
        self._ends_with_us = partial(die_with_parent, os.getpid())
        self._run = self.root / "run"  # where clients leave their sys-PID folders when they are killed
        self._run.mkdir(parents=True)
        (self.root / "fabric.net").write_text(_topology())
        self._console = subprocess.Popen(
            ["ibsim", "-s", str(self.root / "fabric.net")],
            env=os.environ | {"IBSIM_SOCKNAME": self.socket_name},
            stdin=subprocess.PIPE,  # it leaves when its stdin ends
            stdout=(self.root / "ibsim.log").open("wb"),
            stderr=subprocess.STDOUT,
            preexec_fn=self._ends_with_us,
        )
        self._processes: list[subprocess.Popen[bytes]] = []
        wait_until(lambda: b"simulator ready" in (self.root / "ibsim.log").read_bytes())
        # Where its SMs sit: what one asks another times out, as on real hardware.
        watched = self.root / "transactions.log"
        self._transactions = subprocess.Popen(
            [sys.executable, "-m", "lab.transactions", self.socket_name, self._sm_socket_name],
            stdin=subprocess.DEVNULL, stdout=watched.open("wb"), stderr=subprocess.STDOUT,
            preexec_fn=self._ends_with_us,
        )  # fmt: skip
        wait_until(lambda: READY.encode() in watched.read_bytes())

    @property
    def _sm_socket_name(self) -> str:
        return f"{self.socket_name}:sm"

    def type(self, line: str) -> None:
        """One line on the simulator's console."""
        assert self._console.stdin is not None
        self._console.stdin.write(line.encode() + b"\n")
        self._console.stdin.flush()

    def seat(self, hca: int) -> dict[str, str]:
        """The environment that seats a program at this HCA."""
        return {"LD_PRELOAD": _umad2sim(), "SIM_HOST": f"H-{HCAS[hca]:016x}", "IBSIM_SOCKNAME": self.socket_name}

    def manager_host(self, name: str, hca: int, public_key: Path) -> Host:
        """A folder prepared by `install` whose reader sits at this HCA."""
        lines = [word for pair in self.seat(hca).items() for word in ("--host-env-line", "=".join(pair))]
        host = install(self.root / name, public_key, *lines, port_guid=port_guid(hca), simulator=self.socket_name)
        host.partitions.write_text(partitions())
        return host

    def start_opensm(self, host: Host, hca: int, priority: int) -> "subprocess.Popen[bytes]":
        """A real OpenSM on this HCA that reads the host's partition file."""
        folder = host.log.parent
        conf = folder.parent / "etc" / "opensm.conf"
        # No light sweep disturbs a test: they come at start and on request only.
        options = {
            "guid": port_guid(hca), "sm_priority": priority, "sweep_interval": 300, "sminfo_polling_timeout": 500,
            "polling_retry_number": 2, "log_file": host.log, "dump_files_dir": folder, "force_log_flush": "TRUE",
        }  # fmt: skip
        conf.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        process = subprocess.Popen(
            ["opensm", "-F", conf, "-g", port_guid(hca), "-P", host.partitions, "-f", host.log],
            env={"PATH": "/usr/sbin:/usr/bin:/bin", "OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
            | self.seat(hca)
            | {"IBSIM_SOCKNAME": self._sm_socket_name},
            cwd=self._run, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=self._ends_with_us,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def ask(self, hca: int, *command: str) -> str:
        """What a diagnostic program prints, seated at this HCA."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/bin"} | self.seat(hca)
        done = subprocess.run(command, env=environment, cwd=self._run, capture_output=True, text=True, check=True)
        return done.stdout

    def litter(self) -> list[Path]:
        """The sys-PID folders below this fabric whose client is gone."""
        return [path for path in self.root.rglob("sys-*") if not Path(f"/proc/{path.name[4:]}").exists()]

    def stop_opensm(self) -> None:
        """End every OpenSM."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def stop(self) -> None:
        """First the SMs, then the simulator: an OpenSM whose simulator is gone does not heed TERM."""
        self.stop_opensm()
        for process in (self._transactions, self._console):
            process.kill()
            process.communicate()


def partitions(**tenants: list[str]) -> str:
    """A partition file: Default for everybody, and each tenant's P_Key (`p0010=[…]`) with full members."""
    statements = ["Default=0x7fff, ipoib, defmember=limited :\n ALL=limited,\n ALL_SWITCHES=full,\n SELF=full;"]
    for name, members in tenants.items():
        lines = ",\n".join(f" {guid}=full" for guid in members)
        statements.append(f"{name}=0x{name[1:]}, defmember=limited :\n{lines};")
    return "\n".join([*statements, "# end"]) + "\n"


@contextlib.contextmanager
def mini_fabric(root: Path) -> Iterator[MiniFabric]:
    fabric = MiniFabric(root)
    try:
        yield fabric
    finally:
        fabric.stop()
