"""The rows follow the current revision: once, again, and after a crash in the middle."""

import pytest
from django.db import transaction

from audit import follow
from audit.models import Event, FollowerCursor
from deploy.models import Fence
from inventory.models import Port
from partitions import mirror, operations
from partitions.errors import MirrorBroken
from partitions.models import Membership, MirroredRevision, Partition, StagedChange


def memberships() -> set[tuple[str, str, str]]:
    rows = Membership.objects.select_related("partition", "port")
    return {(row.partition.name, str(row.port), row.kind) for row in rows}


def says(revision) -> set[tuple[str, str, str]]:
    return {
        (partition.name, str(member.guid), member.membership.value)
        for partition, member in revision.partition_table().memberships()
    }


@pytest.fixture
def proven(provider, training, inference):
    """srv-001 went from training to inference and srv-002 into training: proven, not mirrored yet."""
    first, second = provider.server(1), provider.server(2)
    provider.settled_move(first, None, training)
    provider.move(first, training, inference)
    provider.move(second, None, training)
    rollout = provider.roll_out(provider.olga)
    provider.prove(rollout)
    return provider, rollout


def test_the_first_revision_is_mirrored_too(provider):
    assert mirror.is_settling(provider.subnet)
    follow.tick()
    assert not mirror.is_settling(provider.subnet)
    assert MirroredRevision.objects.get().revision.number == 1


def test_it_settles(proven):
    provider, rollout = proven
    assert mirror.is_settling(provider.subnet)
    assert memberships() != says(rollout.revision)
    follow.tick()
    assert not mirror.is_settling(provider.subnet)
    assert memberships() == says(rollout.revision)
    assert len(memberships()) == 4
    assert not StagedChange.objects.exists()


def test_it_may_be_replayed(proven):
    provider, _ = proven
    follow.tick()
    settled, ids = memberships(), set(Membership.objects.values_list("pk", flat=True))
    for event in Event.objects.filter(action__in=[action.value for action in mirror.FOLLOWED]):
        with transaction.atomic():
            mirror.follow(event)  # old ones too: it looks at what is current now
    MirroredRevision.objects.all().delete()
    assert mirror.catch_up(provider.subnet)
    assert not mirror.catch_up(provider.subnet)
    assert (memberships(), set(Membership.objects.values_list("pk", flat=True))) == (settled, ids)


@pytest.mark.parametrize("step", ["_write_memberships", "_let_go", "_remember_tenants"])
def test_a_crash_in_the_middle_leaves_the_former_revision_whole(proven, monkeypatch, step):
    provider, rollout = proven
    before = (memberships(), StagedChange.objects.count(), MirroredRevision.objects.get().revision)
    real = getattr(mirror, step)

    def crash(*args):
        real(*args)
        raise RuntimeError("the worker died here")

    with monkeypatch.context() as broken:
        broken.setattr(mirror, step, crash)
        follow.tick()
    assert (memberships(), StagedChange.objects.count(), MirroredRevision.objects.get().revision) == before
    assert mirror.is_settling(provider.subnet)
    cursor = FollowerCursor.objects.get(name="partitions.mirror")
    assert "the worker died here" in cursor.failure
    FollowerCursor.objects.update(next_try_at=None)  # its patience is over
    follow.tick()
    assert memberships() == says(rollout.revision)
    assert not StagedChange.objects.exists()


def test_staging_does_not_wait_for_the_follower(proven, training, inference):
    """A person who moves the card the moment the rollout is proven works on what is current."""
    provider, rollout = proven
    provider.move(provider.servers[0], inference, training)
    assert memberships() == says(rollout.revision)
    assert {(row.partition.name, row.kind_from, row.kind_to) for row in StagedChange.objects.all()} == {
        ("inference", "full", None), ("training", None, "full"),
    }  # fmt: skip


def test_ports_remember_their_last_tenant(proven):
    provider, _ = proven
    follow.tick()
    assert set(Port.objects.values_list("former_tenant__slug", flat=True)) == {"acme"}
    for server in provider.servers:
        provider.move(server, *(row.partition for row in Membership.objects.filter(port__hca__server=server)[:1]), None)
    provider.settle(provider.roll_out(provider.olga, reason="end"))
    assert not Membership.objects.exists()
    assert set(Port.objects.values_list("former_tenant__slug", flat=True)) == {"acme"}


def test_the_providers_partitions_give_no_port_a_tenant(provider, storage):
    provider.settled_move(provider.server(1), None, storage)
    assert set(Port.objects.values_list("former_tenant", flat=True)) == {None}


def test_what_others_have_staged_stays_and_starts_from_what_is_current(provider, training, inference, storage):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    operations.stage_add(server=server, target=storage, actor=provider.olga)
    rollout = provider.roll_out(provider.olga)
    # Behind the operations' back: rows as an older version or a person at the database may have left them.
    port = Port.objects.order_by("guid").first()
    StagedChange.objects.filter(port=port, partition=storage).update(kind_to="full", by=provider.otto)
    provider.settle(rollout)
    assert [(row.port, row.kind_from, row.kind_to) for row in StagedChange.objects.all()] == [(port, "limited", "full")]


def test_a_port_that_only_the_file_names_gets_a_row(provider, training):
    server = provider.server(1)
    guids = list(Port.objects.values_list("guid", flat=True))
    provider.move(server, None, training)
    rollout = provider.roll_out(provider.olga)
    StagedChange.objects.all().delete()
    server.delete()
    Port.objects.all().delete()
    provider.settle(rollout)
    assert {str(port) for port in Port.objects.filter(hca=None)} == {str(guid) for guid in guids}
    assert memberships() == says(rollout.revision)


def test_a_partition_that_no_row_knows_stops_it_with_a_sentence(provider, training):
    provider.move(provider.server(1), None, training)
    rollout = provider.roll_out(provider.olga)
    provider.prove(rollout)
    Partition.objects.filter(pk=training.pk).update(pkey=0x7000)
    with pytest.raises(MirrorBroken, match=r"training \(0x2c41\)"):
        mirror.catch_up(provider.subnet)
    follow.tick()
    assert "0x2c41" in FollowerCursor.objects.get(name="partitions.mirror").failure
    assert mirror.is_settling(provider.subnet)


def test_changed_memberships_are_changed_in_place(provider, training):
    from subnet.pkey import Membership as Kind

    server = provider.server(1)
    provider.settled_move(server, None, training)
    ids = set(Membership.objects.values_list("pk", flat=True))
    operations.stage_add(server=server, target=training, actor=provider.olga, membership=Kind.LIMITED)
    provider.settle(provider.roll_out(provider.olga))
    assert {kind for *_, kind in memberships()} == {"limited"}
    assert set(Membership.objects.values_list("pk", flat=True)) == ids


def test_a_rollout_that_was_restored_changes_nothing(provider, training):
    provider.move(provider.server(1), None, training)
    follow.tick()
    rollout = provider.roll_out(provider.olga)
    Fence.objects.update(rollout=None)
    assert not mirror.catch_up(provider.subnet)
    assert StagedChange.objects.count() == 2
    assert rollout.revision.number == 2
