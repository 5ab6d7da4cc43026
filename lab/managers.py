"""One manager host of the lab: its folder, keys, configuration files and the command lines of its two daemons.

It is prepared by the same documented command that prepares a real manager host (`remote/host/install`).
"""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.fabric import Box
from lab.free_ports import free_port
from lab.layout import Layout, ManagerLayout, ManagerRecord, State, program, repository, umad_library
from lab.processes import MARK, ProcessID
from lab.simulator import client_environment
from lab.sshd import sshd_config
from subnet.guid import GUID
from subnet.partitions_conf import Header, render
from subnet.table import PartitionTable

SUBNET = "lab"
# The first manager host is the master as long as it lives; a rogue must come with more than that.
PRIORITIES = (5, 4)


@dataclass(frozen=True, slots=True)
class LabManager:
    """One manager host as the product would enrol it, where its files lie, and its processes when it was looked at."""

    name: str
    address: str
    ssh_port: int
    user: str
    host_key: str
    port_guid: GUID
    directory: Path
    wrapper_digest: str
    reader_digest: str
    priority: int
    node_id: str
    opensm: ProcessID | None
    sshd: ProcessID | None

    @property
    def opensm_pid(self) -> int:
        """The PID of its OpenSM; raise LabError when none runs, because 0 would signal the caller's own group."""
        if self.opensm is None:
            raise LabError(f"OpenSM of {self.name} does not run.")
        return self.opensm.pid

    @property
    def partitions_file(self) -> Path:
        """The file its OpenSM reads, on the lab's own disk (`Site.read_file` also sees a full one)."""
        return ManagerLayout(self.directory).partitions

    @property
    def log_file(self) -> Path:
        """OpenSM's log."""
        return ManagerLayout(self.directory).log

    @property
    def list_file(self) -> Path:
        """OpenSM's subnet list, rewritten after each clean heavy sweep as master."""
        return ManagerLayout(self.directory).list


def lab_manager(state: State, record: ManagerRecord) -> LabManager:
    """The manager host of `record` with the processes that live now."""
    return LabManager(
        name=record.name,
        address=record.address,
        ssh_port=record.ssh_port,
        user=record.user,
        host_key=record.host_key,
        port_guid=GUID(record.port_guid),
        directory=Path(record.directory),
        wrapper_digest=record.wrapper_digest,
        reader_digest=record.reader_digest,
        priority=record.priority,
        node_id=record.node_id,
        opensm=state.process(f"opensm-{record.name}"),
        sshd=state.process(f"sshd-{record.name}"),
    )


def this_user() -> str:
    """The account that runs the lab, the only one its sshd lets in."""
    return pwd.getpwuid(os.geteuid()).pw_name


def make_key(path: Path, comment: str) -> str:
    """Create an Ed25519 key pair at `path` and return the public key as `ssh-ed25519 AAAA…`."""
    for old in (path, path.with_name(path.name + ".pub")):
        old.unlink(missing_ok=True)
    command = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return public_key(path)


def public_key(path: Path) -> str:
    """The public half of the key pair at `path`, without its comment."""
    return " ".join(path.with_name(path.name + ".pub").read_text(encoding="ascii").split()[:2])


def first_partitions(fabric_managers: tuple[Box, ...]) -> bytes:
    """The partition file both hosts start with: Default only, both SM ports full."""
    sm_ports = tuple(GUID(box.hcas[0].port_guid) for box in fabric_managers)
    return render(PartitionTable(sm_ports=sm_ports), Header(subnet=SUBNET, revision=1, parent="0" * 64))


def prepare(layout: Layout, state: State, box: Box, *, address: str, priority: int, partitions: bytes) -> ManagerRecord:
    """Lay out a manager host's folder and files, install the wrapper and the reader, and return its record."""
    place = layout.manager(box.hostname)
    for folder in (place.etc, place.dump, place.cache, place.log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    place.partitions.write_bytes(partitions)
    hca = box.hcas[0]
    record = ManagerRecord(
        name=box.hostname,
        address=address,
        ssh_port=free_port(address),
        user=this_user(),
        host_key=make_key(place.host_key, f"{box.hostname} of lab {state.lab}"),
        node_id=hca.node_id,
        port_guid=hca.port_guid,
        priority=priority,
        directory=str(place.directory),
        partitions=str(place.partitions),
    )
    _install(layout, state, place, record)
    write_opensm_conf(place, record)
    return record


def _install(layout: Layout, state: State, place: ManagerLayout, record: ManagerRecord) -> None:
    seat = client_environment(
        lab=state.lab, socket_name=state.socket_name, library=umad_library(), node_id=record.node_id
    )
    command = ["/bin/sh", str(repository() / "remote/host/install"), "--to", str(place.host)]
    command += ["--partitions", str(place.partitions), "--list", str(place.list), "--log", str(place.log)]
    command += ["--port-guid", record.port_guid, "--authorized-key", str(layout.keys / "manager_key.pub")]
    for name in ("LD_PRELOAD", "SIM_HOST", "IBSIM_SOCKNAME", MARK):
        command += ["--host-env-line", f"{name}={seat[name]}"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise LabError(f"remote/host/install failed for {record.name}: {(done.stderr or done.stdout).strip()}")
    record.wrapper_digest, record.reader_digest, line = read_install_output(done.stdout)
    place.authorized_keys.write_text(line + "\n", encoding="ascii")
    place.authorized_keys.chmod(0o600)


def read_install_output(text: str) -> tuple[str, str, str]:
    """(wrapper digest, reader digest, authorized_keys line) from what `remote/host/install` prints."""
    rows = {row.split()[0]: row for row in text.splitlines() if row.strip()}
    line = next((row for row in text.splitlines() if row.startswith("restrict,command=")), None)
    try:
        wrapper, reader = (rows[word].split()[1] for word in ("wrapper", "reader"))
    except KeyError as missing:
        raise LabError(f"remote/host/install did not print the digest of the {missing}.") from None
    if line is None:
        raise LabError("remote/host/install did not print the line for authorized_keys.")
    return wrapper, reader, line


def write_opensm_conf(place: ManagerLayout, record: ManagerRecord) -> None:
    """Write opensm.conf and the per-module log levels (ground truth: rdma-lab, recipe facts)."""
    options = {
        "guid": record.port_guid,
        "sm_priority": str(record.priority),
        "sminfo_polling_timeout": "500",
        "polling_retry_number": "2",
        "partition_config_file": str(place.partitions),
        "log_file": str(place.log),
        "force_log_flush": "TRUE",
        "dump_files_dir": str(place.dump),
        "per_module_logging_file": str(place.module_logging),
    }
    place.conf.write_text("".join(f"{name} {value}\n" for name, value in options.items()), encoding="ascii")
    # osm_prtn.c stays at 0x03: with ALL=limited its level 7 logs a line for every port and sweep.
    levels = {"osm_prtn_config.c": "0x07", "osm_pkey_mgr.c": "0x07", "osm_state_mgr.c": "0x07", "osm_prtn.c": "0x03"}
    text = "".join(f"{module} {level}\n" for module, level in levels.items())
    place.module_logging.write_text(text, encoding="ascii")


def opensm_command(place: ManagerLayout, record: ManagerRecord) -> list[str]:
    """OpenSM's command line; `-P` on argv beats the one in opensm.conf."""
    return [
        program("opensm"), "-F", str(place.conf), "-g", record.port_guid, "-P", record.partitions, "-f", str(place.log),
    ]  # fmt: skip


def opensm_environment(state: State, *, node_id: str, dump: Path, cache: Path) -> dict[str, str]:
    """OpenSM's environment: its seat on the simulated fabric and its own dump and cache folders."""
    seat = client_environment(lab=state.lab, socket_name=state.sm_socket_name, library=umad_library(), node_id=node_id)
    return {**seat, "OSM_TMP_DIR": str(dump), "OSM_CACHE_DIR": str(cache)}


def rogue_command(folder: Path, *, port_guid: str, priority: int) -> list[str]:
    """A third OpenSM as a tenant's server would start it: no partition file, so every port becomes a full member.

    `-d 2` flushes its log after each line, as the managers' opensm.conf does.
    """
    return [
        program("opensm"), "-g", port_guid, "-p", str(priority), "-f", str(folder / "opensm.log"),
        "-P", str(folder / "no-partitions.conf"), "-d", "2",
    ]  # fmt: skip


def write_sshd_config(state: State, place: ManagerLayout, record: ManagerRecord, *, port: int) -> None:
    """Write sshd_config; absolute paths everywhere, one account, keys only."""
    root = os.geteuid() == 0
    options = {
        "ListenAddress": f"{record.address}:{port}",
        "HostKey": str(place.host_key),
        "AuthorizedKeysFile": str(place.authorized_keys),
        "PidFile": "none",
        "UsePAM": "yes" if root and _root_is_locked() else "no",
        "StrictModes": "no",
        "PermitRootLogin": "forced-commands-only" if root else "no",
        "AllowUsers": record.user,
        "PubkeyAuthentication": "yes",
        "LogLevel": "VERBOSE",
        # Everything a session starts carries the lab's mark, so that `down` finds orphaned verbs. The level keeps a
        # bash login shell from reading ~/.bashrc for every verb: a real account has /bin/sh (docs/manager-hosts.md).
        "SetEnv": f"{MARK}={state.lab} SHLVL=1",
    }
    place.sshd_config.write_text(sshd_config(options), encoding="ascii")


def _root_is_locked() -> bool:
    """Whether root's password field locks the account for an sshd without PAM."""
    try:
        rows = Path("/etc/shadow").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(row.startswith("root:!") for row in rows)


def sshd_command(place: ManagerLayout) -> list[str]:
    """sshd's command line; sshd re-executes itself and so insists on an absolute path."""
    return [program("sshd"), "-D", "-f", str(place.sshd_config), "-E", str(place.sshd_log)]
