"""What can go wrong at a real site, done to the lab on purpose. Each function returns once the fault is there.

`./run lab break` offers them on the command line (`lab/break_verbs.py`).
"""

import os
import signal
from pathlib import Path

from lab.errors import LabError
from lab.fabric import HCA
from lab.layout import wait_until
from lab.managers import make_key
from lab.site import Site
from subnet.guid import GUID

FOREIGN_ENTRY = 0x8ABC
HAND_EDIT = b"# edited by hand\nbyhand=0x0abc, defmember=full :\n ALL;\n"
ROGUE_PRIORITY = 15


# OpenSM


def kill_opensm(site: Site, manager: str) -> None:
    """Kill a manager host's OpenSM by SIGKILL, as the kernel does when memory runs out."""
    site.order("end_opensm", manager=manager, kill=True)


def end_opensm(site: Site, manager: str) -> None:
    """Stop a manager host's OpenSM in an orderly way (SIGTERM), as its service unit does."""
    site.order("end_opensm", manager=manager)


def freeze_opensm(site: Site, manager: str) -> None:
    """Stop a manager host's OpenSM in its tracks (SIGSTOP); signals sent now are seen when it goes on.

    The standby takes over from a frozen master, as on real hardware; who wants a master that is only busy freezes the
    standby first. In a lab too large for `lab.transactions` it does not, and there the tenth unanswered datagram to the
    frozen SM stops the whole simulator until it goes on.
    """
    os.kill(site.manager(manager).opensm_pid, signal.SIGSTOP)


def unfreeze_opensm(site: Site, manager: str) -> None:
    """Let a frozen OpenSM go on (SIGCONT, which OpenSM takes for a request to sweep)."""
    os.kill(site.manager(manager).opensm_pid, signal.SIGCONT)


def start_opensm(site: Site, manager: str, *, partitions: Path | None = None) -> None:
    """Start a manager host's OpenSM again, on its usual partition file or on another one."""
    site.order("start_opensm", manager=manager, partitions=None if partitions is None else str(partitions.absolute()))


def restart_opensm(site: Site, manager: str, *, partitions: Path | None = None) -> None:
    """Stop and start a manager host's OpenSM; with `partitions` its `-P` names another file than FabricUI writes."""
    if site.manager(manager).opensm is not None:
        end_opensm(site, manager)
    start_opensm(site, manager, partitions=partitions)


def reload_opensm(site: Site, manager: str) -> None:
    """Ask a manager host's OpenSM for a heavy sweep (SIGHUP)."""
    os.kill(site.manager(manager).opensm_pid, signal.SIGHUP)


# SSH


def end_sshd(site: Site, manager: str) -> None:
    """Stop a manager host's sshd together with its open sessions and what they run."""
    site.order("end_sshd", manager=manager)


def start_sshd(site: Site, manager: str) -> None:
    """Start a manager host's sshd again."""
    site.order("start_sshd", manager=manager)


def slow_ssh(site: Site, manager: str, *, delay_ms: int) -> None:
    """Make every byte from and to a manager host's sshd `delay_ms` late; open sessions end."""
    site.order("delay_ssh", manager=manager, delay_ms=delay_ms)


def change_host_key(site: Site, manager: str) -> str:
    """Give a manager host another host key, keeping the old one for `restore_host_key`; return the new public key."""
    key = site.layout.manager(manager).host_key
    site.state.manager(manager)
    for path in (key, key.with_name(key.name + ".pub")):
        kept = path.with_name(path.name + ".enrolled")
        if not kept.exists():
            path.rename(kept)
    public = make_key(key, f"{manager} with another key")
    _restart_sshd(site, manager)
    return public


def restore_host_key(site: Site, manager: str) -> None:
    """Give a manager host the host key back that it was enrolled with."""
    key = site.layout.manager(manager).host_key
    site.state.manager(manager)
    for path in (key, key.with_name(key.name + ".pub")):
        kept = path.with_name(path.name + ".enrolled")
        if kept.exists():
            kept.rename(path)
    _restart_sshd(site, manager)


def _restart_sshd(site: Site, manager: str) -> None:
    if site.manager(manager).sshd is not None:
        end_sshd(site, manager)
    start_sshd(site, manager)


# Files and disks


def fill_disk(site: Site, manager: str) -> None:
    """Fill the disk under a manager host's partition file: every further write fails with ENOSPC."""
    site.order("disk", manager=manager, condition="full")


def make_disk_read_only(site: Site, manager: str) -> None:
    """Make the disk under a manager host's partition file read-only: every write fails with EROFS."""
    site.order("disk", manager=manager, condition="read-only")


def mend_disk(site: Site, manager: str) -> None:
    """Give a manager host its disk back, with the files written meanwhile."""
    site.order("disk", manager=manager, condition="whole")


def replace_file(site: Site, manager: str, how: str = "edit", *, content: bytes | None = None) -> bytes:
    """Change a manager host's partition file by hand, in place: `crlf`, `empty`, `edit`, or to `content`.

    OpenSM reads it at its next heavy sweep (`reload_opensm`). Returns the bytes written.
    """
    site.state.manager(manager)
    path = site.manager(manager).partitions_file
    before = path.read_bytes()
    if content is None:
        texts = {"crlf": before.replace(b"\n", b"\r\n"), "empty": b"", "edit": before + HAND_EDIT}
        if how not in texts:
            raise LabError(f"A file can be replaced by {', '.join(texts)}, not by “{how}”.")
        content = texts[how]
    path.write_bytes(content)
    return content


# The fabric


def cut_link(site: Site, hca: HCA) -> None:
    """Cut the cable between an HCA and its leaf; both ports go down and the leaf sends a trap."""
    _link(site, "Unlink", hca, cut=True)


def restore_link(site: Site, hca: HCA) -> None:
    """Plug a cut cable in again."""
    _link(site, "ReLink", hca, cut=False)


def _link(site: Site, command: str, hca: HCA, *, cut: bool) -> None:
    leaf = f"S-{hca.leaf_guid[2:]}"
    said = site.order("console", line=f'{command} "{leaf}"[{hca.leaf_port}]')
    if said.startswith("#"):
        raise LabError(f"The simulator refused: {said.lstrip('# ')} ({hca.description}).")
    site.order("note_link", node_id=leaf, port=hca.leaf_port, cut=cut)


def start_rogue(site: Site, *, hostname: str | None = None, priority: int = ROGUE_PRIORITY) -> GUID:
    """Start a third OpenSM on a server's first HCA (default: the last server); return its port GUID.

    Returns when the SM has said what it is; with a priority above the managers' it becomes the master.
    """
    server = site.fabric.servers[-1] if hostname is None else site.fabric.server(hostname)
    hca = server.hcas[0]
    site.order("start_rogue", node_id=hca.node_id, port_guid=hca.port_guid, priority=priority)
    log = site.layout.rogue / "opensm.log"

    def has_role() -> bool:
        text = log.read_text(errors="replace") if log.exists() else ""
        return "Entering MASTER state" in text or "Entering STANDBY state" in text

    wait_until(has_role, timeout_s=30.0, what="the rogue SM to take a role")
    return hca.port_guid


def end_rogue(site: Site, *, kill: bool = False) -> None:
    """End the rogue SM, by SIGTERM or by SIGKILL."""
    site.order("end_rogue", kill=kill)


def spoil_port(site: Site, port_guid: str, *, entry: int = FOREIGN_ENTRY, index: int | None = None) -> int:
    """Write a P_Key table entry into a port by SMP, behind every SM's back; return the index (default: the last).

    OpenSM does not repair it: it trusts its own copy of the table (ground truth: OpenSM, 5.1).
    """
    guid = GUID(port_guid)
    lid = site.lids().get(guid)
    if lid is None:
        raise LabError(f"No port of the lab has the GUID {guid} and a LID. “./run lab status” lists the servers.")
    written = site.smp({"write": {"lid": lid, "index": index, "entry": entry}})
    return int(written["index"])
