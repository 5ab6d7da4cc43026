"""The simulator process and its console.

The console is read and written here only. A comment line is echoed by ibsim, which marks the end of an answer.
"""

import os
import re
import select
import socket
import struct
import subprocess
import time
from pathlib import Path

from lab.errors import LabError
from lab.processes import MARK, ProcessID

READY = b"Network simulator ready."
CONTROL = struct.Struct("=IIII64s")  # magic, slot, kind, length, data (ibsim.h, struct sim_ctl)
CONNECT, DISCONNECT = 1, 2  # kinds of a control packet (ibsim.h, enum SIM_CTL_TYPES)
_MAGIC, _SET_IS_SM = 0xDEADBEEF, 9
_CLIENT = re.compile(rb"Client (\d+): pid (\d+) connected at \"([^\"]*)\"")


def abstract_address(name: str) -> bytes:
    """The address of an abstract socket as ibsim writes it, with a NUL at both ends."""
    return b"\0" + name.encode() + b"\0"


def datagram_socket(name: str) -> socket.socket:
    """A datagram socket with a name of its own, which gives up waiting after 5 s."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(5.0)
    made.bind(abstract_address(name))
    return made


def _control(control: socket.socket, kind: int, slot: int, data: bytes) -> bytes:
    """One request of the control protocol (ibsim.h, struct sim_ctl) and the data of its answer."""
    control.send(CONTROL.pack(_MAGIC, slot, kind, len(data), data))
    _, _, answered, _, result = CONTROL.unpack(control.recv(CONTROL.size))
    if answered != kind:
        raise LabError("The simulator refused a client: all its slots are taken, or it does not know the node.")
    return bytes(result)


def take_seat(control: socket.socket, *, client: int, node_id: str) -> int:
    """Become client number `client` at a node over a connected control socket; return the slot given."""
    seat = struct.pack("=III32s", client, 0, 0, node_id.encode())
    return int(struct.unpack_from("=I", _control(control, CONNECT, 0, seat))[0])


def leave_seat(control: socket.socket, *, slot: int) -> None:
    """Give a slot back."""
    _control(control, DISCONNECT, slot, b"")


class Simulator:
    """One running ibsim whose stdin stays open, because it leaves when its stdin ends."""

    def __init__(self, process: "subprocess.Popen[bytes]", socket_name: str) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the simulator's console must be pipes")
        self._in = process.stdin.fileno()
        self.out = process.stdout.fileno()
        os.set_blocking(self.out, False)
        self._socket_name = socket_name
        self._heard = b""
        self._asked = 0

    def listen(self) -> None:
        """Take what the simulator has said, so that it never blocks on a full pipe."""
        while True:
            try:
                said = os.read(self.out, 65536)
            except BlockingIOError:
                return
            if not said:
                return
            self._heard = (self._heard + said)[-(1 << 20) :]

    @property
    def is_ready(self) -> bool:
        """Whether the topology is loaded and clients can attach."""
        self.listen()
        return READY in self._heard

    def ask(self, command: str, *, timeout_s: float = 10.0) -> str:
        """Type one console line and return the answer; raise LabError when none comes."""
        self.listen()
        self._asked += 1
        end = f"#end-{self._asked}-".encode()
        self._heard = b""
        os.write(self._in, command.encode() + b"\n" + end + b"\n")
        deadline = time.monotonic() + timeout_s
        while end not in self._heard:
            left = deadline - time.monotonic()
            if left <= 0:
                raise LabError(f"The simulator did not answer “{command}” within {timeout_s:.0f} s.")
            if select.select([self.out], [], [], left)[0]:
                before = len(self._heard)
                self.listen()
                if len(self._heard) == before:
                    raise LabError("The simulator is gone.")
        answer = self._heard.partition(end)[0]
        return answer.replace(b"sim> ", b"").decode(errors="replace").strip()

    def clients(self) -> dict[int, int]:
        """Slot number → PID of the client that took it."""
        found = _CLIENT.finditer(self.ask("Attached").encode())
        return {int(match[1]): int(match[2]) for match in found}

    def reap(self) -> list[int]:
        """Free the slots of dead clients and return their PIDs: ibsim never notices a SIGKILL by itself."""
        freed = []
        for slot, pid in self.clients().items():
            if not self._is_client(pid):
                self.ask(f"X {slot}")
                freed.append(pid)
        return freed

    def set_is_sm(self, node_id: str, is_sm: bool) -> None:
        """Show or hide that an SM runs on a node (PortInfo's IsSM bit) without touching the SM.

        Speaks ibsim's own control protocol as a client of that node, and leaves in the way that keeps the bit.
        """
        own = os.getpid()
        control = datagram_socket(f"{self._socket_name}:ctl{own}")
        # ibsim connects to the second one at once, and ends when it cannot.
        with control, datagram_socket(f"{self._socket_name}:in{own}"):
            control.connect(abstract_address(f"{self._socket_name}:ctl"))
            slot = take_seat(control, client=own, node_id=node_id)
            _control(control, _SET_IS_SM, slot, struct.pack("=i", int(is_sm)))
            leave_seat(control, slot=slot)

    def _is_client(self, pid: int) -> bool:
        """Whether `pid` runs and is a client of this simulator rather than a later process of the same number."""
        if ProcessID.of(pid) is None:
            return False
        try:
            return f"IBSIM_SOCKNAME={self._socket_name}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except PermissionError:
            return True
        except OSError:
            return False


def client_environment(*, lab: str, socket_name: str, library: Path, node_id: str) -> dict[str, str]:
    """The environment that makes a program of libibumad a client of the simulator, seated at `node_id`."""
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "LD_PRELOAD": str(library),
        "SIM_HOST": node_id,
        "IBSIM_SOCKNAME": socket_name,
        MARK: lab,
    }


def sweep_folders(root: Path) -> list[Path]:
    """Remove the `sys-PID` folders that killed clients left anywhere below `root`; return what was removed."""
    removed = []
    for folder in sorted(root.rglob("sys-*")):
        number = folder.name.removeprefix("sys-")
        if not folder.is_dir() or not number.isdigit() or ProcessID.of(int(number)) is not None:
            continue
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
        folder.rmdir()
        removed.append(folder)
    return removed
