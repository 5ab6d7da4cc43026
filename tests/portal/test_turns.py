"""Turns, rule by rule: when a tenant's own moves roll out by themselves, and when they wait or are left to a person."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from deploy.models import Observation, Rollout
from inventory.models import Port, Subnet
from partitions.models import Partition, StagedChange
from people.models import Tenant, TenantRole, User
from portal import moves, turns
from portal.models import Turn
from portal.words import Why, sentence
from tests.portal.turning import advance, later, move, waits


def test_it_rolls_out_by_itself_and_ends_proven(acme):
    turn = advance(move(acme))
    assert turn.state == "ROLLING_OUT", turn.told
    assert turn.rollout.started_by_name == "Max"
    held = {member.guid for _, member in turn.rollout.revision.partition_table().memberships() if _.name == "inference"}
    assert {str(port.guid) for port in Port.objects.filter(hca__server=acme.provider.servers[0])} <= {*map(str, held)}
    advance(turn)
    assert turn.state == "ROLLING_OUT"
    acme.provider.prove(turn.rollout)
    advance(turn)
    assert (turn.state, turn.next_try_at) == ("PROVEN", None)
    assert not StagedChange.objects.exists()
    told = Event.objects.filter(tenant_key=acme.acme.public_id, action__startswith="portal:").order_by("number")
    assert [event.action for event in told] == ["portal:turn:ask", "portal:turn:begin", "portal:turn:end"]
    assert told[1].rollout_key == turn.rollout.public_id


def test_moves_that_follow_each_other_are_one_batch(acme):
    first = move(acme)
    second = move(acme, who="mia", number=2, source=acme.site.inference, target=acme.site.training)
    assert first.pk == second.pk
    turn = advance(second)
    assert turn.state == "ROLLING_OUT", turn.told
    assert Turn.objects.count() == 1
    assert {row.by.username for row in turns.staged_by(acme.acme, acme.provider.subnet)} == {"max", "mia"}


def test_gathering_ends_after_a_minute(acme):
    turn = move(acme)
    Turn.objects.filter(pk=turn.pk).update(asked_at=timezone.now() - timedelta(seconds=55))
    turn = move(acme, who="mia", number=2, source=acme.site.inference, target=acme.site.training)
    assert turn.next_try_at <= timezone.now() + timedelta(seconds=6)


def test_nothing_goes_out_before_it_is_due(acme):
    turn = move(acme)
    turns.tick(now=timezone.now())
    turn.refresh_from_db()
    assert (turn.state, turn.why) == ("WAITING", "gathers")


def test_nobody_elses_staged_change_goes_along(acme):
    provider, site = acme.provider, acme.site
    provider.move(provider.servers[1], site.training, site.inference)  # the operator, in Acme's own partitions
    provider.move(provider.servers[4], None, site.research)
    turn = advance(move(acme))
    assert turn.state == "ROLLING_OUT", turn.told
    parent, after = turn.rollout.parent.partition_table(), turn.rollout.revision.partition_table()
    own = {str(port.guid) for port in Port.objects.filter(hca__server=provider.servers[0])}
    changed = set(parent.memberships()) ^ set(after.memberships())
    assert {str(member.guid) for _, member in _members(parent) ^ _members(after)} == own
    assert changed


def _members(table):
    return {(partition.pkey, member) for partition, member in table.memberships()}


def test_another_tenants_turn_is_its_own(acme):
    bert = acme.provider.partition("berlin", acme.provider.bert)
    site = acme.site
    moves.move(seat=acme.seats["bruno"], server=site.provider.servers[3], source=site.research, target=bert)
    turn = advance(move(acme))
    assert turn.state == "ROLLING_OUT", turn.told
    assert Turn.objects.count() == 2
    other = Turn.objects.exclude(pk=turn.pk).get()
    waits(advance(other), Why.BUSY)


def test_it_waits_while_a_port_has_anothers_pending_change(acme):
    turn = move(acme)
    port = Port.objects.filter(hca__server=acme.provider.servers[0]).last()
    theirs = StagedChange.objects.create(
        port=port, partition=acme.site.storage, kind_to="limited", by=acme.provider.olga, at=timezone.now()
    )
    waits(advance(turn), Why.PENDING)
    assert "Olga" in turn.told
    assert "Olga" not in sentence(turn.why)
    theirs.delete()
    assert advance(turn).state == "ROLLING_OUT"


@pytest.mark.parametrize(("barrier", "rests_s"), [(0.5, 60), (45.0, 90)])
def test_revisions_are_apart_by_a_minute_and_twice_the_last_sweep(acme, barrier, rests_s):
    last = Rollout.objects.latest("pk")
    Rollout.objects.filter(pk=last.pk).update(read_back={"seconds": {"barrier": barrier}})
    last.refresh_from_db()
    turn = move(acme)
    waits(advance(turn, last.finished_at + timedelta(seconds=rests_s - 1)), Why.RESTS)
    assert turn.until == turn.next_try_at == last.finished_at + timedelta(seconds=rests_s)
    assert advance(turn, last.finished_at + timedelta(seconds=rests_s + 1)).state == "ROLLING_OUT"


def test_a_rollout_that_placed_nothing_needs_no_rest(acme):
    last = Rollout.objects.latest("pk")
    fields = {name: getattr(last, name) for name in ("subnet", "revision", "parent", "before", "started_by_key")}
    Rollout.objects.create(**fields, requested_at=later(), finished_at=later(), state="REFUSED")
    assert turns.rests_until(acme.provider.subnet) == last.finished_at + timedelta(seconds=60)


def test_the_quota_of_an_hour_makes_it_wait_until_the_oldest_is_out(acme):
    Tenant.objects.filter(pk=acme.acme.pk).update(most_rollouts_per_hour=2)
    now = later()
    ages = (59, 30, 200)
    for minutes in ages:
        began = now - timedelta(minutes=minutes)
        Turn.objects.create(
            tenant=acme.acme, subnet=acme.provider.subnet, asked_by=acme.seats["max"].person, asked_at=began,
            started_at=began, ended_at=began, state="PROVEN",
        )  # fmt: skip
    turn = move(acme)
    waits(advance(turn, now), Why.QUOTA)
    assert turn.until == now + timedelta(minutes=1)
    Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
    assert advance(turn, now + timedelta(seconds=61)).state == "ROLLING_OUT"


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"frozen_at": timezone.now(), "frozen_reason": "Bert"}, Why.FROZEN), ({"mode": "OBSERVE"}, Why.READ_ONLY)],
)
def test_it_waits_while_the_provider_lets_nobody_change_anything(acme, fields, why):
    turn = move(acme)
    Subnet.objects.update(**fields)
    waits(advance(turn), why)
    assert "Bert" not in sentence(turn.why)
    Subnet.objects.update(frozen_at=None, mode="WRITE")
    assert advance(turn).state == "ROLLING_OUT"


def test_a_look_that_is_too_old_is_taken_anew(acme, nudges):
    turn = move(acme)
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    waits(advance(turn), Why.LOOKS)
    assert Observation.objects.filter(state="REQUESTED").count() == 1
    Observation.objects.filter(state="REQUESTED").update(state="FAILED", failure="Superseded by the test.")
    acme.provider.observe()
    assert advance(turn).state == "ROLLING_OUT"


def test_a_look_that_failed_is_not_asked_for_at_once_again(acme):
    turn = move(acme)
    now = later()
    Observation.objects.update(read_at=timezone.now() - timedelta(hours=1))
    Observation.objects.create(
        subnet=acme.provider.subnet,
        why="plan",
        state="FAILED",
        requested_at=now - timedelta(seconds=5),
        failure="m1 is gone",
    )
    waits(advance(turn, now), Why.LOOKS)
    assert not Observation.objects.filter(state="REQUESTED").exists()
    assert turn.next_try_at == now + timedelta(seconds=25)


def test_a_server_without_link_is_left_to_a_person(acme):
    guid = str(Port.objects.filter(hca__server=acme.provider.servers[0]).first().guid)
    acme.provider.observe(unread=[guid])
    waits(advance(move(acme)), Why.SILENT, "OPERATOR")


def test_a_partition_that_empties_is_left_to_a_person(acme):
    move(acme)
    turn = move(acme, number=1)
    waits(advance(turn), Why.UNSAFE, "OPERATOR")
    assert "training" in turn.told
    assert StagedChange.objects.exists()  # an operator finds them on the board, and on the plan page


def test_a_key_that_would_take_a_strangers_index_is_left_to_a_person(acme, monkeypatch):
    from subnet import plan as plans
    from subnet.index import Hazard

    hazard = Hazard("freed_index_reused", "0x9b07 takes index 1 of 0xbd02.", keys=(0xBD02, 0x9B07), index=1)
    whole = plans.predict
    from dataclasses import replace

    monkeypatch.setattr(plans, "predict", lambda *args, **kwargs: replace(whole(*args, **kwargs), hazards=(hazard,)))
    waits(advance(move(acme)), Why.UNSAFE, "OPERATOR")
    own = replace(hazard, keys=(0x8000 | acme.site.training.pkey, 0x8000 | acme.site.inference.pkey))
    monkeypatch.setattr(plans, "predict", lambda *args, **kwargs: replace(whole(*args, **kwargs), hazards=(own,)))
    moves.try_again(seat=acme.seats["max"], subnet=acme.provider.subnet)
    assert advance(Turn.objects.latest("pk")).state == "ROLLING_OUT"


def test_whoever_may_not_act_any_more_rolls_nothing_out(acme):
    turn = move(acme)
    TenantRole.objects.filter(user=acme.seats["max"].person).update(role="VIEWER")
    waits(advance(turn), Why.PEOPLE, "OPERATOR")


def test_a_locked_account_rolls_nothing_out(acme):
    turn = move(acme)
    User.objects.filter(pk=acme.seats["max"].person.pk).update(is_active=False)
    waits(advance(turn), Why.PEOPLE, "OPERATOR")


def test_a_policy_that_changed_meanwhile_holds(acme):
    turn = move(acme)
    Tenant.objects.update(moves="WAIT")
    waits(advance(turn), Why.POLICY, "OPERATOR")


def test_what_was_taken_back_ends_the_turn(acme):
    turn = move(acme)
    moves.take_back(seat=acme.seats["max"], server=acme.provider.servers[0])
    waits(advance(turn), Why.NOTHING, "GONE")


def test_a_rollout_that_ended_otherwise_is_tried_again_only_when_asked(acme):
    turn = advance(move(acme))
    acme.provider.end(turn.rollout, Rollout.State.REFUSED)
    advance(turn)
    assert (turn.state, turn.why, turn.next_try_at) == ("FAILED", "failed", None)
    assert StagedChange.objects.exists()
    turns.tick(now=later())
    assert Turn.objects.count() == 1
    moves.try_again(seat=acme.seats["max"], subnet=acme.provider.subnet)
    assert advance(Turn.objects.latest("pk")).state == "ROLLING_OUT"


def test_what_is_staged_while_it_rolls_out_is_the_next_batch(acme):
    turn = advance(move(acme))
    move(acme, who="mia", number=2, source=acme.site.inference, target=acme.site.training)
    assert Turn.objects.count() == 1
    acme.provider.prove(turn.rollout)
    advance(turn)
    following = Turn.objects.latest("pk")
    assert (following.pk != turn.pk, following.state, following.asked_by.username) == (True, "WAITING", "mia")


def test_two_workers_never_take_the_same_turn(acme):
    turn = move(acme)
    now = later()
    Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
    began = []
    whole = turns._fit

    def fit(taken, at):
        if not began:
            began.append(at)
            turns.advance(turn_id=taken.pk, now=at)  # the other worker, meanwhile
        return whole(taken, at)

    turns._fit = fit
    try:
        turns.advance(turn_id=turn.pk, now=now)
    finally:
        turns._fit = whole
    assert Rollout.objects.filter(started_by_name="Max").count() == 1
    assert Event.objects.filter(action="portal:turn:begin").count() == 1


def test_a_worker_that_dies_is_followed_by_another(acme, monkeypatch):
    turn = move(acme)
    now = later()
    with monkeypatch.context() as patch:
        patch.setattr(turns, "_fit", lambda *_: 1 / 0)
        Turn.objects.filter(pk=turn.pk).update(next_try_at=now)
        turns.tick(now=now)
    turn.refresh_from_db()
    assert turn.state == "WAITING"
    turns.tick(now=now + turns.CLAIM)
    turn.refresh_from_db()
    assert turn.state == "ROLLING_OUT"


def test_a_refusal_at_the_button_is_tried_again(acme, monkeypatch):
    from partitions.errors import StalePlan

    def stale(**_):
        raise StalePlan("Somebody staged in between.")

    turn = move(acme)
    with monkeypatch.context() as patch:
        patch.setattr(turns.partitions, "roll_out", stale)
        waits(advance(turn), Why.AGAIN)
    assert advance(turn).state == "ROLLING_OUT"


def test_an_operators_restaging_takes_it_out_of_the_tenants_hands(acme):
    """Whoever is both stages for the provider in the console: that rolls out by nobody's hand but a person's."""
    turn = move(acme)
    StagedChange.objects.all().delete()
    acme.provider.move(acme.provider.servers[0], acme.site.training, acme.site.inference, by=acme.seats["max"].person)
    waits(advance(turn), Why.NOTHING, "GONE")


def test_emptying_a_partition_is_the_providers_too(acme):
    from partitions import operations

    move(acme)
    operations.retire_partition(
        partition=Partition.objects.get(pk=acme.site.training.pk), actor=acme.seats["max"].person
    )
    assert set(StagedChange.objects.filter(kind_to=None).values_list("for_tenant", flat=True)) == {None}


def test_every_word_has_its_sentence():
    assert [why for why in Why if why and not sentence(why)] == []
    assert sentence("") == ""


def test_a_suspended_tenant_rolls_out_nothing_and_has_no_pages(acme, client):
    turn = move(acme)
    Tenant.objects.filter(pk=acme.acme.pk).update(suspended_at=timezone.now())
    waits(advance(turn), Why.PEOPLE, "OPERATOR")
    assert client.get(acme.address("servers")).status_code == 404
    assert client.get("/portal/").status_code == 404
