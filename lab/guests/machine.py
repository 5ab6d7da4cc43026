"""One guest as a QEMU machine: what is in its memory when it starts, and its command line.

Emulated (TCG), so that it runs the same with and without KVM, and needs no right that an ordinary user lacks. Two
cards: user networking with one forwarded loopback port for SSH, and a stream socket to the other guest for the data.
"""

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.guests import initramfs
from lab.guests.kernel import Kernel
from lab.layout import program, repository
from lab.sshd import sshd_config

PROBE_ACCOUNT = "fabricui-probe"
DEVICE = "rxe0"
DATA_SOCKET = "data.sock"
MEMORY_MIB = 512
# Room for the largest path MTU that InfiniBand knows, 4096 bytes, and its headers: fewer packets to emulate.
DATA_MTU = 4500
_PAYLOAD = {
    "on_host.py": "probes/on_host.py",
    "fabricui-probe": "remote/host/fabricui-probe",
    "install-probe": "remote/host/install-probe",
    "agent.py": "inventory/agent.py",
}


@dataclass(frozen=True, slots=True)
class GuestRecord:
    """What the state file says about one guest; `host_key` is the public one, `ssh_port` 0 until it is started.

    The digests are those of the files that were packed: the repository may move on while the guest runs.
    """

    name: str
    number: int
    address: str
    ssh_port: int
    host_key: str
    management_mac: str
    data_mac: str
    data_address: str
    wrapper_digest: str
    program_digest: str

    @property
    def node_guid(self) -> str:
        """The GUID that Soft-RoCE derives from the data card's address (EUI-64)."""
        parts = [int(part, 16) for part in self.data_mac.split(":")]
        octets = [parts[0] ^ 2, *parts[1:3], 0xFF, 0xFE, *parts[3:]]
        return "0x" + bytes(octets).hex()


def new_record(number: int, *, name: str, network: str, host_key: str) -> GuestRecord:
    """A guest with card addresses of its own, so that the GUIDs of two labs differ."""
    lab = secrets.token_bytes(2).hex(":")
    return GuestRecord(
        name=name,
        number=number,
        address=f"{network}.{20 + number}",
        ssh_port=0,
        host_key=host_key,
        management_mac=f"52:54:{lab}:{number:02x}:01",
        data_mac=f"52:54:{lab}:{number:02x}:02",
        data_address=f"192.168.77.{number}",
        wrapper_digest=_digest("fabricui-probe"),
        program_digest=_digest("on_host.py"),
    )


def _digest(name: str) -> str:
    return hashlib.sha256((repository() / _PAYLOAD[name]).read_bytes()).hexdigest()


def pack(record: GuestRecord, kernel: Kernel, directory: Path) -> Path:
    """Write the guest's initramfs into `directory`, whose `keys` folder holds the keys, and return its path."""
    here = Path(__file__).parent
    archive = initramfs.base(
        busybox=_static_busybox(),
        modules=kernel.modules,
        init=(here / "init").read_text(encoding="utf-8"),
        accounts={PROBE_ACCOUNT: (1000, f"/home/{PROBE_ACCOUNT}")},
    )
    settings = {
        "GUEST_NAME": record.name,
        "MANAGEMENT_MAC": record.management_mac,
        "DATA_MAC": record.data_mac,
        "DATA_ADDRESS": f"{record.data_address}/24",
        "DEVICE": DEVICE,
    }
    archive.put("etc/guest.env", "".join(f"{key}={value}\n" for key, value in settings.items()))
    keys = directory / "keys"
    archive.put("etc/ssh/host_key", (keys / f"host_key-{record.number}").read_bytes(), mode=0o600)
    archive.put("etc/ssh/sshd_config", _sshd_config())
    archive.folder("etc/ssh/authorized_keys")
    # The lab's own key runs a script that comes on stdin; only the lab holds it.
    admin = (keys / "admin_key.pub").read_text(encoding="ascii")
    archive.put("etc/ssh/authorized_keys/root", f'restrict,command="/bin/sh -s" {admin}')
    archive.put("opt/payload/probe_key.pub", (keys / "probe_key.pub").read_bytes())
    for name, source in _PAYLOAD.items():
        path = repository() / source
        archive.put(f"opt/payload/{name}", path.read_bytes(), mode=path.stat().st_mode & 0o777)
    made = directory / f"initramfs-{record.number}"
    made.write_bytes(archive.pack())
    return made


def _static_busybox() -> Path:
    found = Path(program("busybox"))
    if b"/lib64/ld-linux" in found.read_bytes()[:4096]:
        raise LabError("The guests need a busybox without shared libraries. Install the package busybox-static.")
    return found


def _sshd_config() -> str:
    return sshd_config(
        {
            "HostKey": "/etc/ssh/host_key",
            "AuthorizedKeysFile": "/etc/ssh/authorized_keys/%u",
            "AllowUsers": f"root {PROBE_ACCOUNT}",
            "PermitRootLogin": "forced-commands-only",
            "PidFile": "/run/sshd.pid",
            "UsePAM": "no",
        }
    )


def command(record: GuestRecord, kernel: Kernel) -> list[str]:
    """QEMU's command line; it runs in the guests' directory, so that the socket's path stays short."""
    data_end = "on" if record.number == 1 else "off"
    forward = f"hostfwd=tcp:{record.address}:{record.ssh_port}-:22"
    return [
        program("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-machine", "pc", "-accel", "tcg",
        "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB), "-display", "none", "-no-reboot",
        "-kernel", str(kernel.image), "-initrd", f"initramfs-{record.number}",
        "-append", "console=ttyS0 quiet panic=-1 mitigations=off audit=0",
        "-serial", f"file:{console(record)}",
        "-netdev", f"user,id=management,ipv6=off,{forward}",
        "-device", f"virtio-net-pci,netdev=management,mac={record.management_mac},romfile=",
        "-netdev", f"stream,id=data,server={data_end},addr.type=unix,addr.path={DATA_SOCKET}",
        "-device", f"virtio-net-pci,netdev=data,mac={record.data_mac},host_mtu={DATA_MTU},romfile=",
        "-fsdev", "local,id=usr,path=/usr,security_model=none,readonly=on",
        "-device", "virtio-9p-pci,fsdev=usr,mount_tag=usr",
    ]  # fmt: skip


def console(record: GuestRecord) -> str:
    """The name of the file that holds what the guest says."""
    return f"{record.name}.console"
