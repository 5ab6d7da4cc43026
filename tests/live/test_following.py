"""From the commit of an event to what a web process hears."""

import pytest

from audit import follow
from audit.actions import Action
from audit.values import Subject
from live import channel, following
from live.hints import PROVIDER, Hint, Kind
from tests.audit.events import record_one


def ours():
    return follow._followers["live.hints"]


@pytest.fixture
def told(monkeypatch):
    batches = []
    monkeypatch.setattr(following, "publish", batches.append)
    monkeypatch.setattr(follow, "_followers", {"live.hints": ours()})
    return batches


def start(number):
    return record_one(action=Action.ROLLOUT_START, subject=Subject(kind="rollout", key=f"r{number}", label="r"))


@pytest.mark.django_db
def test_what_was_committed_is_told_in_one_batch_after_the_cursor(told, django_capture_on_commit_callbacks):
    start(0)
    follow.tick()  # from now on
    for number in (1, 2):
        start(number)
    record_one(action=Action.PERSON_LOGIN)
    with django_capture_on_commit_callbacks() as callbacks:
        follow.tick()
        assert told == []
    for callback in callbacks:
        callback()
    assert told == [{PROVIDER: {Hint(Kind.ROLLOUT, "r1"), Hint(Kind.ROLLOUT, "r2")}}]


def test_a_broker_that_is_away_fails_nothing(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    channel.publish({PROVIDER: frozenset({Hint(Kind.ROLLOUT, "r1")})})
    settings.REDIS_URL = ""
    channel.publish({PROVIDER: frozenset({Hint(Kind.ROLLOUT, "r1")})})


def test_two_installations_on_one_broker_do_not_hear_each_other(settings):
    here = channel.name()
    settings.SECRET_KEY = "another installation's"
    assert channel.name() != here
    assert settings.SECRET_KEY not in channel.name()
