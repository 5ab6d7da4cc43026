"""What a supervisor can be told to do: the actions behind the break verbs, carried out in the supervisor itself."""

import os
import sys
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.free_ports import free_port
from lab.layout import ManagerRecord, python_environment
from lab.managers import opensm_command, opensm_environment, rogue_command, sshd_command, write_sshd_config
from lab.namespaces import fill, make_read_only, mend
from lab.processes import MARK, ProcessID, descendants, kill_all, listeners_and_sessions
from lab.simulator import sweep_folders
from lab.sms import SubnetManager, SubnetManagers
from lab.sockets import command_name, is_listening, read_text

if TYPE_CHECKING:
    from lab.supervisor import Supervisor

ROGUE = "opensm-rogue"


class Orders:
    """The orders of one supervisor; every public method is one, with its arguments as JSON gives them."""

    def __init__(self, lab: "Supervisor") -> None:
        self._lab = lab
        self._sms = SubnetManagers(lab)

    def console(self, line: str) -> str:
        """Type a line on the simulator's console."""
        if self._lab.simulator is None:
            raise LabError("The simulator is gone.")
        return self._lab.simulator.ask(line)

    def reap(self) -> list[int]:
        """Free dead clients' slots now; the PIDs that held them."""
        return [] if self._lab.simulator is None else self._lab.simulator.reap()

    def note_link(self, node_id: str, port: int, cut: bool) -> None:
        """Remember in the state file that a link is cut, or is whole again."""
        others = [link for link in self._lab.state.cut_links if link != [node_id, port]]
        self._lab.state.cut_links = [*others, [node_id, port]] if cut else others

    def start_opensm(self, manager: str, partitions: str | None = None) -> None:
        """Start a manager host's OpenSM with `-P partitions` (default: the file FabricUI writes)."""
        record = self._lab.state.manager(manager)
        if self._lab.children.identity(f"opensm-{manager}") is not None:
            raise LabError(f"OpenSM of {manager} already runs.")
        place = self._lab.layout.manager(manager)
        record.partitions = partitions or str(place.partitions)
        seat = opensm_environment(self._lab.state, node_id=record.node_id, dump=place.dump, cache=place.cache)
        self._sms.start(
            SubnetManager(
                name=f"opensm-{manager}",
                node_id=record.node_id,
                port_guid=record.port_guid,
                priority=record.priority,
                command=opensm_command(place, record),
                environment=seat,
                log=place.log,
                output=place.output,
            ),
            namespace=self._lab.namespaces[manager],
        )

    def end_opensm(self, manager: str, kill: bool = False) -> None:
        """End a manager host's OpenSM, by SIGTERM or by SIGKILL."""
        self._lab.state.manager(manager)
        if self._lab.children.identity(f"opensm-{manager}") is None:
            raise LabError(f"OpenSM of {manager} does not run.")
        self._sms.end(f"opensm-{manager}", kill=kill)

    def start_rogue(self, node_id: str, port_guid: str, priority: int) -> None:
        """Start a third OpenSM on a server's HCA."""
        if self._lab.children.identity(ROGUE) is not None:
            raise LabError("A rogue SM already runs. Stop it first.")
        folder = self._lab.layout.rogue
        (folder / "cache").mkdir(parents=True, exist_ok=True)
        self._sms.start(
            SubnetManager(
                name=ROGUE,
                node_id=node_id,
                port_guid=port_guid,
                priority=priority,
                command=rogue_command(folder, port_guid=port_guid, priority=priority),
                environment=opensm_environment(self._lab.state, node_id=node_id, dump=folder, cache=folder / "cache"),
                log=folder / "opensm.log",
                output=folder / "opensm.out",
            )
        )

    def end_rogue(self, kill: bool = False) -> None:
        """End the rogue SM."""
        if self._lab.children.identity(ROGUE) is None:
            raise LabError("No rogue SM runs.")
        self._sms.end(ROGUE, kill=kill)

    def start_sshd(self, manager: str) -> None:
        """Start a manager host's sshd, and its relay if the connection is to be slow."""
        record = self._lab.state.manager(manager)
        name = f"sshd-{manager}"
        if self._lab.children.identity(name) is not None:
            raise LabError(f"sshd of {manager} already runs.")
        place = self._lab.layout.manager(manager)
        behind = record.ssh_port if not record.ssh_delay_ms else free_port(record.address)
        write_sshd_config(self._lab.state, place, record, port=behind)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", MARK: self._lab.state.lab}
        self._lab.children.start(
            name, sshd_command(place), cwd=self._lab.layout.run, output=place.sshd_log, env=environment,
            namespace=self._lab.namespaces[manager],
        )  # fmt: skip
        self._until_listening(record, behind, name)
        if record.ssh_delay_ms:
            relay = f"relay-{manager}"
            numbers = [str(record.ssh_port), str(behind), str(record.ssh_delay_ms)]
            command = [sys.executable, "-m", "lab.relay", record.address, *numbers]
            self._lab.children.start(
                relay, command, cwd=self._lab.layout.run, output=place.sshd_log,
                env=python_environment(self._lab.state.lab),
            )  # fmt: skip
            self._until_listening(record, record.ssh_port, relay)

    def _until_listening(self, record: ManagerRecord, port: int, name: str) -> None:
        place = self._lab.layout.manager(record.name)

        def listening() -> bool:
            if self._lab.children.identity(name) is None:
                raise LabError(f"{name} ended at once. Its log: {read_text(place.sshd_log)[-500:].strip()}")
            return is_listening(record.address, port)

        self._lab.until(listening, f"{name} to listen on {record.address}:{port}", timeout_s=15.0)

    def end_sshd(self, manager: str) -> None:
        """End a manager host's sshd with all its sessions and what they run: open sessions outlive a listener."""
        record = self._lab.state.manager(manager)
        listener = self._lab.children.identity(f"sshd-{manager}")
        relay = self._lab.children.identity(f"relay-{manager}")
        mine = {identity.pid for identity in (listener, relay) if identity is not None}

        def everything() -> set[int]:
            self._lab.children.wait_for_ended()
            holders = listeners_and_sessions([record.address]) - {os.getpid()}
            mine.update(pid for pid in holders if command_name(pid).startswith("sshd"))
            mine.update(descendants(mine))
            mine.intersection_update(pid for pid in mine if ProcessID.of(pid) is not None)
            return set(mine)

        if not kill_all(everything, timeout_s=5.0):
            raise LabError(f"sshd of {manager} could not be ended.")
        sweep_folders(self._lab.layout.run)
        self.reap()

    def delay_ssh(self, manager: str, delay_ms: int) -> None:
        """Make every byte to and from a manager host's sshd `delay_ms` late; 0 makes it fast again."""
        record = self._lab.state.manager(manager)
        self.end_sshd(manager)
        record.ssh_delay_ms = delay_ms
        self.start_sshd(manager)

    def disk(self, manager: str, condition: str) -> None:
        """Make the disk under a manager host's partition file `full`, `read-only` or `whole` again."""
        record = self._lab.state.manager(manager)
        namespace = self._lab.namespaces[manager]
        if namespace is None:
            raise LabError(
                "This machine allows the lab no mount namespace, so no disk can be filled. Run the lab as root, or "
                "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)."
            )
        folder = self._lab.layout.manager(manager).etc
        namespace.run(lambda: mend(folder))
        if condition == "full":
            namespace.run(lambda: fill(folder))
        elif condition == "read-only":
            namespace.run(lambda: make_read_only(folder))
        record.disk = condition
