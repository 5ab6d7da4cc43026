"""Link loss as a way to become clean: two discoveries in a row without the link, after the keys were taken away."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from deploy import whole_looks
from deploy.models import Drift, Observation, Rollout
from inventory.models import Port
from inventory.operations import record_seen
from partitions import link_loss, operations
from partitions.errors import MoveRefused
from partitions.models import Cleaning, LinkLoss
from subnet.guid import GUID
from subnet.observed import LeafCopy, PortReading


@pytest.fixture(autouse=True)
def _switched_on(settings):
    settings.CLEAN_BY_LINK_LOSS = True


@pytest.fixture
def left(provider, training):
    """srv-001 was Acme's, and that it left is proven; its ports are up."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    provider.observe()
    Rollout.objects.update(finished_at=timezone.now() - timedelta(minutes=10))
    Fabric(provider, server).look()
    return server


LEAF = GUID("0x0002c903000f0000")


class Fabric:
    """What whole looks see of one server's ports, a minute apart, by the way of a real one: the inventory first."""

    now = None

    def __init__(self, provider, server) -> None:
        self.provider, self.server = provider, server
        Fabric.now = timezone.now() - timedelta(minutes=9)

    @property
    def ports(self):
        return Port.objects.filter(hca__server=self.server).order_by("guid")

    def look(self, *down: Port, state="ABSENT", unread=(), without_leaf=False, is_discovery=True, at=None) -> None:
        """A look that finds all but `down`; those in `state`, or not at all. The ports `unread` could not be read."""
        Fabric.now += timedelta(minutes=1)
        readings = {}
        if not without_leaf:
            readings[LEAF] = reading(LEAF, "SW", 0)
        for number, port in enumerate(self.ports, 1):
            is_down = port in down
            if not is_down or state != "ABSENT":
                readings[port.guid] = reading(
                    port.guid, "CA", number, state=state if is_down else "ACTIVE", is_read=port not in unread
                )
        at = at or Fabric.now
        record_seen(subnet=self.provider.subnet, readings=readings.values(), at=at, is_complete=True)
        whole_looks.tell(whole_looks.WholeLook(self.provider.subnet, readings, at, is_discovery=is_discovery))


def reading(guid, node_type, number, *, state="ACTIVE", is_read=True) -> PortReading:
    leaf = LeafCopy(LEAF, number, 1, {}, enforce_in=True, enforce_out=True) if node_type == "CA" else None
    return PortReading(
        guid=guid, node_guid=guid, system_guid=None, node_type=node_type, number=1, lid=number, state=state,
        phys="LinkUp", master_sm_lid=1, is_sm=False, capacity=64, pkeys={0: 0x7FFF} if is_read else {}, leaf=leaf,
        description="", reading="read" if is_read else "unreadable", error=None if is_read else "timed out",
    )  # fmt: skip


@pytest.fixture
def fabric(provider, left):
    return Fabric(provider, left)


@pytest.mark.parametrize("state", ["ABSENT", "DOWN"])
def test_two_looks_in_a_row_without_any_link_make_it_clean(fabric, left, state):
    down = list(fabric.ports)
    fabric.look(*down, state=state)
    assert not Cleaning.objects.exists()
    fabric.look(*down, state=state)
    assert {row.doer for row in Cleaning.objects.all()} == {"FabricUI"}
    assert "two looks at the fabric in a row found all its 2 ports down" in Cleaning.objects.first().reason
    assert set(fabric.ports.values_list("former_tenant", flat=True)) == {None}
    event = Event.objects.get(action="partitions:server:clean")
    assert (event.actor_name, event.subject_label) == ("FabricUI", "srv-001")


def test_one_look_alone_may_have_missed_an_answer(fabric):
    down = list(fabric.ports)
    for _ in range(3):
        fabric.look(*down)
        fabric.look()
    assert not LinkLoss.objects.exists()
    assert not Cleaning.objects.exists()


def test_every_port_has_to_have_lost_its_link_but_not_at_once(fabric):
    first, second = fabric.ports
    fabric.look(first)
    fabric.look(first)
    fabric.look()
    assert not Cleaning.objects.exists()
    fabric.look(second)
    fabric.look(second)
    assert Cleaning.objects.count() == 2


def test_what_was_down_before_the_keys_were_taken_away_is_no_loss(fabric):
    down = list(fabric.ports)
    fabric.look(*down)
    Rollout.objects.update(finished_at=timezone.now() + timedelta(minutes=1))
    fabric.look(*down)
    fabric.look()
    assert LinkLoss.objects.count() == 2
    assert not Cleaning.objects.exists()


def test_a_server_that_stays_off_is_clean_by_later_looks_and_leaves_one_row_a_port(fabric):
    down = list(fabric.ports)
    for _ in range(3):
        fabric.look(*down)
    assert link_loss.lost(down)
    Rollout.objects.update(finished_at=Fabric.now + timedelta(seconds=1))
    Cleaning.objects.all().delete()
    Port.objects.update(former_tenant=fabric.provider.acme)
    fabric.look(*down)
    assert not Cleaning.objects.exists()  # the one before was of a time when it may have held a key
    fabric.look(*down)
    assert Cleaning.objects.count() == 2
    assert LinkLoss.objects.count() == 2


@pytest.mark.parametrize("state", ["ABSENT", "DOWN"])
def test_a_port_that_answers_and_cannot_be_read_says_nothing(fabric, state):
    down = list(fabric.ports)
    fabric.look(*down, state=state)
    fabric.look(unread=down)
    assert not Cleaning.objects.exists()
    fabric.look()
    assert not LinkLoss.objects.exists()


def test_behind_a_leaf_switch_that_is_not_there_nothing_is_lost(fabric):
    down = list(fabric.ports)
    fabric.look(*down)
    fabric.look(*down, without_leaf=True)
    assert not Cleaning.objects.exists()


def test_a_port_whose_leaf_nobody_knows_is_not_lost_by_its_absence(fabric):
    down = list(fabric.ports)
    fabric.ports.update(leaf_guid=None, leaf_port=None)
    fabric.look(*down)
    fabric.look(*down)
    assert not LinkLoss.objects.exists()


def test_a_scan_only_makes_us_look_and_only_as_long_as_something_is_to_be_seen(provider, fabric):
    down = list(fabric.ports)
    looks = Observation.objects.filter(why="links")
    fabric.look(is_discovery=False)
    assert not looks.exists()
    for _ in range(3):
        fabric.look(*down, is_discovery=False)
    assert looks.count() == 1  # which is still to be made
    assert not LinkLoss.objects.exists()
    fabric.look(*down)
    fabric.look(*down)
    assert Cleaning.objects.count() == 2
    looks.delete()
    fabric.look(*down, is_discovery=False)
    assert not looks.exists()


def test_what_was_seen_before_it_was_proven_counts_with_the_next_look_of_any_kind(provider, fabric):
    down = list(fabric.ports)
    observation = provider.observe()
    proven = observation.managers
    observation.managers = [proven[0], {**proven[1], "digest": "f" * 64}]
    observation.save()
    fabric.look(*down)
    fabric.look(*down)
    fabric.look(*down, is_discovery=False)
    assert not Cleaning.objects.exists()
    assert not Observation.objects.filter(why="links").exists()  # nothing more is to be seen
    observation.managers = proven
    observation.save()
    fabric.look(*down, is_discovery=False)
    assert Cleaning.objects.count() == 2


def test_one_look_of_each_of_two_outages_is_not_two_in_a_row(fabric):
    down = list(fabric.ports)
    fabric.look(*down)
    Rollout.objects.update(finished_at=Fabric.now + timedelta(seconds=30))
    fabric.look(*down)
    fabric.look()
    fabric.look(*down)
    assert not Cleaning.objects.exists()
    fabric.look(*down)
    assert Cleaning.objects.count() == 2


def test_a_scan_of_a_site_that_wants_more_than_that_asks_for_nothing(fabric, settings):
    settings.CLEAN_BY_LINK_LOSS = False
    fabric.look(*fabric.ports, is_discovery=False)
    assert not Observation.objects.filter(why="links").exists()


def test_a_look_that_is_told_late_changes_nothing(fabric):
    down = list(fabric.ports)
    early = Fabric.now + timedelta(seconds=30)
    fabric.look(*down)
    fabric.look(*down, at=early)
    assert not Cleaning.objects.exists()
    fabric.look(at=early)
    assert LinkLoss.objects.count() == 2


@pytest.mark.parametrize(
    "kind", ["rollout runs", "rollout ended", "rollout stuck", "rollout let go ended", "drift is open", "drift ended"]
)
def test_whatever_may_have_given_a_key_in_between_makes_it_begin_anew(provider, fabric, kind):
    """Also where it was about other ports: what a foreign file gave is nowhere to be read."""
    down = list(fabric.ports)
    fabric.look(*down)
    between = Fabric.now + timedelta(seconds=30)
    last = Rollout.objects.order_by("-pk").first()
    if kind.startswith("drift"):
        Drift.objects.create(
            subnet=provider.subnet, kind=Drift.Kind.FILE, key="m1", first_seen_at=between, last_seen_at=between,
            closed_at=None if kind == "drift is open" else between,
        )  # fmt: skip
    elif kind in ("rollout stuck", "rollout let go ended"):
        released = between if kind.endswith("ended") else None
        Rollout.objects.filter(pk=last.pk).update(state=Rollout.State.STUCK, released_at=released)
    else:
        Rollout.objects.filter(pk=last.pk).update(finished_at=None if kind == "rollout runs" else between)
    fabric.look(*down)
    assert link_loss.lost(down) == {}
    assert not Cleaning.objects.exists()
    fabric.look(*down)
    assert bool(link_loss.lost(down)) is kind.endswith("ended")


def test_a_rollout_that_placed_nothing_gave_nothing(provider, fabric):
    down = list(fabric.ports)
    fabric.look(*down)
    newest = Rollout.objects.order_by("-pk").first()
    newest.pk, newest.public_id = None, "refused00001"
    newest.state, newest.finished_at = Rollout.State.REFUSED, Fabric.now + timedelta(seconds=30)
    newest.save(force_insert=True)
    fabric.look(*down)
    assert Cleaning.objects.count() == 2


def test_what_is_not_proven_stays_so_whatever_the_links_say(provider, fabric):
    down = list(fabric.ports)
    observation = provider.observe()
    observation.managers[1]["digest"] = "f" * 64  # that host may give the keys back
    observation.save()
    fabric.look(*down)
    fabric.look(*down)
    assert not Cleaning.objects.exists()


def test_a_site_may_want_more_than_that(fabric, settings):
    settings.CLEAN_BY_LINK_LOSS = False
    down = list(fabric.ports)
    fabric.look(*down)
    fabric.look(*down)
    assert set(link_loss.lost(down)) == {str(port.guid) for port in down}
    assert not Cleaning.objects.exists()


def test_a_member_is_never_cleaned_by_a_reboot(provider, training):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    fabric = Fabric(provider, server)
    down = list(fabric.ports)
    fabric.look(*down)
    fabric.look(*down)
    assert not LinkLoss.objects.exists()
    assert set(fabric.ports.values_list("former_tenant__slug", flat=True)) == {"acme"}


class TestAPortThatAPersonLetBeAbsent:
    @pytest.fixture
    def excused(self, provider, left):
        port = Port.objects.filter(hca__server=left).order_by("guid").first()
        removal = Rollout.objects.order_by("-pk").first()
        said = {"by": "Olga", "reason": "dead", "at": "", "moved": {}, "absent": [str(port.guid)]}
        Rollout.objects.filter(pk=removal.pk).update(accepted=said, finished_at=timezone.now() - timedelta(minutes=10))
        provider.observe(unread=[port.guid])
        return port

    def test_has_to_be_read_before_anybody_says_that_its_server_is_clean(self, provider, left, excused):
        with pytest.raises(MoveRefused, match=r"and Olga let that stand: what it holds was never read") as refused:
            operations.mark_clean(server=left, actor=provider.otto, reason="erased")
        assert refused.value.rule == "not_proven"
        provider.observe()
        operations.mark_clean(server=left, actor=provider.otto, reason="erased")

    def test_and_before_its_links_say_so(self, provider, fabric, excused):
        down = list(fabric.ports)
        fabric.look(*down)
        fabric.look(*down)
        assert not Cleaning.objects.exists()
        provider.observe()
        fabric.look(*down)
        assert Cleaning.objects.count() == 2

    def test_an_acceptance_from_before_the_last_cleaning_is_forgotten(self, provider, left, training, excused):
        provider.observe()
        operations.mark_clean(server=left, actor=provider.otto, reason="erased")
        provider.settled_move(left, None, training)
        provider.settled_move(left, training, None)
        provider.observe(unread=[excused.guid])
        operations.mark_clean(server=left, actor=provider.otto, reason="erased")


def test_a_follower_that_fails_breaks_no_look(provider, left, monkeypatch, caplog):
    def fails(look) -> None:
        raise RuntimeError("bug")

    heard = []
    monkeypatch.setitem(whole_looks.FOLLOWERS, "a", fails)
    monkeypatch.setitem(whole_looks.FOLLOWERS, "z", heard.append)
    look = whole_looks.WholeLook(provider.subnet, {}, timezone.now(), is_discovery=True)
    whole_looks.tell(look)
    assert heard == [look]
    assert "a failed after a look" in caplog.text
