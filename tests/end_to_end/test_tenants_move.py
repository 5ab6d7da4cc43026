"""A tenant moves its own server on the real lab: nobody at the provider does anything, and it ends PROVEN."""

from datetime import timedelta

import pytest
from django.utils import timezone

from people.models import Tenant, TenantRole, User
from portal import moves, turns
from portal.door import Seat
from portal.models import Turn
from tests.end_to_end.test_one_move import keys, tables_by_smpquery

pytestmark = pytest.mark.contract


def advance(turn):
    """What the tick does once the fabric has rested."""
    now = max(timezone.now(), turns.rests_until(turn.subnet)) + timedelta(seconds=1)
    Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
    turns.advance(turn_id=turn.pk, now=now)
    turn.refresh_from_db()
    return turn


def test_a_tenants_own_move_is_proven_without_an_operator(desk):
    desk.furnish()
    tenant = desk.training.tenant
    Tenant.objects.filter(pk=tenant.pk).update(moves="ALONE")
    person = User.objects.create(username="max", first_name="Max")
    TenantRole.objects.create(user=person, tenant=tenant, role="MEMBER")
    seat = Seat(person, tenant, TenantRole.Role.MEMBER)
    moving, staying = desk.servers[:2]
    before = tables_by_smpquery(desk.site)
    desk.stage(desk.servers[2], None, desk.training)  # the operator's unfinished work stays where it is
    moves.move(seat=seat, server=moving, source=desk.training, target=desk.inference)
    turn = advance(Turn.objects.get())
    if turn.why == "looks":
        assert desk.observe().state == "DONE"
        turn = advance(turn)
    assert turn.state == "ROLLING_OUT", turn.told
    rollout = desk.run(turn.rollout)
    assert (rollout.state, rollout.started_by_name) == ("PROVEN", "Max"), rollout.cause
    assert advance(turn).state == "PROVEN"
    after = tables_by_smpquery(desk.site)
    moved = {str(port.guid) for hca in moving.hcas.all() for port in hca.ports.all()}
    assert {str(guid) for guid in after if after[guid] != before[guid]} == moved
    wanted = {0x7FFF, 0x8000 | desk.inference.pkey}
    assert all(keys(after[guid]) == wanted for guid in after if str(guid) in moved)
    assert staying.hostname not in moved
