"""What the tests of `remote` run against: an installed manager host, a real sshd, a process that looks like OpenSM."""

import contextlib
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from remote.local import LocalShell
from remote.manager_host import ManagerHost
from remote.shell import Shell
from remote.ssh import SSHShell

SOURCES = Path(__file__).resolve().parent.parent.parent / "remote" / "host"
PORT_GUID = "0x0210fa10000a0001"


def wait_until[T](what: Callable[[], T], *, within_s: float = 10.0) -> T:
    """The first true answer of `what`; fail after `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not become true within {within_s} s"
        time.sleep(0.02)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_key(path: Path, kind: str = "ed25519") -> str:
    """Write a key pair and return the public key line."""
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "test", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


@dataclass
class Host:
    """A folder prepared by `install`, with the files that host.env names."""

    conf: Path
    partitions: Path
    list_file: Path
    log: Path
    wrapper_digest: str
    reader_digest: str
    authorized_keys: str
    # The name of the simulated fabric it belongs to: tests run beside each other and see each other's processes.
    simulator: str

    @property
    def wrapper(self) -> Path:
        return self.conf / "fabricui-host"

    def over(self, shell: Shell) -> ManagerHost:
        return ManagerHost("sm1", shell, self.wrapper_digest, self.reader_digest)

    def locally(self) -> ManagerHost:
        return self.over(LocalShell(self.wrapper, self.conf))

    def set(self, line: str) -> None:
        """Append a line to host.env; the last one of a name counts."""
        with (self.conf / "host.env").open("a") as file:
            file.write(line + "\n")

    def replace_reader(self, script: str) -> None:
        """Put a shell script in the table reader's place, and pin it."""
        reader = self.conf / "fabricui-tables"
        reader.write_text("import os, sys\nos.execv('/bin/sh', ['sh', '-c', " + repr(script) + ", *sys.argv])\n")
        self.reader_digest = sha256(reader.read_bytes())

    def leftovers(self) -> list[str]:
        """Hidden files beside the partition file: what stage leaves before place."""
        return sorted(path.name for path in self.partitions.parent.glob(".*"))


def install(root: Path, public_key: Path, *extra: str, port_guid: str = PORT_GUID, simulator: str = "") -> Host:
    """Prepare a manager host below `root` with the documented command."""
    simulator = simulator or f"none-{sha256(str(root).encode())[:16]}"
    for folder in ("etc", "log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    conf, partitions = root / "host", root / "etc" / "partitions.conf"
    list_file, log = root / "log" / "opensm-subnet.lst", root / "log" / "opensm.log"
    done = subprocess.run(
        [
            SOURCES / "install", "--to", conf, "--partitions", partitions, "--list", list_file, "--log", log,
            "--port-guid", port_guid, "--authorized-key", public_key,
            "--host-env-line", f"IBSIM_SOCKNAME={simulator}", *extra,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [row.split() for row in done.stdout.splitlines()]
    line = next(row for row in done.stdout.splitlines() if row.startswith("restrict,command="))
    return Host(conf, partitions, list_file, log, rows[0][1], rows[1][1], line, simulator)


class Sshd:
    """A real sshd on a free loopback port; as root in a mount namespace of its own."""

    def __init__(self, root: Path, *, host_key_kind: str = "ed25519") -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.host_key = " ".join(make_key(root / "host_key", host_key_kind).split()[:2])
        self._authorized_keys = root / "authorized_keys"
        self.log = root / "sshd.log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        is_root = os.geteuid() == 0
        options = {
            "ListenAddress": f"127.0.0.1:{self.port}", "HostKey": root / "host_key", "PidFile": "none",
            "AuthorizedKeysFile": self._authorized_keys, "StrictModes": "no", "UseDNS": "no",
            "UsePAM": "yes" if is_root and _is_locked("root") else "no",
            "PermitRootLogin": "forced-commands-only" if is_root else "no", "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no", "LogLevel": "VERBOSE", "MaxStartups": "100",
        }  # fmt: skip
        (root / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        command = ["/usr/sbin/sshd", "-D", "-f", str(root / "sshd_config"), "-E", str(self.log)]
        if is_root and not Path("/run/sshd").is_dir():
            # root's sshd insists on /run/sshd; the machine's own /run stays as it is.
            script = 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        wait_until(self._greets)

    def _greets(self) -> bool:
        assert self._process.poll() is None, self.log.read_text() if self.log.exists() else "sshd did not start"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                return link.recv(4) == b"SSH-"
        except OSError:
            return False

    def let_in(self, line: str) -> None:
        """Make this line all of authorized_keys."""
        self._authorized_keys.write_text(line + "\n")
        self._authorized_keys.chmod(0o600)

    def sessions(self) -> list[int]:
        """The PIDs of the open connections' processes."""
        listing = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [int(word) for word in listing.split()]

    def drop_sessions(self) -> None:
        """Cut every open connection, as a reboot of the machine would."""
        gone = self.sessions()
        for pid in gone:
            for child in [*children(pid), pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, 9)
        wait_until(lambda: not set(gone) & set(self.sessions()))

    def shell(self, key_file: Path, *, host_key: str = "") -> SSHShell:
        return SSHShell(
            address="127.0.0.1", port=self.port, user=_account(), key_file=key_file, host_key=host_key or self.host_key
        )

    def stop(self) -> None:
        self.drop_sessions()
        self._process.terminate()
        self._process.wait(10)


def children(pid: int) -> list[int]:
    """The direct children of a process, none when it is gone."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _account() -> str:
    return subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()


def _is_locked(account: str) -> bool:
    with contextlib.suppress(OSError):
        return any(row.startswith(f"{account}:!") for row in Path("/etc/shadow").read_text().splitlines())
    return False


@contextlib.contextmanager
def looks_like_opensm(
    root: Path, *arguments: str, simulator: str, environment: dict[str, str] | None = None
) -> Iterator[Path]:
    """A process called opensm with these arguments, which notes every SIGHUP in the file it yields."""
    root.mkdir(parents=True, exist_ok=True)
    program, hups = root / "opensm", root / "hups"
    # A running script carries its file's name, which is what pgrep looks for.
    program.write_text(
        f"#!/bin/sh\n[ \"$1\" = --version ] && exit\ntrap 'echo hup >>{hups}' HUP\necho up >{root}/up\n"
        "while :; do sleep 0.05; done\n"
    )
    program.chmod(0o755)
    own = {"OSM_TMP_DIR": str(root), "OSM_CACHE_DIR": str(root), "PATH": "/usr/bin:/bin", "IBSIM_SOCKNAME": simulator}
    # A shell cannot trap what its parent ignores, and whoever starts the tests with nohup ignores SIGHUP.
    argv = ["/usr/bin/env", "--default-signal=HUP", program, *arguments]
    process = subprocess.Popen(argv, env=own | (environment or {}), cwd=root)
    try:
        wait_until((root / "up").exists)
        yield hups
    finally:
        process.kill()
        process.wait()


def run_wrapper(host: Host, command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Start the wrapper with exactly this SSH_ORIGINAL_COMMAND, past the client's own checks."""
    environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": command}
    return subprocess.run([host.wrapper, host.conf], env=environment, input=stdin, capture_output=True, check=False)
