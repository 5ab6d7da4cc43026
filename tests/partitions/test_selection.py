"""Which staged changes travel together."""

import pytest

from partitions import operations
from partitions.errors import InvalidSelection, MoveRefused
from partitions.models import StagedChange
from partitions.selection import Selection


@pytest.mark.parametrize("text", ["mine", "all", "tenant:abc123"])
def test_a_selection_survives_the_query_string(text):
    assert str(Selection.parse(text)) == text


def test_nothing_said_is_mine():
    assert Selection.parse("") == Selection.mine()


@pytest.mark.parametrize("text", ["ours", "tenant", "tenant:", "mine:x", "all:", "MINE"])
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidSelection, match="selects no staged changes"):
        Selection.parse(text)


@pytest.fixture
def two_people(provider, training, berts):
    """Olga stages srv-001 for Acme, Otto srv-002 for Bert."""
    provider.move(provider.server(1), None, training)
    provider.move(provider.server(2), None, berts, by=provider.otto)
    return provider


def names(provider, user, selection):
    return {server.hostname for server in provider.plan(user, selection).servers}


def test_each_selection_takes_its_own(two_people):
    olga, otto = two_people.olga, two_people.otto
    assert names(two_people, olga, Selection.mine()) == {"srv-001"}
    assert names(two_people, otto, Selection.mine()) == {"srv-002"}
    assert names(two_people, olga, Selection.everything()) == {"srv-001", "srv-002"}
    assert names(two_people, olga, Selection.of_tenant(two_people.bert)) == {"srv-002"}
    assert names(two_people, olga, Selection.parse("tenant:nobody")) == set()


def test_olgas_rollout_takes_nothing_of_ottos(two_people):
    rollout = two_people.roll_out(two_people.olga)
    assert [partition.name for partition in rollout.revision.partition_table().partitions] == ["training"]
    two_people.settle(rollout)
    assert {(row.by, row.partition.name) for row in StagedChange.objects.all()} == {(two_people.otto, "berts")}
    rollout = two_people.roll_out(two_people.otto)
    assert {p.name for p in rollout.revision.partition_table().partitions} == {"training", "berts"}


def test_a_tenants_selection_takes_its_shared_partitions_along(provider, training, storage):
    server = provider.server(1)
    provider.move(server, None, training)
    operations.stage_add(server=server, target=storage, actor=provider.olga)
    drawn = provider.plan(provider.olga, Selection.of_tenant(provider.acme))
    assert {change.partition.name for change in drawn.changes} == {"training", "storage"}


def test_half_of_what_is_staged_on_a_port_does_not_go_out(provider, training, storage):
    """Otto's server leaves storage for nobody's partition and joins Acme's: only the join is Acme's."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, None, by=provider.otto)
    StagedChange.objects.filter(pk=StagedChange.objects.first().pk).update(by=provider.olga)  # split by hand
    port = StagedChange.objects.filter(by=provider.otto).get().port
    StagedChange.objects.create(
        port=port, partition=storage, kind_from=None, kind_to="limited", by=provider.olga,
        at=StagedChange.objects.first().at,
    )  # fmt: skip
    with pytest.raises(MoveRefused, match="Otto has also staged srv-001 from training") as refused:
        provider.roll_out(provider.olga)
    assert refused.value.rule == "not_selected"
