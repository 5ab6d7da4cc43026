"""What events hint at: kinds and public ids, to whom they belong, and nothing else."""

import json

import pytest

from audit.actions import Action
from audit.models import Event
from live.channel import from_text, to_text
from live.hints import FOLLOWED, MOST_OF_A_KIND, PROVIDER, Hint, Kind, hints_of, kind_of, tenant_audience


def event(action=Action.MEMBER_STAGE, kind="server", key="s1", tenant="", **fields):
    return Event(action=action.value, subject_kind=kind, subject_key=key, tenant_key=tenant, **fields)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Action.MEMBER_STAGE, Kind.STAGED),
        (Action.MEMBER_SETTLE, Kind.PARTITION),
        (Action.PARTITION_RENAME, Kind.PARTITION),
        (Action.PARTITION_EMPTY, Kind.STAGED),
        (Action.SERVER_CLEAN, Kind.SERVER),
        (Action.ROLLOUT_PROVEN, Kind.ROLLOUT),
        (Action.DRIFT_OPEN, Kind.DRIFT),
        (Action.SUBNET_FREEZE, Kind.SUBNET),
        (Action.MANAGER_HOST_ENROL, Kind.MANAGER),
        (Action.HOST_CHECK_REQUEST, Kind.MANAGER),
        (Action.OBSERVATION_FAILED, Kind.LOOK),
        (Action.PORT_CONFLICT, Kind.CONFLICT),
        (Action.PORT_CONFLICT_DECIDE, Kind.CONFLICT),
        (Action.SERVER_REGISTER, Kind.SERVER),
        (Action.SERVER_REPORT_REFUSED, None),
        (Action.PROBE_INCIDENT_OPEN, Kind.INCIDENT),
        (Action.ISOLATION_LEAK, Kind.INCIDENT),
        (Action.TRAIL_BROKEN, Kind.TRAIL),
        (Action.REQUEST_ASK, Kind.REQUEST),
        (Action.STORAGE_OFFER, Kind.REQUEST),
        (Action.EVIDENCE_SIGN, Kind.EVIDENCE),
        (Action.TURN_END, Kind.STAGED),
        (Action.TRAIL_EXPORT, None),
        (Action.PERSON_LOGIN_FAILED, None),
    ],
)
def test_each_action_is_a_change_of_something_or_of_nothing(action, kind):
    assert kind_of(action.value) is kind


def test_all_that_changes_the_fabric_or_what_should_be_is_followed():
    silent = {action for action in Action if action.room in ("inventory", "partitions", "deploy", "probes")} - FOLLOWED
    assert silent == {Action.SERVER_REPORT_REFUSED, Action.ENROLMENT_REFUSED}


def test_the_provider_hears_all_and_a_tenant_only_of_its_own():
    batch = hints_of(
        [
            event(Action.PARTITION_RENAME, "partition", "p1", tenant="acme1"),
            event(Action.SERVER_CLEAN, "server", "s1", tenant="bert1"),
            event(Action.ROLLOUT_START, "rollout", "r1"),
        ]
    )
    partition, server = Hint(Kind.PARTITION, "p1"), Hint(Kind.SERVER, "s1")
    assert batch == {
        PROVIDER: {partition, server, Hint(Kind.ROLLOUT, "r1")},
        tenant_audience("acme1"): {partition},
        tenant_audience("bert1"): {server},
    }


def test_a_tenant_does_not_hear_what_the_provider_stages_or_rolls_out():
    for action in (Action.MEMBER_STAGE, Action.ROLLOUT_PROVEN, Action.DRIFT_OPEN, Action.OBSERVATION_REQUEST):
        assert set(hints_of([event(action, "server", "s1", tenant="acme1")])) == {PROVIDER}


def test_only_public_ids_are_told():
    """GUIDs, revisions and names stay where they are."""
    told = hints_of(
        [
            event(Action.PORT_CONFIRM, "port", "0x0002c90300000001", tenant="acme1"),
            event(Action.MEMBER_SETTLE, "revision", "rev1", tenant="acme1"),
            event(Action.MEMBER_STAGE, "server", "s1", subject_label="srv-001", reason="secret", after={"a": 1}),
        ]
    )
    assert told[tenant_audience("acme1")] == {Hint(Kind.SERVER, ""), Hint(Kind.PARTITION, "")}
    assert {hint.public_id for hint in told[PROVIDER]} == {""}
    assert set(json.loads(to_text(told))) == {PROVIDER, "tenant:acme1"}


def test_each_hint_once_and_a_storm_is_one_hint():
    assert hints_of([event(Action.SERVER_REGISTER)] * 3) == {PROVIDER: {Hint(Kind.SERVER, "s1")}}
    storm = [event(Action.SERVER_REGISTER, key=f"s{number}") for number in range(MOST_OF_A_KIND + 1)]
    assert hints_of([*storm, event(Action.ROLLOUT_START, "rollout", "r1")]) == {
        PROVIDER: {Hint(Kind.SERVER, ""), Hint(Kind.ROLLOUT, "r1")}
    }
    assert len(hints_of(storm[:-1])[PROVIDER]) == MOST_OF_A_KIND


def test_what_goes_over_the_channel_comes_out_again_and_nothing_else_does():
    batch = hints_of([event(Action.ROLLOUT_START, "rollout", "r1"), event(tenant="t", kind="server")])
    assert from_text(to_text(batch).encode()) == batch
    for nonsense in (
        "[]",
        "7",
        '{"provider": 1}',
        '{"provider": [["no such kind", ""]]}',
        "{",
        '{"provider": [["a"]]}',
    ):
        with pytest.raises(ValueError):  # noqa: PT011  any of its kinds
            from_text(nonsense)
