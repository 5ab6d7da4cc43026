"""Turns while others act: a late worker, a move at the end of a turn, a change that somebody else stages."""

from django.utils import timezone

from inventory.models import Port
from partitions.models import StagedChange
from portal import moves, turns
from portal.words import Why, sentence
from tests.portal.turning import advance, move, waits


def test_a_move_that_comes_while_a_turn_ends_is_not_forgotten(acme, monkeypatch):
    turn = move(acme)
    StagedChange.objects.all().delete()  # taken back
    known = turns._end

    def a_move_comes_first(*args, **more):
        moves.move(
            seat=acme.seats["mia"],
            server=acme.provider.servers[1],
            source=acme.site.training,
            target=acme.site.inference,
        )
        known(*args, **more)

    monkeypatch.setattr(turns, "_end", a_move_comes_first)
    turn = advance(turn)
    assert (turn.state, StagedChange.objects.count()) == ("WAITING", 4)
    monkeypatch.setattr(turns, "_end", known)
    assert advance(turn).state == "ROLLING_OUT"


def test_a_worker_that_comes_late_changes_nothing(acme, monkeypatch):
    turn = move(acme)
    known = turns._fit

    def stalls(taken, now):
        monkeypatch.setattr(turns, "_fit", known)
        advance(turn, now + 2 * turns.CLAIM)  # its claim is over: another worker goes on
        raise turns._Wait(Why.LOOKS, now)

    monkeypatch.setattr(turns, "_fit", stalls)
    turns.advance(turn_id=turn.pk, now=turn.next_try_at)
    turn.refresh_from_db()
    assert (turn.state, turn.why) == ("ROLLING_OUT", "")


def test_somebody_elses_change_that_comes_after_the_plan_makes_it_wait(acme, monkeypatch):
    turn = move(acme)
    known = turns._start

    def staged_meanwhile(*args):
        server = acme.provider.servers[0]
        StagedChange.objects.create(
            port=Port.objects.filter(hca__server=server).first(), partition=acme.site.storage, kind_to="limited",
            by=acme.provider.olga, at=timezone.now(),
        )  # fmt: skip
        known(*args)

    monkeypatch.setattr(turns, "_start", staged_meanwhile)
    waits(advance(turn), Why.PENDING)


def test_a_tenant_hears_nothing_of_when_others_changed_the_fabric():
    at = timezone.now()
    assert sentence(Why.RESTS, until=at) == sentence(Why.BUSY, until=at) == sentence(Why.BUSY)
    assert f"{at:%H:%M}" not in sentence(Why.RESTS, until=at)
