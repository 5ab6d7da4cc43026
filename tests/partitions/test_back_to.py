"""Back to then: every server returns to where it was, by the rules, and what cannot is explained."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from partitions import operations
from partitions.as_of import partitions_at
from partitions.errors import MoveRefused, NoRevision
from partitions.models import Membership, Partition, StagedChange, StagedDefault
from people.models import User
from subnet.default import OPEN
from tests.conftest import _without_triggers


@pytest.fixture
def yesterday(provider, training, inference, berts, storage):
    """A proven assignment: 1 and 2 in training, 3 in inference, 4 with Bert; the moment after it; then changes."""
    for number in range(1, 7):
        provider.server(number)
    for server, home in zip(provider.servers[:4], [training, training, inference, berts], strict=True):
        provider.move(server, None, home)
    provider.settle(provider.roll_out(provider.olga, reason="first"))
    return timezone.now()


def homes(provider) -> dict[str, set[str]]:
    rows = Membership.objects.select_related("partition", "port__hca__server")
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.port.hca.server.hostname, set()).add(row.partition.name)
    return found


def back(provider, at, by=None):
    return operations.stage_back(subnet=provider.subnet, at=at, actor=by or provider.olga, reason="ticket 4")


def test_what_moved_since_goes_back_and_nothing_else(provider, training, inference, yesterday):
    before = homes(provider)
    provider.settled_move(provider.servers[0], training, inference)
    provider.settled_move(provider.servers[1], training, None)
    provider.settled_move(provider.servers[4], None, training)
    assert homes(provider) != before
    found = back(provider, yesterday)
    assert [str(one.server) for one in found.servers] == ["srv-001", "srv-002", "srv-005"]
    assert not found.left
    assert not found.violations
    provider.settle(provider.roll_out(provider.olga))
    assert homes(provider) == before
    event = Event.objects.get(action="partitions:subnet:stage-as-of")
    assert (event.after["servers"], event.reason) == (3, "ticket 4")
    staged = Event.objects.filter(action="partitions:member:stage", reason__contains="ticket 4")
    assert {one.subject_label for one in staged} == {"srv-001", "srv-002", "srv-005"}


def test_looking_writes_nothing(provider, training, inference, yesterday):
    provider.settled_move(provider.servers[0], training, inference)
    events = Event.objects.count()
    found = operations.way_back(subnet=provider.subnet, at=yesterday, person=provider.olga)
    assert len(found.servers) == 1
    assert (StagedChange.objects.count(), Event.objects.count()) == (0, events)


def test_own_staged_changes_are_undone_on_the_way(provider, training, inference, yesterday):
    provider.move(provider.servers[0], training, inference)
    found = back(provider, yesterday)
    assert [str(one.server) for one in found.servers] == ["srv-001"]
    assert not StagedChange.objects.exists()


def test_a_server_of_another_tenant_comes_back_in_two_revisions(provider, training, berts, yesterday):
    server = provider.servers[1]
    provider.settled_move(server, training, None)
    operations.mark_clean(server=server, actor=provider.olga, reason="erased")
    provider.settled_move(server, None, berts)
    found = back(provider, yesterday)
    assert [(str(one.server), one.waits) for one in found.servers] == [("srv-002", True)]
    rollout = provider.roll_out(provider.olga)
    table = rollout.revision.partition_table()
    held = {partition.name for partition, member in table.memberships() if member.guid in ports(server)}
    assert held == set()  # out of Bert's, and not yet in Acme's
    provider.settle(rollout)
    operations.mark_clean(server=server, actor=provider.olga, reason="erased again")
    provider.settle(provider.roll_out(provider.olga))
    assert homes(provider)["srv-002"] == {"training"}


def ports(server) -> set[str]:
    return {port.guid for hca in server.hcas.all() for port in hca.ports.all()}


def test_a_retired_partition_is_told_and_its_servers_stay(provider, training, inference, yesterday):
    provider.settled_move(provider.servers[2], inference, training)
    operations.retire_partition(partition=inference, actor=provider.olga)
    provider.settled_move(provider.servers[0], training, None)
    found = back(provider, yesterday)
    assert [str(one.server) for one in found.servers] == ["srv-001"]
    assert [one.where for one in found.left] == ["srv-003"]
    assert "inference (0x1b07) was retired" in found.left[0].sentence


def test_another_partition_with_the_same_p_key_is_not_taken_for_it(provider, training, inference, yesterday):
    provider.settled_move(provider.servers[2], inference, training)
    operations.retire_partition(partition=inference, actor=provider.olga)
    Partition.objects.filter(pk=inference.pk).update(retired_at=timezone.now() - timedelta(microseconds=1))
    Partition.objects.create(subnet=provider.subnet, tenant=provider.bert, name="theirs", pkey=inference.pkey)
    with pytest.raises(MoveRefused, match="was retired"):
        back(provider, yesterday)
    assert not StagedChange.objects.exists()


def test_a_port_that_is_another_machine_s_now_stays(provider, training, inference, yesterday):
    server = provider.servers[0]
    provider.settled_move(server, training, None)
    server.hostname = "srv-099"
    server.save()
    with pytest.raises(MoveRefused, match="was srv-001's then and is srv-099's now"):
        back(provider, yesterday)


def test_a_port_without_a_server_is_told(provider, training, yesterday):
    server = provider.servers[0]
    provider.settled_move(server, training, None)
    server.hcas.all().delete()
    with pytest.raises(MoveRefused, match="belongs to no server"):
        back(provider, yesterday)


def test_another_person_s_change_stands(provider, training, inference, yesterday):
    provider.settled_move(provider.servers[0], training, inference)
    provider.settled_move(provider.servers[4], None, training)
    provider.move(provider.servers[4], training, inference, by=provider.otto)
    found = back(provider, yesterday)
    assert [str(one.server) for one in found.servers] == ["srv-001"]
    assert "Otto has already staged srv-005" in found.left[0].sentence


def test_what_a_rollout_is_changing_stays(provider, training, inference, yesterday):
    provider.move(provider.servers[0], training, inference)
    provider.roll_out(provider.olga)
    with pytest.raises(MoveRefused, match="is changing port"):
        back(provider, yesterday)


def test_default_goes_back_as_well(provider, training, yesterday):
    operations.stage_default(subnet=provider.subnet, keywords=OPEN, members=(), actor=provider.olga, reason="test")
    provider.settle(provider.roll_out(provider.olga, reason="open it"))
    found = back(provider, yesterday)
    assert found.default
    assert not found.servers
    assert StagedDefault.objects.get().by == provider.olga


def test_a_manager_host_that_came_since_is_refused_by_the_rules(provider, training, inference, yesterday):
    from inventory.models import ManagerHost, Port

    server = provider.servers[0]
    provider.settled_move(server, training, None)
    guid = Port.objects.filter(hca__server=server).first().guid
    ManagerHost.objects.filter(name="m2").update(port_guid=guid)
    with pytest.raises(MoveRefused, match="is the SM port of manager host m2"):
        back(provider, yesterday)


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_wanted(provider, yesterday, reason):
    with pytest.raises(MoveRefused, match="Say why"):
        operations.stage_back(subnet=provider.subnet, at=yesterday, actor=provider.olga, reason=reason)


def test_nothing_changed_is_nothing_to_do(provider, yesterday):
    with pytest.raises(MoveRefused, match="all is as it was"):
        back(provider, yesterday)


def test_before_the_first_revision_there_is_nothing(provider, yesterday):
    with pytest.raises(NoRevision, match="Choose a later moment"):
        back(provider, yesterday - timedelta(days=9))


def test_an_altered_revision_is_not_put_back(provider, training, inference, yesterday):
    from django.db import connection

    provider.settled_move(provider.servers[0], training, inference)
    with _without_triggers(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE deploy_revision SET data = %s WHERE number = 2", [b"x"])
    with pytest.raises(MoveRefused, match="not what the audit trail says"):
        back(provider, yesterday)


class TestPartitionsThen:
    def test_names_and_empty_ones_are_of_that_time(self, provider, training, inference, storage, yesterday):
        operations.rename_partition(partition=training, name="train-a", actor=provider.olga)
        operations.rename_partition(partition=training, name="train-b", actor=provider.olga)
        operations.retire_partition(partition=storage, actor=provider.olga)
        provider.partition("later", provider.acme)
        from deploy.as_of import current_at

        table = current_at(provider.subnet, yesterday).table
        found = partitions_at(provider.subnet, yesterday, table)
        assert [(one.name, len(one.members)) for one in found] == [
            ("storage", 0), ("inference", 2), ("training", 4), ("berts", 2)
        ]  # fmt: skip
        assert found[0].since.startswith("retired ")
        assert found[2].since == "called train-b now"
        assert found[1].since == ""
        assert [one.tenant for one in found] == [None, "Acme", "Acme", "Bert"]

    def test_nothing_before_the_rows(self, provider, yesterday):
        assert partitions_at(provider.subnet, yesterday - timedelta(days=9), None) == ()


def test_the_revision_s_event_says_what_it_was_made_of(provider, training, inference, yesterday):
    operations.stage_move(
        server=provider.servers[0], source=training, target=inference, actor=provider.olga, reason="more speed"
    )
    rollout = provider.roll_out(provider.olga)
    event = Event.objects.get(subject_kind="revision", subject_key=rollout.revision.public_id)
    (told,) = event.after["staged"]
    assert told["subject"] == f"server:{provider.servers[0].public_id}"
    assert (told["name"], told["way"], told["ports"]) == ("srv-001", "from training to inference", 2)
    assert (told["by"], told["reason"]) == (str(User.objects.get(username="olga")), "more speed")
