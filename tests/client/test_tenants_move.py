"""`fabricui move … --wait` by a tenant's member: the exit code says what became of it."""

import json

import pytest
from django.utils import timezone

from people.models import Tenant
from portal.models import Turn
from tests.api.callers import Caller
from tests.portal.turning import advance

pytestmark = pytest.mark.django_db
MOVE = ("move", "srv-001", "--to", "inference")


@pytest.fixture
def fabricui(shell, tenant, site):
    """Tina's shell; Acme's moves go out by themselves, and the fabric was looked at."""
    Tenant.objects.update(moves="ALONE")
    site.provider.observe()
    return shell.as_(tenant)


def proven(site):
    """The open turn rolls out and is proven. What it waits for is given: a reading since the last rollout."""
    site.provider.observe()
    turn = advance(Turn.objects.get(next_try_at__isnull=False))
    if turn.state == "ROLLING_OUT" and turn.rollout.state == "QUEUED":
        site.provider.settle(turn.rollout)
    advance(turn)


def over(state, why):
    """The open turn ends otherwise."""
    rows = Turn.objects.filter(next_try_at__isnull=False)
    rows.update(state=state, why=why, next_try_at=None, ended_at=timezone.now())


def test_it_waits_for_the_proof(fabricui, site):
    fabricui.while_sleeping = lambda: proven(site)
    code, out, err = fabricui(*MOVE, "--wait", "--json")
    assert code == 0, err
    shown = json.loads(out)
    assert (shown["turn"]["state"], len(shown["staged"])) == ("PROVEN", 4)
    assert "It goes out by itself." in err
    assert "WAITING It goes out in a few seconds" in err
    code, out, _ = fabricui("servers", "srv-001", "--json")
    assert {one["partition_name"] for one in json.loads(out)["memberships"]} == {"inference"}


def test_without_waiting_it_says_where_to_ask(fabricui):
    code, out, _ = fabricui(*MOVE)
    assert code == 0
    assert "Staged: 1 server, 2 ports. It goes out by itself." in out
    assert f"Turn {Turn.objects.get().public_id}: WAITING" in out


@pytest.mark.parametrize(("state", "why"), [("FAILED", "failed"), ("OPERATOR", "unsafe"), ("GONE", "nothing")])
def test_what_ended_otherwise_has_its_code(fabricui, state, why):
    fabricui.while_sleeping = lambda: over(state, why)
    code, out, _ = fabricui(*MOVE, "--wait", "--json")
    assert (code, json.loads(out)["turn"]["why"]) == (4, why)


def test_what_waits_for_an_operator_is_not_waited_for(fabricui):
    Tenant.objects.update(moves="OPERATOR")
    code, out, err = fabricui(*MOVE, "--wait", "--json")
    assert (code, json.loads(out)["turn"]) == (4, None)
    assert "It does not go out by itself" in err
    assert fabricui.slept == []
    assert fabricui("move", "srv-002", "--to", "inference")[0] == 0


def test_the_time_to_wait_is_over(fabricui, monkeypatch):
    from fabricui.client import door

    clock = iter(range(0, 10_000, 100))
    monkeypatch.setitem(door.Door.__init__.__kwdefaults__, "clock", lambda: float(next(clock)))
    code, out, err = fabricui(*MOVE, "--wait", "--within", "150")
    assert code == 9, err
    assert "not over after 150 s" in err
    assert "WAITING" in out


def test_a_turn_that_had_begun_does_not_carry_it_and_the_next_one_does(fabricui, tenant, site):
    """srv-002 is staged while srv-001 rolls out: the first turn is proven without it."""
    body = {
        "moves": [{"server": site.provider.servers[0].public_id, "source": site.training.public_id}],
        "target": site.inference.public_id,
    }
    first = tenant.post("staged-changes", body).json()["turn"]["id"]
    assert advance(Turn.objects.get()).state == "ROLLING_OUT"
    fabricui.while_sleeping = lambda: proven(site)
    code, out, err = fabricui("move", "srv-002", "--to", "inference", "--wait", "--json")
    assert code == 0, err
    last = json.loads(out)["turn"]
    assert (last["state"], Turn.objects.count()) == ("PROVEN", 2)
    assert last["id"] != first
    code, out, _ = fabricui("servers", "srv-002", "--json")
    assert {one["partition_name"] for one in json.loads(out)["memberships"]} == {"inference"}


def test_refusals_have_their_codes(fabricui, site):
    code, _, err = fabricui("move", "srv-004", "--to", "inference", "--wait")
    assert (code, "no server srv-004 that you may see" in err) == (6, True)
    code, _, err = fabricui("move", "srv-001", "--to", "training", "--wait")
    assert (code, "It is there already" in err) == (3, True)
    assert fabricui("move", "srv-001", "--out")[0] == 2
    assert fabricui("rollout", "--wait")[0] == 6  # that is the operators'


def test_an_operator_is_told_that_nothing_goes_out_by_itself(shell, operator):
    code, out, err = shell.as_(operator)(*MOVE, "--wait")
    assert code == 4
    assert "`fabricui rollout`" in err
    assert "Nothing has reached the fabric yet." in out


def test_interrupted_it_goes_on(fabricui):
    def interrupt():
        raise KeyboardInterrupt

    fabricui.while_sleeping = interrupt
    code, _, err = fabricui(*MOVE, "--wait")
    assert (code, "goes on without this program" in err) == (130, True)


def test_a_viewers_token_has_no_scope_for_it(shell, site, tina):
    from people.models import TenantRole

    TenantRole.objects.update(role="VIEWER")
    code, _, err = shell.as_(Caller(tina, scopes=["inventory:read", "partitions:read", "partitions:write"]))(*MOVE)
    assert code == 6, err
