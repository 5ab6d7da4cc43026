"""A partition's later life: another name, empty and full again, retired."""

import pytest

from audit.models import Event
from deploy.errors import NothingToDo
from deploy.models import Fence
from partitions import mirror, operations
from partitions.board import board
from partitions.errors import MoveRefused, PartitionRefused
from partitions.models import Partition, StagedChange
from subnet.errors import InvalidName


def staged() -> set[tuple[str, str | None, str | None]]:
    rows = StagedChange.objects.select_related("partition")
    return {(row.partition.name, row.kind_from, row.kind_to) for row in rows}


class TestRename:
    def test_it_is_recorded_and_rolls_nothing_out(self, provider, training):
        provider.settled_move(provider.server(1), None, training)
        operations.rename_partition(partition=training, name="learning", actor=provider.otto, reason="new team")
        event = Event.objects.get(action="partitions:partition:rename")
        assert (event.subject_label, event.before, event.after, event.reason) == (
            "training", {"name": "training"}, {"name": "learning"}, "new team",
        )  # fmt: skip
        assert provider.plan(provider.olga).is_empty
        with pytest.raises(NothingToDo):
            provider.roll_out(provider.olga)

    def test_the_next_rollout_renders_it(self, provider, training):
        provider.settled_move(provider.server(1), None, training)
        operations.rename_partition(partition=training, name="learning", actor=provider.otto)
        provider.settled_move(provider.server(2), None, Partition.objects.get(pk=training.pk))
        assert b"\nlearning=0x2c41" in bytes(Fence.objects.get().current.data)

    def test_another_case_is_another_name(self, provider, training):
        assert operations.rename_partition(partition=training, name="Training", actor=provider.olga).name == "Training"

    @pytest.mark.parametrize("name", ["Default", "a b", "0x10", ""])
    def test_a_name_that_opensm_would_misread(self, provider, training, name):
        with pytest.raises(InvalidName):
            operations.rename_partition(partition=training, name=name, actor=provider.olga)

    @pytest.mark.parametrize("name", ["training", "INFERENCE"])
    def test_a_name_that_is_taken(self, provider, training, inference, name):
        with pytest.raises(PartitionRefused):
            operations.rename_partition(partition=training, name=name, actor=provider.olga)
        assert not Event.objects.filter(action="partitions:partition:rename").exists()

    def test_a_retired_one_keeps_its_name(self, provider, training):
        operations.retire_partition(partition=training, actor=provider.olga)
        with pytest.raises(PartitionRefused, match="is retired"):
            operations.rename_partition(partition=training, name="other", actor=provider.olga)


class TestRetire:
    def test_an_empty_one_at_once(self, provider, training):
        outcome = operations.retire_partition(partition=training, actor=provider.otto, reason="contract ended")
        assert outcome.is_retired
        assert outcome.partition.retired_at is not None
        event = Event.objects.get(action="partitions:partition:retire")
        assert (event.actor_name, event.reason, event.after["pkey"]) == ("Otto", "contract ended", "0x2c41")
        assert not [c for c in board(subnet=provider.subnet, user=provider.olga).columns if c.name == "training"]
        with pytest.raises(PartitionRefused, match=r"retired at .* already"):
            operations.retire_partition(partition=training, actor=provider.otto)

    def test_one_with_members_stages_that_they_leave(self, provider, training):
        provider.settled_move(provider.server(1), None, training)
        provider.settled_move(provider.server(2), None, training)
        outcome = operations.retire_partition(partition=training, actor=provider.olga)
        assert (outcome.is_retired, outcome.ports, outcome.servers) == (False, 4, 2)
        assert staged() == {("training", "full", None)}
        assert Event.objects.filter(action="partitions:partition:empty").count() == 1
        provider.settle(provider.roll_out(provider.olga, reason="retire"))
        assert operations.retire_partition(partition=training, actor=provider.olga).is_retired

    def test_it_takes_out_ports_that_no_server_has(self, provider, training):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        server.hcas.all().delete()  # the ports stay, without an HCA
        outcome = operations.retire_partition(partition=training, actor=provider.olga)
        assert (outcome.ports, outcome.servers) == (2, 0)
        assert operations.discard(changes=StagedChange.objects.all(), actor=provider.olga) == 2
        operations.retire_partition(partition=training, actor=provider.olga)
        provider.settle(provider.roll_out(provider.olga, reason="retire"))
        assert operations.retire_partition(partition=training, actor=provider.olga).is_retired

    def test_not_while_somebody_wants_a_server_in_it(self, provider, training):
        provider.move(provider.server(1), None, training, by=provider.otto)
        with pytest.raises(PartitionRefused, match="Otto has staged srv-001 into training at"):
            operations.retire_partition(partition=training, actor=provider.olga)

    def test_not_over_anothers_change(self, provider, training, inference):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        operations.stage_add(server=server, target=inference, actor=provider.otto)
        with pytest.raises(MoveRefused, match="Otto has staged srv-001 to inference") as refused:
            operations.retire_partition(partition=training, actor=provider.olga)
        assert refused.value.rule == "another_person"
        assert staged() == {("inference", None, "full")}

    def test_not_while_a_rollout_fills_or_empties_it(self, provider, training):
        provider.move(provider.server(1), None, training)
        provider.roll_out(provider.olga)
        StagedChange.objects.all().delete()
        with pytest.raises(MoveRefused) as refused:
            operations.retire_partition(partition=training, actor=provider.olga)
        assert refused.value.rule == "rolling_out"

    def test_emptied_but_not_settled_is_caught_up_first(self, provider, training):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        provider.move(server, training, None)
        provider.prove(provider.roll_out(provider.olga))
        assert mirror.is_settling(provider.subnet)
        assert operations.retire_partition(partition=training, actor=provider.olga).is_retired

    def test_a_new_partition_with_the_key_of_a_retired_one_gets_the_members(self, provider, settings):
        settings.PKEY_COOL_DOWN_DAYS = 0
        old = provider.partition("old", provider.acme, 0x0200)
        operations.retire_partition(partition=old, actor=provider.olga)
        provider.observe()
        new = provider.partition("new", provider.bert, 0x0200)
        provider.settled_move(provider.server(1), None, new)
        assert (new.memberships.count(), old.memberships.count()) == (2, 0)


def test_an_empty_partition_is_a_column_and_not_in_the_file(provider, training, inference):
    provider.settled_move(provider.server(1), None, training)
    assert b"inference" not in bytes(Fence.objects.get().current.data)
    assert "inference" in {c.name for c in board(subnet=provider.subnet, user=provider.olga).columns}


class TestSharing:
    """A drag from a tenant's partition onto one of the provider's joins it and leaves nothing."""

    def test_a_tenants_server_joins_limited_and_stays(self, provider, training, storage):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        provider.move(server, training, storage)
        assert staged() == {("storage", None, "limited")}
        provider.settle(provider.roll_out(provider.olga))
        held = Fence.objects.get().current.partition_table().by_port()
        assert {frozenset((str(p), m.value) for p, m in keys.items()) for keys in held.values()} == {
            frozenset({("0x2c41", "full"), ("0x0100", "limited")})
        }

    def test_it_may_be_in_any_number_of_them(self, provider, training, storage):
        monitoring = provider.partition("monitoring", None)
        server = provider.server(1)
        provider.move(server, None, training)
        provider.move(server, training, storage)
        provider.move(server, training, monitoring)
        assert {name for name, *_ in staged()} == {"training", "storage", "monitoring"}

    def test_it_keeps_them_when_it_changes_hands(self, provider, training, storage, berts):
        server = provider.server(1)
        provider.settled_move(server, None, training)
        provider.settled_move(server, training, storage)
        provider.move(server, training, berts)
        assert ("storage", "limited", None) not in staged()
        provider.settle(provider.roll_out(provider.olga))
        assert {p.name for p, _ in Fence.objects.get().current.partition_table().memberships()} == {"storage"}


def test_another_name_in_the_file_leaves_what_its_tenant_calls_it(provider):
    partition = operations.create_partition(
        subnet=provider.subnet, tenant=provider.acme, name="acme.blue", title="blue", actor=provider.olga
    )
    operations.rename_partition(partition=partition, name="acme.green", actor=provider.olga)
    partition.refresh_from_db()
    assert (partition.name, partition.title) == ("acme.green", "blue")
    with pytest.raises(PartitionRefused, match="already"):
        operations.rename_partition(partition=partition, name="acme.green", actor=provider.olga)
