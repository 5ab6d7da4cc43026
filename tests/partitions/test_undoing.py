"""Undo: every staging and discarding can be taken back, exactly, until a rollout has made it true."""

import random

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.models import Port, PortConflict
from partitions import operations
from partitions.errors import MoveRefused
from partitions.many_moves import MOST, stage_moves
from partitions.models import Partition, StagedChange, StagingAction
from subnet.pkey import Membership as Kind


def rows():
    """Every staged change as it stands, with its time and reason."""
    columns = ("port", "partition", "kind_from", "kind_to", "by", "at", "reason")
    return sorted(StagedChange.objects.values_list(*columns))


def undo(provider, by=None):
    return operations.undo(subnet=provider.subnet, actor=by or provider.olga)


@pytest.fixture
def server(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    return server


def test_a_move_is_taken_back(provider, server, training, inference):
    provider.move(server, training, inference)
    undone = undo(provider)
    assert (undone.title, undone.servers) == ("srv-001 to inference", 1)
    assert rows() == []
    event = Event.objects.order_by("-number").first()
    assert (event.action, event.subject_label) == ("partitions:member:undo", "srv-001")
    assert event.after == {"staged": "nothing", "changes": 0, "ports": 2}


def test_actions_come_back_one_by_one_just_as_they_were(provider, server, training, inference, storage):
    provider.move(server, training, inference)
    first = rows()
    operations.stage_add(server=server, target=storage, actor=provider.olga, reason="ticket 3")
    second = rows()
    operations.stage_membership(server=server, partition=inference, membership=Kind.LIMITED, actor=provider.olga)
    third = rows()
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    for before in (third, second, first, []):
        undo(provider)
        assert rows() == before
    with pytest.raises(MoveRefused, match="nothing to undo"):
        undo(provider)


def test_moving_back_by_hand_can_be_undone_too(provider, server, training, inference):
    provider.move(server, training, inference)
    staged = rows()
    provider.move(server, inference, training)
    assert rows() == []
    undo(provider)
    assert rows() == staged


def test_each_person_undoes_their_own(provider, server, training, inference):
    other = provider.server(2)
    provider.move(server, training, inference)
    provider.move(other, None, training, by=provider.otto)
    undo(provider)
    assert {row[4] for row in rows()} == {provider.otto.pk}
    with pytest.raises(MoveRefused, match="nothing to undo"):
        undo(provider)


def test_what_was_rolled_out_is_not_undone(provider, server, training, inference):
    provider.move(server, training, inference)
    provider.settle(provider.roll_out(provider.olga))
    assert not StagingAction.objects.exists()
    with pytest.raises(MoveRefused, match="nothing to undo"):
        undo(provider)


def test_another_persons_rollout_leaves_it_undoable(provider, server, training, inference):
    other = provider.server(2)
    provider.move(server, training, inference)
    provider.move(other, None, training, by=provider.otto)
    provider.settle(provider.roll_out(provider.otto))
    undo(provider)
    assert rows() == []


def test_a_running_rollout_refuses_it(provider, server, training, inference):
    provider.move(server, training, inference)
    provider.roll_out(provider.olga)
    staged = rows()
    with pytest.raises(MoveRefused, match="A rollout that Olga started") as refused:
        undo(provider)
    assert refused.value.rule == "rolling_out"
    assert rows() == staged


def test_what_somebody_else_discarded_is_not_mine_to_undo_any_more(provider, server, training, inference):
    provider.move(server, training, inference)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.otto)
    with pytest.raises(MoveRefused, match="nothing to undo"):
        undo(provider)
    undo(provider, provider.otto)  # who discarded it may take that back, and it is hers again
    assert {row[4] for row in rows()} == {provider.olga.pk}


def test_what_is_not_as_it_was_left_is_refused_and_nothing_is_lost(provider, server, training, inference):
    provider.move(server, training, inference)
    StagedChange.objects.filter(kind_from=None).update(kind_to="limited")
    staged = rows()
    with pytest.raises(MoveRefused, match="was changed since") as refused:
        undo(provider)
    assert refused.value.rule == "not_as_left"
    assert rows() == staged


@pytest.mark.parametrize("hindrance", ["retired", "conflict"])
def test_what_could_not_be_staged_now_does_not_come_back(provider, server, training, inference, hindrance):
    provider.move(server, training, inference)
    operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
    if hindrance == "retired":
        Partition.objects.filter(pk=inference.pk).update(retired_at=timezone.now())
    else:
        port = Port.objects.filter(hca__server=server).first()
        PortConflict.objects.create(port=port, claimed_by=provider.server(9), claim={})
    with pytest.raises(MoveRefused):
        undo(provider)
    assert rows() == []


def test_emptying_a_partition_is_taken_back(provider, server, training):
    operations.retire_partition(partition=training, actor=provider.olga)
    assert len(rows()) == 2
    assert undo(provider).title == "everybody out of training"
    assert rows() == []


def test_only_the_newest_are_kept(provider, training, inference, monkeypatch):
    monkeypatch.setattr("partitions.staged_rows.KEPT", 3)
    server = provider.server(1)
    places = [None, training, inference]
    for at in range(8):
        provider.move(server, places[at % 3], places[(at + 1) % 3])
    assert StagingAction.objects.count() == 3


@pytest.mark.parametrize("seed", range(4))
def test_any_work_is_undone_step_by_step(provider, training, inference, storage, seed):
    chance = random.Random(seed)  # noqa: S311  the same work in each run
    servers = [provider.server(number) for number in (1, 2, 3)]
    for server in servers[:2]:
        provider.move(server, None, training)
    provider.settle(provider.roll_out(provider.olga))
    states = []
    for _ in range(12):
        before, actions = rows(), StagingAction.objects.count()
        try:
            step(provider, chance, servers, [None, training, inference, storage])
        except MoveRefused:
            continue
        if StagingAction.objects.count() > actions:
            states.append(before)
    assert len(states) > 3
    for state in reversed(states):
        undo(provider)
        assert rows() == state


def step(provider, chance, servers, places):
    """One thing that a person may do, allowed or not."""
    match chance.randrange(4):
        case 0:
            provider.move(chance.choice(servers), chance.choice(places), chance.choice(places))
        case 1:
            source, target = chance.choice(places), chance.choice(places)
            stage_moves(moves=[(server, source) for server in servers], target=target, actor=provider.olga)
        case 2:
            operations.stage_add(server=chance.choice(servers), target=chance.choice(places[1:]), actor=provider.olga)
        case _:
            changes = StagedChange.objects.filter(port__hca__server=chance.choice(servers))
            operations.discard(changes=changes, actor=provider.olga)


def test_many_go_at_once_each_with_its_own_outcome(provider, training, inference):
    servers = [provider.server(number) for number in (1, 2, 3)]
    provider.move(servers[0], None, training, by=provider.otto)
    moves = [(server, None) for server in servers]
    outcomes = operations.stage_moves(moves=moves, target=inference, actor=provider.olga)
    assert [one.server for one in outcomes] == servers
    assert [bool(one.refusal) for one in outcomes] == [True, False, False]
    assert "Otto has already staged srv-001 to training" in outcomes[0].refusal
    assert Event.objects.filter(action="partitions:member:stage", actor_name="Olga").count() == 2
    assert undo(provider).title == "2 servers to inference"
    assert {row[4] for row in rows()} == {provider.otto.pk}


def test_a_form_may_name_as_many_as_go_at_once(settings):
    assert 2 * MOST + 10 <= settings.DATA_UPLOAD_MAX_NUMBER_FIELDS


def test_too_many_at_once_are_refused_whole(provider, training):
    server = provider.server(1)
    with pytest.raises(MoveRefused, match=f"at most {MOST} go at once"):
        operations.stage_moves(moves=[(server, None)] * (MOST + 1), target=training, actor=provider.olga)
    assert rows() == []
