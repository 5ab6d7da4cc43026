from datetime import timedelta

import pytest
from django.utils import timezone

from audit import follow
from audit.actions import Action
from audit.models import Event, FollowerCursor
from audit.tasks import follow as follow_task
from people.models import Tenant
from tests.audit.events import record_many, record_one

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def only_ours(monkeypatch):
    """Leave out the followers that other rooms have registered."""
    monkeypatch.setattr(follow, "_followers", {})


class Notebook:
    """A follower that writes down what it is handed and fails where it is told to."""

    def __init__(self, name="notebook", actions=tuple(Action)):
        self.seen, self.fail_at, self.name = [], set(), name
        follow.register(name, actions, self.follow)

    def follow(self, event: Event) -> None:
        self.seen.append(event.number)
        if event.number in self.fail_at:
            raise RuntimeError("the notebook is full")

    @property
    def cursor(self) -> FollowerCursor:
        return FollowerCursor.objects.get(name=self.name)

    def wait_is_over(self) -> None:
        FollowerCursor.objects.filter(name=self.name).update(next_try_at=timezone.now() - timedelta(seconds=1))


def test_events_come_in_order_and_once():
    notebook = Notebook()
    record_many(5)
    assert follow.tick() == 5
    assert notebook.seen == [1, 2, 3, 4, 5]
    assert follow.tick() == 0
    record_many(1)
    follow_task()
    assert notebook.seen == [1, 2, 3, 4, 5, 6]
    assert notebook.cursor.number == 6


def test_only_the_wanted_actions_come_and_the_cursor_passes_the_others():
    notebook = Notebook(actions=[Action.SUBNET_MODE])
    record_many(2)
    record_one(action=Action.SUBNET_MODE)
    record_many(3)
    assert follow.tick() == 1
    assert notebook.seen == [3]
    assert notebook.cursor.number == 6


def test_a_failure_stops_only_that_follower_and_is_stored():
    broken, sound = Notebook("broken"), Notebook("sound")
    broken.fail_at = {2}
    record_many(3)

    follow.tick()

    assert sound.seen == [1, 2, 3]
    assert broken.seen == [1, 2]
    assert (broken.cursor.number, broken.cursor.tries) == (1, 1)
    assert "Event 2" in broken.cursor.failure
    assert "the notebook is full" in broken.cursor.failure
    assert sound.cursor.failure == ""


def test_a_follower_that_failed_waits_then_gets_the_same_event_and_goes_on():
    notebook = Notebook()
    notebook.fail_at = {2}
    record_many(3)
    follow.tick()
    follow.tick()
    assert notebook.seen == [1, 2]  # not yet again

    notebook.wait_is_over()
    follow.tick()
    assert (notebook.seen, notebook.cursor.tries) == ([1, 2, 2], 2)
    assert notebook.cursor.next_try_at - timezone.now() > timedelta(seconds=3)  # waits longer each time

    notebook.fail_at = set()
    notebook.wait_is_over()
    follow.tick()
    assert notebook.seen == [1, 2, 2, 2, 3]
    assert (notebook.cursor.failure, notebook.cursor.tries, notebook.cursor.next_try_at) == ("", 0, None)


def test_what_a_failed_follower_wrote_is_rolled_back():
    def writes_then_fails(event: Event) -> None:
        Tenant.objects.create(name="half", slug="half")
        raise RuntimeError

    follow.register("half", [Action.SUBNET_CREATE], writes_then_fails)
    record_one()
    follow.tick()
    assert not Tenant.objects.exists()


def test_a_worker_that_dies_after_the_function_hands_the_event_over_again(monkeypatch):
    notebook = Notebook()
    follow.tick()
    record_many(2)

    class PowerCut(BaseException):
        pass

    def save(self, *args, **kwargs):
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(FollowerCursor, "save", save)
        with pytest.raises(PowerCut):
            follow.tick()
    assert notebook.seen == [1]

    follow.tick()
    assert notebook.seen == [1, 1, 2]


def test_a_follower_gets_a_part_at_a_time_so_that_others_get_theirs(monkeypatch):
    monkeypatch.setattr(follow, "AT_ONCE", 2)
    one, other = Notebook("one"), Notebook("other")
    record_many(5)
    follow.tick()
    assert (one.seen, other.seen) == ([1, 2], [1, 2])
    follow.tick()
    follow.tick()
    assert (one.seen, other.seen) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


def test_a_name_stands_for_one_follower():
    def function(event: Event) -> None: ...

    follow.register("one", [Action.SUBNET_CREATE], function)
    follow.register("one", [Action.SUBNET_CREATE], function)
    with pytest.raises(ValueError, match="one"):
        follow.register("one", [Action.SUBNET_MODE], function)


def test_an_idle_tick_writes_nothing(django_assert_num_queries):
    Notebook()
    record_many(1)
    follow.tick()
    with django_assert_num_queries(2) as queries:
        follow.tick()
    assert all(query["sql"].startswith("SELECT") for query in queries)


class Gazette:
    """A follower that is handed many at once and keeps each bundle."""

    def __init__(self, actions=tuple(Action)):
        self.bundles, self.fails = [], False
        follow.register_many("gazette", actions, self.follow)

    def follow(self, events) -> None:
        self.bundles.append([event.number for event in events])
        if self.fails:
            raise RuntimeError("the press stands still")


def test_one_who_takes_many_gets_what_waits_in_one_transaction_from_its_first_tick_on(django_assert_max_num_queries):
    record_many(3)
    gazette = Gazette(actions=[Action.SUBNET_CREATE])
    assert follow.tick() == 0  # what was before it came is no news
    record_many(20)
    with django_assert_max_num_queries(14):
        assert follow.tick() == 20
    assert gazette.bundles == [list(range(4, 24))]
    assert FollowerCursor.objects.get(name="gazette").number == 23
    record_one(action=Action.SUBNET_MODE)  # not for it: the cursor passes
    assert follow.tick() == 0
    assert FollowerCursor.objects.get(name="gazette").number == 24


def test_one_who_takes_many_is_handed_a_part_at_a_time(monkeypatch):
    gazette = Gazette()
    follow.tick()
    monkeypatch.setattr(follow, "AT_ONCE", 2)
    record_many(5)
    assert [follow.tick() for _ in range(4)] == [2, 2, 1, 0]
    assert gazette.bundles == [[1, 2], [3, 4], [5]]


def test_a_bundle_that_failed_is_handed_over_again_whole():
    gazette = Gazette()
    follow.tick()
    gazette.fails = True
    record_many(3)
    assert follow.tick() == 0
    cursor = FollowerCursor.objects.get(name="gazette")
    assert (cursor.number, cursor.tries) == (0, 1)
    assert "Event 1" in cursor.failure
    gazette.fails = False
    FollowerCursor.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    assert follow.tick() == 3
    assert gazette.bundles == [[1, 2, 3], [1, 2, 3]]
