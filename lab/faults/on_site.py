"""What is done to the site itself, to its SMs, SSH, disks, files and cables, and how each is mended."""

import os
import signal
from typing import TYPE_CHECKING

from lab import breaking
from lab.errors import LabError
from lab.fabric import HCA
from lab.faults.crew import Worker
from lab.processes import ProcessID, descendants

if TYPE_CHECKING:
    from lab.faults.scene import Scene

TAKEOVER_S = 30.0
NOBODY = 65534


# Processes


def kill_worker(scene: "Scene") -> None:
    """SIGKILL the worker where it stands."""
    worker(scene).kill()


def worker(scene: "Scene") -> Worker:
    """The worker that stands still."""
    if scene.worker is None:
        raise LabError("no worker runs")
    return scene.worker


def kill_master(scene: "Scene") -> None:
    breaking.kill_opensm(scene.site, scene.master.name)


def kill_standby(scene: "Scene") -> None:
    breaking.kill_opensm(scene.site, scene.standby.name)


def start_sms(scene: "Scene") -> None:
    """Start what does not run; the second one only once the first is master, or the simulator may lose its question."""
    for manager in scene.site.managers:
        if manager.opensm is None:
            breaking.start_opensm(scene.site, manager.name)
            if manager.name == scene.master.name:
                scene.site.wait_for_master(manager.name, timeout_s=TAKEOVER_S)


def restart_both(scene: "Scene") -> None:
    kill_standby(scene)
    kill_master(scene)
    start_sms(scene)


def third_sm(scene: "Scene") -> None:
    breaking.start_rogue(scene.site)


def weak_third_sm(scene: "Scene") -> None:
    breaking.start_rogue(scene.site, priority=1)


def end_third_sm(scene: "Scene") -> None:
    breaking.end_rogue(scene.site)
    scene.site.wait_for_master(scene.master.name, timeout_s=TAKEOVER_S)


def other_file_for_the_master(scene: "Scene") -> None:
    other = scene.master.partitions_file.with_name("other.conf")
    other.write_bytes(scene.master.partitions_file.read_bytes())
    breaking.restart_opensm(scene.site, scene.master.name, partitions=other)
    scene.site.wait_for_roles(timeout_s=TAKEOVER_S)


def own_file_for_the_master(scene: "Scene") -> None:
    breaking.restart_opensm(scene.site, scene.master.name)
    scene.site.wait_for_roles(timeout_s=TAKEOVER_S)
    scene.master.partitions_file.with_name("other.conf").unlink()


# SSH


def cut_ssh(scene: "Scene") -> None:
    breaking.end_sshd(scene.site, scene.master.name)


def mend_ssh(scene: "Scene") -> None:
    breaking.start_sshd(scene.site, scene.master.name)


def cut_ssh_of_the_standby(scene: "Scene") -> None:
    breaking.end_sshd(scene.site, scene.standby.name)


def mend_ssh_of_the_standby(scene: "Scene") -> None:
    breaking.start_sshd(scene.site, scene.standby.name)


def hang_sshd(scene: "Scene") -> None:
    """The kernel still accepts connections, and nobody speaks; open sessions end."""
    listener = scene.master.sshd
    if listener is None:
        raise LabError("sshd does not run")
    for pid in descendants({listener.pid}):
        session = ProcessID.of(pid)
        if session is not None:
            session.send(signal.SIGKILL)
    listener.send(signal.SIGSTOP)


def wake_sshd(scene: "Scene") -> None:
    breaking.end_sshd(scene.site, scene.master.name)  # what queued up meanwhile is thrown away with it
    breaking.start_sshd(scene.site, scene.master.name)


def other_host_key(scene: "Scene") -> None:
    breaking.change_host_key(scene.site, scene.master.name)


def enrolled_host_key(scene: "Scene") -> None:
    breaking.restore_host_key(scene.site, scene.master.name)


# Disks and files


def full_disk(scene: "Scene") -> None:
    breaking.fill_disk(scene.site, scene.standby.name)


def full_disk_of_the_master(scene: "Scene") -> None:
    breaking.fill_disk(scene.site, scene.master.name)


def read_only_disk(scene: "Scene") -> None:
    breaking.make_disk_read_only(scene.site, scene.standby.name)


def read_only_disk_of_the_master(scene: "Scene") -> None:
    breaking.make_disk_read_only(scene.site, scene.master.name)


def mend_disks(scene: "Scene") -> None:
    for manager in scene.site.managers:
        breaking.mend_disk(scene.site, manager.name)


def wrong_owner(scene: "Scene") -> None:
    """The file becomes somebody else's and closed to others; where the lab is no root, its folder takes no new file.

    Root writes everywhere, so there nothing may break, and the owner must stay what somebody made it.
    """
    path = scene.master.partitions_file
    if os.geteuid() == 0:
        path.chmod(0o600)
        os.chown(path, NOBODY, NOBODY)
    else:
        path.parent.chmod(0o555)


def right_owner(scene: "Scene") -> None:
    path = scene.master.partitions_file
    if os.geteuid() == 0:
        if path.stat().st_uid != NOBODY:
            raise LabError(f"{path} has lost the owner that somebody gave it.")
        os.chown(path, os.geteuid(), os.getegid())
        path.chmod(0o644)
    else:
        path.parent.chmod(0o755)


def edit_by_hand(scene: "Scene") -> None:
    breaking.replace_file(scene.site, scene.master.name, "edit")


def edit_standby_by_hand(scene: "Scene") -> None:
    breaking.replace_file(scene.site, scene.standby.name, "edit")


def crlf_by_hand(scene: "Scene") -> None:
    breaking.replace_file(scene.site, scene.master.name, "crlf")


# The fabric


def reload_by_somebody_else(scene: "Scene") -> None:
    breaking.reload_opensm(scene.site, scene.master.name)


def idle_hca(scene: "Scene") -> HCA:
    return scene.site.fabric.servers[4].hcas[0]


def moved_hca(scene: "Scene") -> HCA:
    """An HCA whose table the rollout changes."""
    return scene.site.fabric.servers[0].hcas[0]


def flap(scene: "Scene") -> None:
    breaking.cut_link(scene.site, idle_hca(scene))
    breaking.restore_link(scene.site, idle_hca(scene))


def unreadable(scene: "Scene") -> None:
    drop_pkey_packets(scene, idle_hca(scene), percent=100)


def readable(scene: "Scene") -> None:
    drop_pkey_packets(scene, idle_hca(scene), percent=0)


def refuse_set(scene: "Scene") -> None:
    drop_pkey_packets(scene, moved_hca(scene), percent=100)


def take_set(scene: "Scene") -> None:
    drop_pkey_packets(scene, moved_hca(scene), percent=0)


def drop_pkey_packets(scene: "Scene", hca: HCA, *, percent: int) -> None:
    """Let the simulator drop that share of all P_Key table packets (attribute 0x16) to a port, SETs and GETs."""
    said = scene.site.order("console", line=f'Error "{hca.node_id}"[1] {percent} 22')
    if said.startswith("#"):
        raise LabError(f"The simulator refused: {said}")


def reboot_begins(scene: "Scene") -> None:
    for hca in scene.site.fabric.servers[0].hcas:
        breaking.cut_link(scene.site, hca)


def reboot_ends(scene: "Scene") -> None:
    for hca in scene.site.fabric.servers[0].hcas:
        breaking.restore_link(scene.site, hca)
