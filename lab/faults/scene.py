"""What every pair of step and fault plays on: one lab, one database, an operator, workers, a broker, the observer.

Two tenants share the fabric. Each rollout moves a server within Acme and takes the handover server one step further on
its way between the tenants, so that a file or a table that comes back at the wrong moment is seen to mix them.
"""

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricui.broker import choose
from lab.errors import LabError
from lab.faults.crew import Crew, Worker
from lab.faults.environment import environment
from lab.faults.moves import stage_next
from lab.layout import wait_until
from lab.managers import LabManager, first_partitions
from lab.observer import Observer
from lab.postgresql import Cluster
from lab.settling import settle
from lab.site import Site

if TYPE_CHECKING:
    from deploy.models import Observation, Rollout
    from inventory.models import Server, Subnet
    from partitions.models import Partition
    from people.models import User

NAMED_WITHIN_S = 120.0  # a state that takes longer to be named counts as none
OVER_WITHIN_S = 150.0
SETTLE_AFTER_S = 30.0
QUIET_S = 0.3


@dataclass
class Scene:
    """Everything a pair needs at hand. `rollout` and `worker` are those of the pair that is played."""

    site: Site
    folder: Path
    cluster: Cluster
    crew: Crew
    observer: Observer
    broker: "subprocess.Popen[bytes] | None" = None
    rollout: "Rollout | None" = None
    worker: Worker | None = None
    uses_celery: bool = False
    is_read: bool = False  # whether the newest reading still shows what the fabric holds
    explained: set[tuple[int, str, str]] = field(default_factory=set)  # rollout, state, cause whose page was looked at
    undo: list[Any] = field(default_factory=list)

    # --- who is who -------------------------------------------------------------------------------------------------

    @property
    def master(self) -> LabManager:
        """The manager host that is master as long as it lives."""
        return self.site.managers[0]

    @property
    def standby(self) -> LabManager:
        """The other one."""
        return self.site.managers[1]

    @property
    def subnet(self) -> "Subnet":
        """The lab's subnet."""
        from inventory.models import Subnet

        return Subnet.objects.get(name="lab")

    @property
    def operator(self) -> "User":
        """Who stages, rolls out and lets go."""
        from people.models import User

        operator: User = User.objects.get(username="operator")
        return operator

    def server(self, number: int) -> "Server":
        """A server by its number, from 1: 1 moves within Acme, 2 stays there, 3 is Globex's, 4 changes hands."""
        from inventory.models import Server

        return Server.objects.get(hostname=self.site.fabric.servers[number - 1].hostname)

    def partition(self, name: str) -> "Partition":
        """A partition by its name."""
        from partitions.models import Partition

        return Partition.objects.get(name=name)

    @property
    def played(self) -> "Rollout":
        """The rollout of this pair, read anew."""
        if self.rollout is None:
            raise LabError("no rollout was begun")
        self.rollout.refresh_from_db()
        return self.rollout

    # --- rows -------------------------------------------------------------------------------------------------------

    def furnish(self) -> None:
        """Write the first rows, let the servers report, and prove the first placement."""
        from lab.rows import enrol_site, lab_actor, register_servers
        from partitions import operations as partitions
        from people import operations as people

        lab = lab_actor()
        people.create_operator(username="operator", password=secrets.token_urlsafe(12), actor=lab)
        subnet, token = enrol_site(self.site)
        register_servers(self.site, token)
        made = {}
        for tenant_name, slug, names in (
            ("Acme", "acme", ("training", "inference")),
            ("Globex", "globex", ("render",)),
        ):
            tenant = people.create_tenant(name=tenant_name, slug=slug, actor=lab)
            for name in names:
                made[name] = partitions.create_partition(subnet=subnet, tenant=tenant, name=name, actor=lab)
        tenants = {f"0x{partition.pkey:04x}": slug for name, partition in made.items()
                   for slug in ("globex" if name == "render" else "acme",)}  # fmt: skip
        first = hashlib.sha256(first_partitions(self.site.fabric.managers)).hexdigest()
        self.observer.start(revisions=[first], tenants=tenants)
        for number, name in ((1, "training"), (2, "training"), (3, "render")):
            partitions.stage_move(server=self.server(number), source=None, target=made[name], actor=self.operator)
        self.begin(stage=False)
        self.crew.start(self.played.pk).wait()
        if self.played.state != "PROVEN":
            raise LabError(f"The first placement ended {self.played.state}: {self.played.cause}")

    def begin(self, *, stage: bool = True, handover: bool = True) -> "Rollout":
        """Stage the next move unless one waits already, look, plan, and press the button; the rollout is queued."""
        from deploy import hosts, observe
        from deploy import operations as deploy
        from partitions import mirror
        from partitions import operations as partitions
        from partitions.models import StagedChange
        from partitions.selection import Selection

        mirror.catch_up(self.subnet)
        observation = self._newest_look()
        if observation is None:
            observation = deploy.request_observation(subnet=self.subnet, why="plan")
            with hosts.connected(self.subnet) as connected:
                observe.observe(observation=observation, hosts=connected)
            observation.refresh_from_db()
        if observation.state != "DONE":
            raise LabError(f"The fabric could not be read before the rollout: {observation.failure}")
        if stage and not StagedChange.objects.exists():
            stage_next(self, handover=handover)
        drawn = partitions.draw_up_plan(subnet=self.subnet, selection=Selection.mine(), user=self.operator)
        self.rollout = partitions.roll_out(
            subnet=self.subnet, selection=Selection.mine(), actor=self.operator, plan_digest=drawn.digest,
            observation=observation, reason="fault bench",
        )  # fmt: skip
        self.tell_revisions()
        return self.rollout

    def _newest_look(self) -> "Observation | None":
        """The newest reading, mostly a proof, if nothing was done to the fabric since: a plan may stand on it."""
        from django.utils import timezone

        from deploy import queries
        from partitions.staleness import is_fresh

        newest, since = queries.latest_observation(self.subnet), queries.tables_were_true_since(self.subnet)
        if not self.is_read or newest is None or newest.read_at is None or not is_fresh(newest, timezone.now()):
            return None
        return newest if since is None or newest.read_at >= since else None

    def tell_revisions(self) -> None:
        """Tell the observer which bytes are revisions, before a worker can place any of them."""
        from deploy.models import Revision

        first = hashlib.sha256(first_partitions(self.site.fabric.managers)).hexdigest()
        digests = set(Revision.objects.values_list("digest", flat=True)) | {first} | set(self._told)
        self._told = sorted(digests)
        self.observer.tell(revisions=self._told)

    _told: list[str] = field(default_factory=list)

    # --- what a person and the tick do --------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what the beat does: hand out again what was lost, left by a dead worker, or is due."""
        from django.utils import timezone

        from deploy import queries, tasks

        if self.uses_celery:
            tasks.tick()
            return
        if self.worker is not None and self.worker.is_alive:
            return
        for rollout_id in queries.rollouts_to_resume(now=timezone.now()):
            self.worker = self.crew.start(rollout_id)

    def until_named(self) -> str:
        """The first state that a person can read and act on: over, waiting, stuck, or restoring and put off."""
        from deploy.models import Rollout

        def named() -> str | None:
            rollout = self.played
            state = Rollout.State(rollout.state)
            is_put_off = state == Rollout.State.RESTORING and rollout.next_try_at is not None and rollout.cause
            if state.is_over or state.is_waiting or state == Rollout.State.STUCK or is_put_off:
                return str(state)
            self.tick()
            return None

        return str(wait_until(named, timeout_s=NAMED_WITHIN_S, what="a named state of the rollout", pause_s=0.05))

    def until_named_anew(self) -> str:
        """Start a worker on the rollout that was just begun, and wait until its state is named."""
        self.worker = self.crew.start(self.played.pk)
        return self.until_named()

    def until_over(self) -> str:
        """Look again, as an operator would, until the rollout is over; let go of a stuck one. The state it ended in."""
        from deploy.models import Rollout

        settle_at = time.monotonic() + SETTLE_AFTER_S
        settling_s = 0.0  # the lab's own time, not the product's

        def over() -> str | None:
            nonlocal settle_at, settling_s
            rollout = self.played
            state = Rollout.State(rollout.state)
            if state.is_over:
                return str(state)
            if state == Rollout.State.STUCK:
                return "STUCK"
            if time.monotonic() > settle_at:
                # On ibsim a lost answer keeps an OpenSM in its sweep for ever (lab/sms.py): no rollout can end then.
                began = time.monotonic()
                settle(self.site, quiet_s=QUIET_S)
                settle_at = time.monotonic() + SETTLE_AFTER_S
                settling_s += time.monotonic() - began
            self.look_again()
            if time.monotonic() - at_start - settling_s > OVER_WITHIN_S:
                raise LabError(
                    f"The rollout did not end within {OVER_WITHIN_S:.0f} s: {rollout.state} after {rollout.tries} "
                    f"tries, claimed by “{rollout.claimed_by}”, next {rollout.next_try_at}: {rollout.cause}"
                )
            return None

        at_start = time.monotonic()
        ended = str(wait_until(over, timeout_s=float("inf"), what="the end of the rollout", pause_s=0.05))
        if ended == "STUCK":
            self._let_go()
        return ended

    def look_again(self) -> None:
        """Press “Check again” on a waiting rollout, let the pause of a put-off one be over, and tick."""
        from django.utils import timezone

        from deploy import operations as deploy
        from deploy.errors import TooLate
        from deploy.models import Rollout
        from people.actor import actor_of

        if self.worker is not None and self.worker.is_alive and not self.uses_celery:
            return
        rollout = self.played
        if Rollout.State(rollout.state).is_waiting:
            with contextlib.suppress(TooLate):
                deploy.check_again(rollout=rollout, actor=actor_of(self.operator))
        elif rollout.next_try_at is not None:
            Rollout.objects.filter(pk=rollout.pk, next_try_at__gt=timezone.now()).update(next_try_at=timezone.now())
        self.tick()

    def _let_go(self) -> None:
        """Do what the cause of a stuck rollout asks for: the current revision's files by hand, then release."""
        from deploy import operations as deploy
        from people.actor import actor_of

        self.put_current_files()
        deploy.release_stuck(rollout=self.played, actor=actor_of(self.operator), reason="mended by the lab")

    def put_current_files(self) -> bool:
        """Put the current revision's bytes on every manager host whose file differs, by rename, as a person would.

        Returns whether there was one.
        """
        from deploy import queries

        current = queries.current_revision(self.subnet)
        if current is None:
            raise LabError("the subnet has no revision")
        wanted = bytes(current.data)
        files = {manager.name: manager.partitions_file for manager in self.site.managers}
        others = [name for name, path in files.items() if not path.exists() or path.read_bytes() != wanted]
        for name in others:
            place_by_hand(self.site.manager(name), wanted)
        return bool(others)

    # --- the lab ------------------------------------------------------------------------------------------------------

    def make_whole(self, *, is_settled: bool = False) -> None:
        """Bring the lab back to where every pair begins: roles, files and tables of the current revision, no fault.

        `is_settled` says that a proof since the mending shows as much, or that the fault reached no SM and no cable.
        """
        from deploy import queries

        for undo in reversed(self.undo):
            undo()
        self.undo.clear()
        self.crew.dismiss()
        self.stop_broker()
        self.uses_celery = False
        self.worker = None
        did_differ = self.put_current_files()
        self.is_read = is_settled and not did_differ
        if not self.is_read:
            master = settle(self.site, quiet_s=QUIET_S)
            if master != self.master.name:
                raise LabError(f"{master} is master where {self.master.name} should be.")
        if queries.running_rollout(self.subnet) is not None:  # whatever went wrong: the next pair begins with none
            self.until_over()
        self.observer.fresh(excused=[])

    def start_broker(self) -> None:
        """Start a private broker, empty."""
        broker = choose(redis_url="", directory=self.folder)
        if broker.command is None:
            raise LabError("the broker is somebody else's")
        socket = Path(broker.url.removeprefix("unix://"))
        socket.unlink(missing_ok=True)
        with (self.folder / "broker.log").open("ab") as log:
            self.broker = subprocess.Popen(broker.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(socket.exists, timeout_s=10, what="the broker to listen", pause_s=0.02)

    def stop_broker(self) -> None:
        """Kill the broker, as a crash would; what it held is gone."""
        if self.broker is not None:
            self.broker.kill()
            self.broker.wait()
            self.broker = None

    def close_connections(self) -> None:
        """Let go of the database."""
        from django.db import connections

        connections.close_all()


def place_by_hand(manager: LabManager, data: bytes) -> None:
    """Put `data` into a manager host's partition file by rename, as a careful person does."""
    beside = manager.partitions_file.with_name(".by-hand")
    beside.write_bytes(data)
    beside.rename(manager.partitions_file)


@contextlib.contextmanager
def scene(folder: Path, site: Site, cluster: Cluster) -> Iterator[Scene]:
    """A furnished scene; sets Django up in this process, once and for all."""
    (folder / "staticfiles").mkdir(exist_ok=True)  # WhiteNoise wants it
    os.environ.update(environment(folder, site, cluster))
    import django
    from django.core.management import call_command

    django.setup()
    cluster.sql("CREATE DATABASE fabricui")
    call_command("migrate", verbosity=0, interactive=False)
    hosts = {"master": site.managers[0].name, "standby": site.managers[1].name}
    made = Scene(site, folder, cluster, Crew(hosts, folder / "workers.log"), Observer(site))
    began = time.monotonic()
    try:
        made.furnish()
        print(f"furnished after {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        yield made
    finally:
        made.crew.dismiss()
        made.stop_broker()
        made.observer.stop()
        made.close_connections()
