"""Closing Default: who becomes limited, who stays full, and which ports have a reason to be looked at."""

from dataclasses import replace

import pytest

from subnet.closing import closed, impact, with_canaries, without_canaries
from subnet.default import OPEN, DefaultPartition
from subnet.pkey import Membership
from tests.subnet.by_hand import BY_HAND
from tests.subnet.test_adoption import SM_PORTS, N, explained, observed

FULL, LIMITED = Membership.FULL, Membership.LIMITED
FILE = (f"Default=0x7fff,ipoib: ALL=full, {N[6]}=limited;\nA=0x10: {N[3]}=full;\nB=0x11: {N[4]}=limited;\n").encode()


@pytest.fixture
def table():
    return explained(FILE).adopted.table


def test_canaries_are_limited_while_everybody_else_stays_full(table):
    canary = replace(table, default=with_canaries(table.default, [N[3]]))
    found = impact(table, canary, observed(FILE))
    assert found.becomes_limited == (N[3],)
    assert found.becomes_full == ()
    assert set(found.stays_full) == {*SM_PORTS, N[4], N[5]}
    assert canary.default_of(N[6], "CA") == LIMITED
    assert [effect.kind for effect in found.effects] == ["canaries"]
    assert without_canaries(canary.default, [N[3]]) == table.default


def test_a_full_exception_that_becomes_a_canary_is_limited_once():
    default = DefaultPartition(keywords=OPEN, members=())
    full = closed(default, [N[3]])
    assert with_canaries(full, [N[3]]).members == with_canaries(default, [N[3]]).members
    assert without_canaries(full, [N[3]]) == full  # it is no canary


def test_closing_leaves_sm_ports_and_those_chosen_full(table):
    wanted = replace(table, default=closed(table.default, [N[4]]))
    found = impact(table, wanted, observed(FILE))
    assert set(found.becomes_limited) == {N[3], N[5]}
    assert set(found.stays_full) == {*SM_PORTS, N[4]}
    assert wanted.default.members[0].membership == FULL  # the canary's exception says nothing any more
    assert {effect.kind for effect in found.effects} >= {"default_closes", "sa_access", "index_0", "ipoib_parents"}


def test_ports_with_a_reason_of_their_own_are_named(table):
    wanted = replace(table, default=closed(table.default, ()))
    there = observed(FILE, change={N[5]: {0: 0x8010, 1: 0xFFFF}})
    concerned = {group.rule: group.ports for group in impact(table, wanted, there).concerned}
    assert concerned == {"nowhere": (N[5],), "only-limited": (N[4],), "off-index-0": (N[5],)}


def test_a_closed_default_has_nothing_left_to_close():
    table = explained(BY_HAND["A44"]).adopted.table
    wanted = replace(table, default=closed(table.default, ()))
    assert impact(table, wanted, observed(BY_HAND["A44"])).becomes_limited == ()
