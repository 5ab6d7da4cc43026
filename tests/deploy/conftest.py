"""A subnet with two manager hosts on a fake site, revision 1 in place and read, and a second one ready to go."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from django.conf import settings

from audit.values import Actor, ActorKind
from deploy import operations, queries
from deploy.look import ManagerHosts
from deploy.models import Fence, Observation, Revision, Rollout
from deploy.observe import observe
from deploy.rollout import run
from inventory.models import ManagerHost, Subnet
from subnet.guid import GUID
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable
from tests.deploy.fakes import Clock, FakeSite
from tests.qualified import qualify

OLGA = Actor(kind=ActorKind.PERSON, key="olga", name="Olga")
TRAINING, INFERENCE, RENDER = PKey(0x2C41), PKey(0x2C42), PKey(0x2C43)
# Two partitions of one tenant and one of another.
PARTITIONS = (("training", TRAINING, "acme"), ("inference", INFERENCE, "acme"), ("render", RENDER, "globex"))


@dataclass
class Scene:
    """Everything a test of a rollout needs at hand."""

    site: FakeSite
    subnet: Subnet
    clock: Clock
    first: Revision
    where: dict[int, PKey] = field(default_factory=dict)  # server → its partition

    def table(self) -> PartitionTable:
        partitions = []
        for name, pkey, tenant in PARTITIONS:
            guids = [guid for server, place in self.where.items() if place == pkey for guid in self.site.guids(server)]
            if guids:
                partitions.append(Partition(pkey, name, tenant, tuple(Member(guid, Membership.FULL) for guid in guids)))
        return PartitionTable(
            sm_ports=tuple(host.port.guid for host in self.site.hosts),
            partitions=tuple(partitions),
            labels={guid: f"srv-{port.number:03}" for guid, port in self.site.ports.items() if port.number},
        )

    def look(self) -> Observation:
        observation = operations.request_observation(subnet=self.subnet, why="plan")
        observe(observation=observation, hosts=self.site.hosts, clock=self.clock)
        return observation

    def propose(self, **moves: PKey) -> Revision:
        """Move servers (s1=INFERENCE) and propose the table that follows."""
        self.where |= {int(server[1:]): pkey for server, pkey in moves.items()}
        parent = queries.current_revision(self.subnet)
        assert parent is not None
        return operations.propose(
            subnet=self.subnet, table=self.table(), parent=parent, actor=OLGA, reason="for a test"
        )

    def start(self, revision: Revision, observation: Observation | None = None) -> Rollout:
        return operations.start(revision=revision, observation=observation or self.look(), actor=OLGA)

    def begin(self, **moves: PKey) -> Rollout:
        """Propose and start a move; server 1 to inference unless told otherwise."""
        return self.start(self.propose(**(moves or {"s1": INFERENCE})))

    def run(self, rollout: Rollout) -> Rollout:
        run(rollout=rollout, hosts=self.site.hosts, clock=self.clock)
        return rollout

    def later(self, rollout: Rollout, seconds: float = 600) -> Rollout:
        """Let time pass, as the tick would, and run again."""
        self.clock.forward(seconds)
        return self.run(rollout)

    @property
    def fence(self) -> Fence:
        return Fence.objects.get(subnet=self.subnet)

    def digests(self) -> set[str]:
        return {host.digest for host in self.site.hosts}

    def tables(self) -> dict[GUID, dict[int, int]]:
        return {guid: dict(port.pkeys) for guid, port in self.site.ports.items()}


def one_host_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the hosts one after the other, so that the moments come in the same order each time."""
    made = ManagerHosts.__init__

    def make(self: ManagerHosts, *arguments: object, **columns: object) -> None:
        made(self, *arguments, **columns)
        self.asked = map

    monkeypatch.setattr(ManagerHosts, "__init__", make)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    set_clock(monkeypatch, clock)
    return clock


def set_clock(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr("django.utils.timezone.now", clock)
    monkeypatch.setattr("deploy.lease.uptime_s", clock.uptime_s)


def make_scene(
    clock: Clock, *, by_hand: bytes = b"", adopt: bool = True, managers: tuple[str, ...] = ("mgr-a", "mgr-b")
) -> Scene:
    """A scene on revision 1; with `by_hand` both hosts hold those bytes, which say the same, adopted unless told."""
    site = FakeSite(managers=managers)
    subnet = Subnet.objects.create(name="lab", mode=Subnet.Mode.WRITE)
    for host in site.hosts:
        ManagerHost.objects.create(
            subnet=subnet, name=host.name, address="127.0.0.1", ssh_user="fabricui", host_key="ssh-ed25519 AAAA",
            port_guid=host.port.guid, wrapper_digest="w" * 64, reader_digest="r" * 64,
        )  # fmt: skip
    qualify(subnet)
    scene = Scene(site, subnet, clock, first=None, where={1: TRAINING, 2: TRAINING, 3: INFERENCE})  # type: ignore[arg-type]
    if by_hand:
        site.meaning[by_hand] = scene.table()
        if adopt:
            files = {host.name: by_hand for host in site.hosts}
            scene.first = operations.record_adopted_revision(
                subnet=subnet, table=scene.table(), found=files, actor=OLGA
            )
    else:
        scene.first = operations.record_first_revision(subnet=subnet, table=scene.table(), actor=OLGA)
    for host in site.hosts:
        host.file = by_hand or bytes(scene.first.data)
    site.sweep(site.hosts[0], is_new=True)
    return scene


@pytest.fixture
def scene(db: None, clock: Clock) -> Scene:
    assert settings.OBSERVATION_FRESH_S >= 60
    return make_scene(clock)
