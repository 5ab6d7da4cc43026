"""As of then on the fake site: which revision was current, what each port held, and how sure that is."""

from datetime import timedelta

import pytest

from deploy import as_of
from deploy.as_of import Certainty, told
from deploy.as_of import as_of as look_back
from deploy.models import Revision, Rollout
from subnet.guid import GUID
from tests.conftest import _without_triggers
from tests.deploy.conftest import INFERENCE, TRAINING

PORT = "0x0000000000000001"


def moment(scene):
    """Now, with a step of the clock on either side."""
    scene.clock.forward(1)
    at = scene.clock.now
    scene.clock.forward(1)
    return at


class TestTables:
    """What the looks around a moment say, without a database."""

    @pytest.mark.parametrize(
        ("looks", "after", "certainty", "table", "later"),
        [
            ([{PORT: {"0": 0xFFFF}}], None, "last seen", {0: 0xFFFF}, None),
            ([{PORT: {"0": 0xFFFF}}], (False, {}), "held", {0: 0xFFFF}, None),
            ([{PORT: {"0": 0xFFFF}}], (True, {PORT: {"0": 0xFFFF}}), "held", {0: 0xFFFF}, None),
            ([{PORT: {"0": 1}}, {PORT: {"0": 2, "10": 3}}], (False, {}), "held", {0: 2, 10: 3}, None),
            ([{PORT: {"0": 1}}], (False, {PORT: {"0": 2}}), "changed", {0: 1}, {0: 2}),
            ([{PORT: {"0": 1}}], (False, {PORT: None}), "changed", {0: 1}, None),
            ([{PORT: {"0": 1}}], (True, {}), "changed", {0: 1}, None),
            ([{PORT: {"0": 1}}], (False, {PORT: "unread"}), "last seen", {0: 1}, None),
            ([{PORT: {"0": 1}}, {PORT: "unread"}], (False, {}), "unread", {0: 1}, None),
            ([{PORT: {"0": 1}}, {PORT: None}, {PORT: "unread"}], None, "unread", None, None),
            ([{PORT: {"0": 1}}, {PORT: None}], None, "away", None, None),
            ([], (True, {PORT: {"0": 1}}), "unknown", None, {0: 1}),
        ],
    )
    def test_each_case(self, looks, after, certainty, table, later):
        port = told(looks, after)[GUID(PORT)]
        assert (port.certainty, port.table, port.later) == (certainty, table, later)

    def test_nothing_of_nothing(self):
        assert told([], None) == {}


def held(then):
    return {guid: dict(port.table) for guid, port in then.ports.items() if port.table is not None}


@pytest.fixture
def day(scene):
    """Moments and what the fabric held then: before any look, after one, and after two rollouts."""
    seen = []
    seen.append((moment(scene), None, scene.first.number))
    scene.look()
    seen.append((moment(scene), scene.tables(), scene.first.number))
    for moves in ({"s1": INFERENCE}, {"s1": TRAINING, "s3": TRAINING}):
        rollout = scene.run(scene.begin(**moves))
        assert rollout.state == Rollout.State.PROVEN, rollout.cause
        seen.append((moment(scene), scene.tables(), rollout.revision.number))
    return seen


def test_each_moment_of_a_day(scene, day):
    for at, tables, number in day:
        then = look_back(scene.subnet, at)
        assert then.current.revision.number == number
        assert then.current.is_vouched
        assert held(then) == ({} if tables is None else tables)
        assert then.rollout is None


def test_before_the_first_revision_there_is_nothing(scene):
    then = look_back(scene.subnet, scene.clock.now - timedelta(days=400))
    assert then.current is None
    assert then.looked_before is None


def test_a_change_behind_our_back_is_told_as_one(scene, day):
    port = next(iter(scene.site.ports.values()))
    before = dict(port.pkeys)
    port.pkeys = {**before, 9: 0xBEEF}
    unseen = moment(scene)
    scene.look()
    seen = moment(scene)
    then = look_back(scene.subnet, unseen).ports[port.guid]
    assert then.certainty is Certainty.CHANGED
    assert (then.table, then.later) == (before, port.pkeys)
    after = look_back(scene.subnet, seen).ports[port.guid]
    assert (after.certainty, after.table) == (Certainty.LAST_SEEN, port.pkeys)


def test_a_rollout_under_way_is_named(scene):
    rollout = scene.begin()
    at = moment(scene)
    scene.run(rollout)
    then = look_back(scene.subnet, at)
    assert then.rollout == rollout
    assert then.current.revision == scene.first


def test_an_altered_revision_is_not_vouched_for(scene, day):
    from django.db import connection

    with _without_triggers(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE deploy_revision SET data = %s WHERE number = 1", [b"Default=0x7fff : ALL=full ;\n"])
    then = look_back(scene.subnet, day[1][0])
    assert not then.current.is_vouched
    assert look_back(scene.subnet, day[2][0]).current.is_vouched


def test_a_table_that_can_be_none_breaks_nothing(scene):
    from django.db import connection

    with _without_triggers(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE deploy_revision SET \"table\" = '{}'")
    then = look_back(scene.subnet, moment(scene))
    assert then.current.table is None
    assert not then.current.is_vouched


def test_the_base_of_the_changes_may_lie_before(scene, day, monkeypatch):
    monkeypatch.setattr("deploy.table_history.BASE_EVERY", 3)
    expected = []
    for _ in range(8):
        port = next(iter(scene.site.ports.values()))
        port.pkeys = {**port.pkeys, 20 + len(expected): 0x8111}
        scene.look()
        expected.append((moment(scene), scene.tables()))
    for at, tables in expected:
        assert held(look_back(scene.subnet, at)) == tables


def test_another_subnet_s_rollouts_are_not_ours(scene, day):
    from inventory.models import Subnet

    other = Subnet.objects.create(name="other")
    assert look_back(other, day[-1][0]).current is None
    assert Revision.objects.filter(subnet=other).count() == 0
    assert as_of.current_at(scene.subnet, day[-1][0]).revision.number == 3
