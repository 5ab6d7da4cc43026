"""Two people at the same moment, on a database that really lets them: one wins, the other reads why."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.conf import settings
from django.db import connection

from deploy.models import Rollout
from partitions import going_out, operations
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Partition, StagedChange
from partitions.selection import Selection
from tests.partitions.site import build

# Naming the apps lets Django truncate with CASCADE: knox's own, swapped-out token table points at our people.
pytestmark = [pytest.mark.pg, pytest.mark.django_db(transaction=True, available_apps=list(settings.INSTALLED_APPS))]

WITHIN_S = 20


def together(*functions):
    """Run them in threads of their own from one moment on; give each one's result or its refusal."""
    start = threading.Barrier(len(functions))

    def run(function):
        try:
            start.wait(WITHIN_S)
            return function()
        except (MoveRefused, PartitionRefused) as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result(WITHIN_S) for future in [pool.submit(run, function) for function in functions]]


def until_somebody_waits_for_a_lock():
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("nobody waited for a lock: the two are not kept apart")


def test_two_people_stage_one_server():
    provider = build()
    server = provider.server(1)
    targets = [provider.partition("training", provider.acme), provider.partition("inference", provider.acme)]
    for _ in range(5):
        results = together(
            lambda: operations.stage_move(server=server, source=None, target=targets[0], actor=provider.olga),
            lambda: operations.stage_move(server=server, source=None, target=targets[1], actor=provider.otto),
        )
        (refused,) = [result for result in results if isinstance(result, MoveRefused)]
        assert refused.rule == "another_person"
        assert StagedChange.objects.values("by").distinct().count() == 1
        assert StagedChange.objects.values("partition").distinct().count() == 1
        operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)


def test_two_people_create_one_partition():
    provider = build()
    results = together(
        lambda: provider.partition("training", provider.acme, 0x10),
        lambda: provider.partition("Training", provider.bert, 0x11),
    )
    assert sum(isinstance(result, PartitionRefused) for result in results) == 1
    assert Partition.objects.count() == 1


@pytest.mark.parametrize("meanwhile", ["discard", "stage"])
def test_what_is_going_out_is_held_while_it_starts(monkeypatch, meanwhile):
    """Otto discards, or Olga moves on in another window, at the very moment of the button."""
    provider = build()
    server = provider.server(1)
    training = provider.partition("training", provider.acme)
    inference = provider.partition("inference", provider.acme)
    provider.move(server, None, training)
    observation = provider.observe()
    drawn = provider.plan(provider.olga)
    drawn_again = threading.Event()
    propose = going_out.deploy.propose

    def slow_propose(**arguments):
        drawn_again.set()
        until_somebody_waits_for_a_lock()
        return propose(**arguments)

    monkeypatch.setattr(going_out.deploy, "propose", slow_propose)

    def button():
        return operations.roll_out(
            subnet=provider.subnet, selection=Selection.mine(), actor=provider.olga, plan_digest=drawn.digest,
            observation=observation,
        )  # fmt: skip

    def other():
        assert drawn_again.wait(WITHIN_S)
        if meanwhile == "discard":
            return operations.discard(changes=StagedChange.objects.all(), actor=provider.otto)
        return operations.stage_move(server=server, source=training, target=inference, actor=provider.olga)

    rollout, refused = together(button, other)
    assert rollout == Rollout.objects.get()
    assert isinstance(refused, MoveRefused), refused
    assert refused.rule == "rolling_out"
    assert StagedChange.objects.count() == 2


def test_a_partition_is_retired_while_somebody_moves_a_server_into_it():
    """Whoever comes first, nothing is staged into a partition that is retired."""
    provider = build()
    server = provider.server(1)
    for number in range(20):
        target = provider.partition(f"training-{number}", provider.acme)
        results = together(
            partial(operations.stage_move, server=server, source=None, target=target, actor=provider.olga),
            partial(operations.retire_partition, partition=target, actor=provider.otto),
        )
        assert sum(isinstance(result, (MoveRefused, PartitionRefused)) for result in results) == 1, results
        assert not StagedChange.objects.filter(partition__retired_at__isnull=False).exists()
        operations.discard(changes=StagedChange.objects.all(), actor=provider.olga)
