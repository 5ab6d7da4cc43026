"""The faults: how each is done to the lab while a worker is stopped at a step, and how it is mended again.

`apply` runs while the worker stands still; `mend` once the rollout is in a named state. What a fault breaks by itself,
so that the observer must not call it the product's doing, stands in `excuses` ({master} and {standby} are filled in).
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lab.errors import LabError
from lab.faults import on_site
from lab.faults.points import Point
from lab.faults.scene import Scene, place_by_hand
from lab.layout import wait_until

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
    is_beside: bool = False  # whether it reaches no SM, no cable and no partition file


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
    "worker killed": Fault(on_site.kill_worker, is_beside=True),
    "SSH cut": Fault(on_site.cut_ssh, on_site.mend_ssh, says=("{master}",), is_beside=True),
    "SSH of the standby cut": Fault(
        on_site.cut_ssh_of_the_standby, on_site.mend_ssh_of_the_standby, says=("{standby}",), is_beside=True
    ),
    "master killed": Fault(on_site.kill_master, on_site.start_sms, takeover=True),
    "standby killed": Fault(on_site.kill_standby, on_site.start_sms, says=("{standby}",)),
    "disk of the standby full": Fault(
        on_site.full_disk, on_site.mend_disks, says=("{standby}", "0 KiB free"), is_beside=True
    ),
    "disk of the master full": Fault(
        on_site.full_disk_of_the_master, on_site.mend_disks, says=("{master}", "0 KiB free"), is_beside=True
    ),
    "disk of the standby read-only": Fault(
        on_site.read_only_disk, on_site.mend_disks, says=("{standby}", "cannot write"), is_beside=True
    ),
    "disk of the master read-only": Fault(
        on_site.read_only_disk_of_the_master, on_site.mend_disks, says=("{master}", "cannot write"), is_beside=True
    ),
    "wrong owner": Fault(on_site.wrong_owner, on_site.right_owner),
    "sshd hangs after accept": Fault(on_site.hang_sshd, on_site.wake_sshd, says=("{master}",), is_beside=True),
    "host key changed": Fault(
        on_site.other_host_key, on_site.enrolled_host_key, says=("{master}", "host key"), is_beside=True
    ),
    "both SMs restarted": Fault(on_site.restart_both),
    "foreign sweep": Fault(on_site.reload_by_somebody_else),
    "link flap": Fault(on_site.flap, excuses=("port:{idle}",)),
    "hand edit of the master's file": Fault(on_site.edit_by_hand, excuses=("file:{master}",), says=("{master}",)),
    "CRLF in the master's file": Fault(on_site.crlf_by_hand, excuses=("file:{master}",), says=("{master}",)),
    "hand edit of the standby's file": Fault(
        on_site.edit_standby_by_hand, excuses=("file:{standby}",), says=("{standby}",)
    ),
    "unreadable unaffected port": Fault(on_site.unreadable, on_site.readable, excuses=("port:{idle}",)),
    "SET refused on a moved port": Fault(on_site.refuse_set, on_site.take_set, excuses=("port:{moved}",)),
    "server reboots": Fault(on_site.reboot_begins, on_site.reboot_ends, excuses=("port:{moved}", "port:{moved_too}")),
    "third SM takes over": Fault(on_site.third_sm, on_site.end_third_sm, excuses=("fallback",), says=("{third}",)),
    "third SM stands by": Fault(on_site.weak_third_sm, on_site.end_third_sm),
    "wrong -P": Fault(
        on_site.other_file_for_the_master, on_site.own_file_for_the_master, says=("{master}", "other.conf")
    ),
    "clock jumps ahead": Fault(nothing, _undo_the_jump, jump_s=TWO_HOURS_S),
    "clock jumps back": Fault(nothing, _undo_the_jump, jump_s=-TWO_HOURS_S),
    "second worker": Fault(_second_worker, is_beside=True),
    "overtaken by another worker": Fault(_overtaken, is_beside=True),
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
        "master": scene.master.name, "standby": scene.standby.name, "idle": on_site.idle_hca(scene).port_guid,
        "moved": moved[0], "moved_too": moved[1], "third": scene.site.fabric.servers[-1].hcas[0].port_guid,
    }  # fmt: skip


def put_former_file_back(scene: Scene, stop: Point | None) -> None:
    """Somebody copies the parent's file over the master's while the rollout is read back: evidence to turn round on."""
    if stop is None:
        raise LabError(f"The rollout was not read back: it is {scene.played.state}: {scene.played.cause}")
    place_by_hand(scene.master, bytes(scene.played.parent.data))


def database_copy(scene: Scene) -> None:
    """Keep the database as it is now, under another name."""
    scene.close_connections()
    scene.cluster.sql("DROP DATABASE IF EXISTS older", "CREATE DATABASE older TEMPLATE fabricui")


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
