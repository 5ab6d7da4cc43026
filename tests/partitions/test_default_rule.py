"""Default as rows: what it is, what a person wants it to be, and how one becomes the other."""

import pytest

from audit.models import Event
from deploy.models import Fence
from partitions import operations
from partitions.errors import MoveRefused
from partitions.models import DefaultRule, StagedDefault
from partitions.selection import Selection
from subnet.default import CLOSED, OPEN
from subnet.errors import InvalidTable
from subnet.member import Member
from subnet.pkey import Membership
from tests.partitions.site import SM_PORTS

CANARY = Member("0x0002c90400000101", Membership.FULL)


def stage(provider, *, keywords=CLOSED, members=(), by=None):
    return operations.stage_default(
        subnet=provider.subnet, keywords=keywords, members=members, actor=by or provider.olga, reason="why"
    )


def current_default():
    return Fence.objects.get().current.partition_table().default


def test_it_becomes_current_by_a_rollout(provider):
    provider.server(1)
    stage(provider, members=[CANARY])
    drawn = provider.plan(provider.olga)
    assert drawn.default is not None
    assert drawn.table.default.members == (CANARY,)
    provider.settle(provider.roll_out(provider.olga, reason="canary"))
    assert current_default().members == (CANARY,)
    assert DefaultRule.objects.get().members == [["0x0002c90400000101", "full"]]
    assert not StagedDefault.objects.exists()


def test_it_is_recorded(provider):
    stage(provider, members=[CANARY])
    event = Event.objects.get(action="partitions:default:stage")
    assert (event.subject_kind, event.reason, event.after["members"]) == ("subnet", "why", 1)


def test_staging_what_is_current_takes_it_back(provider):
    stage(provider, keywords=OPEN)
    assert stage(provider) is None
    assert not StagedDefault.objects.exists()
    assert Event.objects.filter(action="partitions:default:discard").count() == 1


def test_only_its_own_selection_holds_it(provider):
    stage(provider, members=[CANARY], by=provider.otto)
    assert provider.plan(provider.olga).default is None
    assert provider.plan(provider.olga, Selection.of_tenant(provider.acme)).default is None
    assert provider.plan(provider.olga, Selection.everything()).default is not None


def test_two_people_never_stage_it_over_each_other(provider):
    stage(provider, members=[CANARY], by=provider.otto)
    with pytest.raises(MoveRefused, match="Otto has already staged a change of Default") as refused:
        stage(provider, keywords=OPEN)
    assert refused.value.rule == "another_person"
    assert operations.discard_default(subnet=provider.subnet, actor=provider.olga)  # an operator may
    assert not operations.discard_default(subnet=provider.subnet, actor=provider.olga)


def test_a_manager_hosts_port_is_never_excepted(provider):
    with pytest.raises(InvalidTable, match="manager host"):
        stage(provider, members=[Member(SM_PORTS[0], Membership.LIMITED)])


def test_while_a_rollout_changes_it_nobody_does(provider):
    stage(provider, members=[CANARY])
    provider.roll_out(provider.olga, reason="canary")
    with pytest.raises(MoveRefused) as refused:
        operations.discard_default(subnet=provider.subnet, actor=provider.olga)
    assert refused.value.rule == "rolling_out"
