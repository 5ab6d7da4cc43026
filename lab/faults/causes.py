"""The faults: how each is done to the lab while a worker is stopped at a step, and how it is mended again.

`apply` runs while the worker stands still; `mend` once the rollout is in a named state. What a fault breaks by itself,
so that the observer must not call it the product's doing, stands in `excuses` ({master} and {standby} are filled in).
"""

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab import breaking
from lab.errors import LabError
from lab.fabric import HCA
from lab.faults.points import Point
from lab.faults.scene import Scene, place_by_hand
from lab.layout import wait_until
from lab.processes import ProcessID, descendants

TAKEOVER_S = 30.0
TWO_HOURS_S = 7200.0


def nothing(scene: Scene) -> None:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. `jump_s` is how far the stopped worker's clock jumps as it goes on.

    `says` are words that the cause has to hold as long as the fault lasts, unless the rollout is PROVEN all the same.
    """

    apply: Callable[[Scene], None]
    mend: Callable[[Scene], None] = nothing
    excuses: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    takeover: bool = False  # whether the standby becomes master while the fault lasts
    jump_s: float = 0.0
    with_celery: bool = False


# Processes


def kill_worker(scene: Scene) -> None:
    """SIGKILL the worker where it stands."""
    _worker(scene).kill()


def _worker(scene: Scene):  # type: ignore[no-untyped-def]
    if scene.worker is None:
        raise LabError("no worker runs")
    return scene.worker


def _kill_master(scene: Scene) -> None:
    breaking.kill_opensm(scene.site, scene.master.name)


def _kill_standby(scene: Scene) -> None:
    breaking.kill_opensm(scene.site, scene.standby.name)


def _start_sms(scene: Scene) -> None:
    for manager in scene.site.managers:
        if manager.opensm is None:
            breaking.start_opensm(scene.site, manager.name)


def _restart_both(scene: Scene) -> None:
    _kill_standby(scene)
    _kill_master(scene)
    _start_sms(scene)


def _third_sm(scene: Scene) -> None:
    breaking.start_rogue(scene.site)


def _weak_third_sm(scene: Scene) -> None:
    breaking.start_rogue(scene.site, priority=1)


def _end_third_sm(scene: Scene) -> None:
    breaking.end_rogue(scene.site)
    scene.site.wait_for_master(scene.master.name, timeout_s=TAKEOVER_S)


def _other_file_for_the_master(scene: Scene) -> None:
    other = scene.master.partitions_file.with_name("other.conf")
    other.write_bytes(scene.master.partitions_file.read_bytes())
    breaking.restart_opensm(scene.site, scene.master.name, partitions=other)
    scene.site.wait_for_roles(timeout_s=TAKEOVER_S)


def _own_file_for_the_master(scene: Scene) -> None:
    breaking.restart_opensm(scene.site, scene.master.name)
    scene.site.wait_for_roles(timeout_s=TAKEOVER_S)
    scene.master.partitions_file.with_name("other.conf").unlink()


# SSH


def _cut_ssh(scene: Scene) -> None:
    breaking.end_sshd(scene.site, scene.master.name)


def _mend_ssh(scene: Scene) -> None:
    breaking.start_sshd(scene.site, scene.master.name)


def _cut_ssh_of_the_standby(scene: Scene) -> None:
    breaking.end_sshd(scene.site, scene.standby.name)


def _mend_ssh_of_the_standby(scene: Scene) -> None:
    breaking.start_sshd(scene.site, scene.standby.name)


def _hang_sshd(scene: Scene) -> None:
    """The kernel still accepts connections, and nobody speaks; open sessions end."""
    listener = scene.master.sshd
    if listener is None:
        raise LabError("sshd does not run")
    for pid in descendants({listener.pid}):
        session = ProcessID.of(pid)
        if session is not None:
            session.send(signal.SIGKILL)
    listener.send(signal.SIGSTOP)


def _wake_sshd(scene: Scene) -> None:
    breaking.end_sshd(scene.site, scene.master.name)  # what queued up meanwhile is thrown away with it
    breaking.start_sshd(scene.site, scene.master.name)


def _other_host_key(scene: Scene) -> None:
    breaking.change_host_key(scene.site, scene.master.name)


def _enrolled_host_key(scene: Scene) -> None:
    breaking.restore_host_key(scene.site, scene.master.name)


# Disks and files


def _full_disk(scene: Scene) -> None:
    breaking.fill_disk(scene.site, scene.standby.name)


def _full_disk_of_the_master(scene: Scene) -> None:
    breaking.fill_disk(scene.site, scene.master.name)


def _read_only_disk(scene: Scene) -> None:
    breaking.make_disk_read_only(scene.site, scene.standby.name)


def _read_only_disk_of_the_master(scene: Scene) -> None:
    breaking.make_disk_read_only(scene.site, scene.master.name)


def _mend_disks(scene: Scene) -> None:
    for manager in scene.site.managers:
        breaking.mend_disk(scene.site, manager.name)


def _wrong_owner(scene: Scene) -> None:
    """The file becomes somebody else's and closed to others; where the lab is no root, its folder takes no new file.

    Root writes everywhere, so there nothing may break, and the owner must stay what somebody made it.
    """
    path = scene.master.partitions_file
    if os.geteuid() == 0:
        path.chmod(0o600)
        os.chown(path, 65534, 65534)
    else:
        path.parent.chmod(0o555)


def _right_owner(scene: Scene) -> None:
    path = scene.master.partitions_file
    if os.geteuid() == 0:
        if path.stat().st_uid != 65534:
            raise LabError(f"{path} has lost the owner that somebody gave it.")
        os.chown(path, os.geteuid(), os.getegid())
        path.chmod(0o644)
    else:
        path.parent.chmod(0o755)


def _edit_by_hand(scene: Scene) -> None:
    breaking.replace_file(scene.site, scene.master.name, "edit")


def _edit_standby_by_hand(scene: Scene) -> None:
    breaking.replace_file(scene.site, scene.standby.name, "edit")


def _crlf_by_hand(scene: Scene) -> None:
    breaking.replace_file(scene.site, scene.master.name, "crlf")


# The fabric


def _reload_by_somebody_else(scene: Scene) -> None:
    breaking.reload_opensm(scene.site, scene.master.name)


def _idle_hca(scene: Scene) -> HCA:
    return scene.site.fabric.servers[4].hcas[0]


def moved_hca(scene: Scene) -> HCA:
    """An HCA whose table the rollout changes."""
    return scene.site.fabric.servers[0].hcas[0]


def _flap(scene: Scene) -> None:
    breaking.cut_link(scene.site, _idle_hca(scene))
    breaking.restore_link(scene.site, _idle_hca(scene))


def _unreadable(scene: Scene) -> None:
    _drop_pkey_packets(scene, _idle_hca(scene), percent=100)


def _readable(scene: Scene) -> None:
    _drop_pkey_packets(scene, _idle_hca(scene), percent=0)


def _refuse_set(scene: Scene) -> None:
    _drop_pkey_packets(scene, moved_hca(scene), percent=100)


def _take_set(scene: Scene) -> None:
    _drop_pkey_packets(scene, moved_hca(scene), percent=0)


def _drop_pkey_packets(scene: Scene, hca: HCA, *, percent: int) -> None:
    """Let the simulator drop that share of all P_Key table packets (attribute 0x16) to a port, SETs and GETs."""
    said = scene.site.order("console", line=f'Error "{hca.node_id}"[1] {percent} 22')
    if said.startswith("#"):
        raise LabError(f"The simulator refused: {said}")


def _reboot_begins(scene: Scene) -> None:
    for hca in scene.site.fabric.servers[0].hcas:
        breaking.cut_link(scene.site, hca)


def _reboot_ends(scene: Scene) -> None:
    for hca in scene.site.fabric.servers[0].hcas:
        breaking.restore_link(scene.site, hca)


# Clocks, broker, database, further workers


def _overtaken(scene: Scene) -> None:
    """The lease runs out while the worker stands still: another one takes over and finishes before it goes on."""
    from django.utils import timezone

    from deploy.models import Rollout

    over = {"claimed_until": timezone.now(), "claimed_until_up": 0.0}  # by the wall clock and by the machine's own
    columns = {column.name for column in Rollout._meta.get_fields()}
    ended = {name: value for name, value in over.items() if name in columns}
    Rollout.objects.filter(pk=scene.played.pk).update(**ended)
    scene.crew.start(scene.played.pk).wait()


def _second_worker(scene: Scene) -> None:
    """A second worker is handed the same rollout; it must find it taken and leave everything as it is."""
    before = (scene.played.state, scene.played.claimed_by, scene.played.steps.count())
    scene.crew.start(scene.played.pk).wait()
    if (scene.played.state, scene.played.claimed_by, scene.played.steps.count()) != before:
        raise LabError("The second worker did something although the first holds the rollout.")


def _deliver_twice(scene: Scene) -> None:
    from deploy.tasks import run_rollout

    for _ in range(2):
        run_rollout.apply_async(kwargs={"rollout_id": scene.played.pk})


def _restart_broker(scene: Scene) -> None:
    """The broker is killed and comes back empty: what waited in it is lost."""
    scene.stop_broker()
    scene.start_broker()


def _restart_postgresql(scene: Scene) -> None:
    scene.close_connections()
    scene.cluster.restart()

    def answers() -> bool:
        from django.db import DatabaseError

        with contextlib.suppress(DatabaseError):
            scene.played  # noqa: B018  asks the database
            return True
        scene.close_connections()
        return False

    wait_until(answers, timeout_s=20, what="PostgreSQL to answer again")


def _undo_the_jump(scene: Scene) -> None:
    """The clock is right again. Times that lie ahead would make every new look seem old (docs/faults.md)."""
    from django.db.models.functions import Now

    from deploy.models import Observation, Rollout

    now = Now()
    for model, names in ((Rollout, ("finished_at", "next_try_at", "claimed_until")), (Observation, ("read_at",))):
        for name in names:
            model.objects.filter(**{f"{name}__gt": now}).update(**{name: now})


FAULTS: Final = {
    "worker killed": Fault(kill_worker),
    "SSH cut": Fault(_cut_ssh, _mend_ssh, says=("{master}",)),
    "SSH of the standby cut": Fault(_cut_ssh_of_the_standby, _mend_ssh_of_the_standby, says=("{standby}",)),
    "master killed": Fault(_kill_master, _start_sms, takeover=True),
    "standby killed": Fault(_kill_standby, _start_sms, says=("{standby}",)),
    "disk of the standby full": Fault(_full_disk, _mend_disks, says=("{standby}", "0 KiB free")),
    "disk of the master full": Fault(_full_disk_of_the_master, _mend_disks, says=("{master}", "0 KiB free")),
    "disk of the standby read-only": Fault(_read_only_disk, _mend_disks, says=("{standby}", "cannot write")),
    "disk of the master read-only": Fault(
        _read_only_disk_of_the_master, _mend_disks, says=("{master}", "cannot write")
    ),
    "wrong owner": Fault(_wrong_owner, _right_owner),
    "sshd hangs after accept": Fault(_hang_sshd, _wake_sshd, says=("{master}",)),
    "host key changed": Fault(_other_host_key, _enrolled_host_key, says=("{master}", "host key")),
    "both SMs restarted": Fault(_restart_both),
    "foreign sweep": Fault(_reload_by_somebody_else),
    "link flap": Fault(_flap, excuses=("port:{idle}",)),
    "hand edit of the master's file": Fault(_edit_by_hand, excuses=("file:{master}",), says=("{master}",)),
    "CRLF in the master's file": Fault(_crlf_by_hand, excuses=("file:{master}",), says=("{master}",)),
    "hand edit of the standby's file": Fault(_edit_standby_by_hand, excuses=("file:{standby}",), says=("{standby}",)),
    "unreadable unaffected port": Fault(_unreadable, _readable, excuses=("port:{idle}",)),
    "SET refused on a moved port": Fault(_refuse_set, _take_set, excuses=("port:{moved}",)),
    "server reboots": Fault(_reboot_begins, _reboot_ends, excuses=("port:{moved}", "port:{moved_too}")),
    "third SM takes over": Fault(_third_sm, _end_third_sm, excuses=("fallback",), says=("{third}",)),
    "third SM stands by": Fault(_weak_third_sm, _end_third_sm),
    "wrong -P": Fault(_other_file_for_the_master, _own_file_for_the_master, says=("{master}", "other.conf")),
    "clock jumps ahead": Fault(nothing, _undo_the_jump, jump_s=TWO_HOURS_S),
    "clock jumps back": Fault(nothing, _undo_the_jump, jump_s=-TWO_HOURS_S),
    "second worker": Fault(_second_worker),
    "overtaken by another worker": Fault(_overtaken),
    "duplicate delivery": Fault(_deliver_twice, with_celery=True),
    "Redis restarted": Fault(_restart_broker, with_celery=True),
    "PostgreSQL restarted": Fault(_restart_postgresql),
}


def excuses(scene: Scene, fault: Fault) -> list[str]:
    """What the observer must not call the product's doing as long as `fault` lasts."""
    return [word.format_map(_names(scene)) for word in fault.excuses]


def unsaid(scene: Scene, fault: Fault, cause: str) -> list[str]:
    """The words about `fault` that `cause` has not."""
    return [word for word in (said.format_map(_names(scene)) for said in fault.says) if word not in cause]


def _names(scene: Scene) -> dict[str, str]:
    moved = scene.site.fabric.servers[0].port_guids
    return {
        "master": scene.master.name, "standby": scene.standby.name, "idle": _idle_hca(scene).port_guid,
        "moved": moved[0], "moved_too": moved[1], "third": scene.site.fabric.servers[-1].hcas[0].port_guid,
    }  # fmt: skip


def put_former_file_back(scene: Scene, stop: Point | None) -> None:
    """Somebody copies the parent's file over the master's while the rollout is read back: evidence to turn round on."""
    if stop is None:
        raise LabError(f"The rollout was not read back: it is {scene.played.state}: {scene.played.cause}")
    place_by_hand(scene.master, bytes(scene.played.parent.data))


def database_copy(scene: Scene) -> Path:
    """Keep the database as it is now, under another name."""
    scene.close_connections()
    scene.cluster.sql("DROP DATABASE IF EXISTS older", "CREATE DATABASE older TEMPLATE fabricui")
    return Path("older")


def put_older_database(scene: Scene) -> None:
    """Make the kept copy the database, and keep the newer one aside."""
    scene.close_connections()
    scene.cluster.sql(
        "DROP DATABASE IF EXISTS newer", "ALTER DATABASE fabricui RENAME TO newer",
        "CREATE DATABASE fabricui TEMPLATE older",
    )  # fmt: skip


def put_newer_database(scene: Scene) -> None:
    """Make the newer one the database again."""
    scene.close_connections()
    scene.cluster.sql("DROP DATABASE fabricui", "ALTER DATABASE newer RENAME TO fabricui")
