"""Many servers staged at once: as each alone, and for the price of one."""

import random

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from inventory.models import Port, PortConflict
from partitions import mirror, operations, wishes
from partitions.errors import MoveRefused
from partitions.models import StagedChange
from partitions.staging import move


def rows():
    """Every staged change, without the moment it was staged at."""
    return sorted(StagedChange.objects.values_list("port", "partition", "kind_from", "kind_to", "by", "reason"))


def events():
    """What the trail says of the stagings, in its order."""
    staged = Event.objects.filter(action="partitions:member:stage").order_by("number")
    return list(staged.values_list("subject_label", "before", "after", "reason", "tenant_key"))


@pytest.fixture
def world(provider, training, inference, storage, berts):
    """Servers in every standing: settled, staged by another, disputed, unconfirmed, without ports, rolling out."""
    servers = [provider.server(number) for number in range(1, 11)]
    for server, home in zip(servers, (training, training, inference, berts, training), strict=False):
        provider.move(server, None, home)
    provider.settle(provider.roll_out(provider.olga))
    operations.stage_add(server=servers[4], target=storage, actor=provider.olga)
    provider.move(servers[1], training, inference, by=provider.otto)
    PortConflict.objects.create(
        port=Port.objects.filter(hca__server=servers[6]).first(), claimed_by=servers[7], claim={}
    )
    Port.objects.filter(hca__server=servers[7]).update(confirmed_at=None)
    provider.server(11, ports=0)
    provider.move(servers[0], training, inference)
    provider.roll_out(provider.olga)  # takes the first and the fifth, and runs
    return provider.servers


@pytest.mark.parametrize("seed", range(6))
def test_many_at_once_come_out_as_each_alone(provider, world, training, inference, storage, berts, seed):
    chance = random.Random(seed)  # noqa: S311  the same moves in each run
    places = [None, training, inference, storage, berts]
    for _ in range(4):
        target, keep = chance.choice(places), chance.random() < 0.4
        moves = [(server, chance.choice(places)) for server in chance.sample(world, 9)]
        asked = {"target": target, "actor": provider.olga, "keep": keep, "reason": "ticket 5"}
        alone = []
        with transaction.atomic():
            for one in sorted(moves, key=lambda one: one[0].pk):
                alone += operations.stage_moves(moves=[one], **asked)
            told = {one.server.pk: one.refusal for one in alone}
            expected = rows(), events(), told
            transaction.set_rollback(True)
        together = operations.stage_moves(moves=moves, **asked)
        assert (rows(), sorted(events(), key=str)) == (expected[0], sorted(expected[1], key=str))
        assert {one.server.pk: one.refusal for one in together} == told
        assert len(set(told.values())) > 2


def test_a_server_that_is_named_twice_is_staged_in_turn(provider, training, inference, berts):
    server = provider.server(1)
    asked = [move(server, None, training), move(server, training, inference), move(server, training, berts)]
    first, second, third = wishes.stage(wishes=asked, actor=provider.olga)
    assert (first, second) == (None, None)
    assert isinstance(third, MoveRefused)
    assert third.rule == "source_lost"
    assert {row[1] for row in rows()} == {inference.pk}
    assert len(events()) == 2


@pytest.mark.parametrize("what", ["stage", "undo", "discard"])
def test_many_cost_as_few_statements_as_few(provider, training, inference, what):
    def run(servers):
        moves = [(server, None) for server in servers]
        if what != "stage":
            operations.stage_moves(moves=moves, target=training, actor=provider.olga)
        with CaptureQueriesContext(connection) as asked:
            match what:
                case "stage":
                    outcomes = operations.stage_moves(moves=moves, target=training, actor=provider.olga)
                    assert not any(one.refusal for one in outcomes)
                case "undo":
                    assert operations.undo(subnet=provider.subnet, actor=provider.olga).servers == len(servers)
                case _:
                    changes = StagedChange.objects.filter(port__hca__server__in=servers)
                    operations.discard(changes=changes, actor=provider.olga)
        return len(asked)

    mirror.catch_up(provider.subnet)
    few = run([provider.server(number) for number in (1, 2)])
    many = run([provider.server(number) for number in range(3, 33)])
    assert many <= few <= 24
