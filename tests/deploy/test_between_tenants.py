"""No table that anybody proposes takes a port from one tenant and gives it to another in one step."""

import pytest

from deploy import operations
from deploy.errors import PolicyRefused
from deploy.models import Revision, Rollout
from subnet.pkey import Membership, PKey
from subnet.table import Member, Partition, PartitionTable
from tests.deploy.conftest import OLGA, RENDER, TRAINING, Scene

State = Rollout.State


def test_one_revision_is_refused_whoever_proposes_it(scene: Scene):
    with pytest.raises(PolicyRefused, match=r"would go from acme to globex \(render, 0x2c43\) in one step") as refusal:
        scene.propose(s1=RENDER)
    assert {violation.rule for violation in refusal.value.violations} == {"between_tenants"}
    assert {violation.where for violation in refusal.value.violations} == set(scene.site.guids(1))
    assert Revision.objects.count() == 1


def test_two_revisions_with_a_proof_between_them_are_the_way(scene: Scene):
    scene.where.pop(1)
    assert scene.run(scene.start(scene.propose())).state == State.PROVEN
    assert scene.run(scene.start(scene.propose(s1=RENDER))).state == State.PROVEN


def test_the_second_half_cannot_be_proposed_on_the_first_before_that_is_proven(scene: Scene):
    """What counts is the parent, and only what is proven is ever a parent."""
    scene.where.pop(1)
    scene.propose()
    with pytest.raises(PolicyRefused, match="in one step"):
        scene.propose(s1=RENDER)


def test_a_provider_partition_in_between_hides_nothing(scene: Scene):
    """A port that is also in the provider's stays the tenant's until it has left."""
    guid = scene.site.guids(1)[0]
    table = scene.table()
    storage = Partition(PKey(0x10), "storage", None, (Member(guid, Membership.LIMITED),))
    shared = PartitionTable(sm_ports=table.sm_ports, partitions=(*table.partitions, storage))
    revision = operations.propose(subnet=scene.subnet, table=shared, parent=scene.first, actor=OLGA)
    assert scene.run(scene.start(revision)).state == State.PROVEN
    render = Partition(RENDER, "render", "globex", (Member(guid, Membership.FULL),))
    without = tuple(
        Partition(p.pkey, p.name, p.tenant, tuple(m for m in p.members if m.guid != guid)) for p in table.partitions
    )
    wanted = PartitionTable(sm_ports=table.sm_ports, partitions=(*without, storage, render))
    with pytest.raises(PolicyRefused, match="from acme to globex"):
        operations.propose(subnet=scene.subnet, table=wanted, parent=revision, actor=OLGA)


def test_a_partition_that_passes_on_with_its_ports_is_no_move(scene: Scene):
    """A plan asks for a reason then (`subnet/plan.py`); nothing leaves and nothing joins."""
    table = scene.table()
    passed = tuple(
        Partition(p.pkey, p.name, "globex" if p.pkey == TRAINING else p.tenant, p.members) for p in table.partitions
    )
    guid = scene.site.guids(4)[0]
    added = Partition(PKey(0x10), "storage", None, (Member(guid, Membership.FULL),))
    wanted = PartitionTable(sm_ports=table.sm_ports, partitions=(*passed, added))
    assert operations.propose(subnet=scene.subnet, table=wanted, parent=scene.first, actor=OLGA).number == 2
