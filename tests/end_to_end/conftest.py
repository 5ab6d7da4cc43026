"""A small lab for the whole folder, rows of it for each test, and the two ways to roll out: alone and by the worker."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from lab import breaking
from lab.errors import LabError
from lab.managers import first_partitions
from lab.orders import ROGUE
from lab.rows import enrol_site, register_servers
from lab.settling import TRIES, settle
from lab.site import Site
from tests.end_to_end.running_demo import Demo, running_demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Iterator[Demo]:
    """The real demo, with a broker, workers, beat and doors of its own."""
    with running_demo(tmp_path_factory.mktemp("demo") / "d") as demo:
        yield demo


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with Site.up(servers=6, hcas=2, owned=True) as site:
        yield site


def until(is_so: Callable[[], bool], what: str, within_s: float = 30) -> None:
    """Wait until it is so, or fail saying what is not."""
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            pytest.fail(f"within {within_s:.0f} s it did not become so: {what}")
        time.sleep(0.05)


def as_new(site: Site, *, by_hand: bytes = b"") -> None:
    """Bring both manager hosts back to the first file and no memory of former generations, roles as at the start.

    With `by_hand` they hold that file instead, as on a fabric that FabricUI has never seen.
    """
    first = by_hand or first_partitions(site.fabric.managers)
    for manager in site.managers:
        for path in manager.partitions_file.parent.glob(f"{manager.partitions_file.name}*"):
            if path != manager.partitions_file:
                path.unlink()
        manager.partitions_file.write_bytes(first)
    # New SM processes: what the old ones remembered of indexes goes, as after a restart of both hosts.
    for attempt in range(TRIES):
        with contextlib.suppress(LabError):  # a MAD that ibsim lost: that SM waits for its answer for ever
            return _start_afresh(site, kill=attempt > 0)
    return _start_afresh(site, kill=True)


def _start_afresh(site: Site, *, kill: bool) -> None:
    """End both SMs before either starts, so that none takes over in between; the first host's becomes the master."""
    for manager in site.managers:
        with contextlib.suppress(LabError):  # it does not run
            site.order("end_opensm", manager=manager.name, kill=kill)
    for manager in site.managers:
        breaking.start_opensm(site, manager.name)
    site.wait_for_master(site.managers[0].name)
    settle(site, quiet_s=1.0)


@dataclass
class Desk:
    """What an operator works with: rows of the lab, and a person."""

    site: Site
    subnet: object
    olga: object
    training: object
    inference: object
    servers: list

    def observe(self):
        """Look at the managers and the fabric now; return the observation, done or failed."""
        from deploy import hosts, observe, operations

        observation = operations.request_observation(subnet=self.subnet, why="plan")
        observe.observe(observation=observation, hosts=hosts.connect(self.subnet))
        observation.refresh_from_db()
        return observation

    def start(self, reason="test"):
        """Observe, draw the plan and press the button; the rollout is queued."""
        from partitions import operations
        from partitions.selection import Selection

        observation = self.observe()
        assert observation.state == "DONE", observation.failure
        drawn = operations.draw_up_plan(subnet=self.subnet, selection=Selection.mine(), user=self.olga)
        return operations.roll_out(
            subnet=self.subnet, selection=Selection.mine(), actor=self.olga, plan_digest=drawn.digest,
            observation=observation, reason=reason,
        )  # fmt: skip

    def run(self, rollout):
        """Do the worker's part and bring the board up to date."""
        from deploy import hosts
        from deploy import rollout as rollouts
        from partitions import mirror

        rollouts.run(rollout=rollout, hosts=hosts.connect(self.subnet))
        rollout.refresh_from_db()
        mirror.catch_up(self.subnet)
        return rollout

    def stage(self, server, source, target):
        from partitions import operations

        return operations.stage_move(server=server, source=source, target=target, actor=self.olga)

    def furnish(self):
        """Put two servers into training and prove it."""
        for server in self.servers[:2]:
            self.stage(server, None, self.training)
        rollout = self.run(self.start())
        assert rollout.state == "PROVEN", rollout.cause
        return rollout


@pytest.fixture
def desk(site, transactional_db, settings, olga) -> Iterator[Desk]:
    as_new(site)
    settings.MANAGER_KEY_FILE = str(site.manager_key)
    settings.REGISTRATION_TRUST = "enrolled"
    yield make_desk(site, olga)
    mend(site)


def make_desk(site: Site, olga, *, with_revision: bool = True) -> Desk:
    """The rows of the lab; without a first revision there are no partitions either."""
    from partitions import operations as partitions
    from people import operations as people
    from people.actor import actor_of

    subnet, token = enrol_site(site, with_revision=with_revision)
    servers = register_servers(site, token)
    actor = actor_of(olga)
    acme = people.create_tenant(name="Acme Robotics", slug="acme-robotics", actor=actor)
    names = ("training", "inference") if with_revision else ()
    made = [partitions.create_partition(subnet=subnet, tenant=acme, name=name, actor=actor) for name in names] or [
        None,
        None,
    ]
    return Desk(site, subnet, olga, *made, servers)


def mend(site: Site) -> None:
    """Undo whatever a test has broken; each step does nothing where nothing is broken."""
    if site.state.process(ROGUE) is not None:
        breaking.end_rogue(site)
    for manager in site.managers:
        breaking.restore_host_key(site, manager.name)
