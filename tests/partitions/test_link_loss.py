"""Link loss as a way to become clean: two whole looks in a row without the link, after the keys were taken away."""

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.models import Event
from deploy import whole_looks
from deploy.models import Rollout
from inventory.models import Port
from partitions import link_loss, operations
from partitions.errors import MoveRefused
from partitions.models import Cleaning, LinkLoss


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


class Fabric:
    """What whole looks see of one server's ports, a minute apart."""

    now = None

    def __init__(self, provider, server) -> None:
        self.provider, self.server = provider, server
        Fabric.now = timezone.now() - timedelta(minutes=9)

    @property
    def ports(self):
        return Port.objects.filter(hca__server=self.server).order_by("guid")

    def look(self, *down: Port, state: str = "ABSENT") -> None:
        Fabric.now += timedelta(minutes=1)
        self.ports.update(seen_state="ACTIVE", seen_at=Fabric.now)
        if down:
            self.ports.filter(pk__in=[port.pk for port in down]).update(
                seen_state=state, seen_at=Fabric.now - timedelta(days=1)
            )
        type(self.provider.subnet).objects.filter(pk=self.provider.subnet.pk).update(looked_at=Fabric.now)
        whole_looks.tell(self.provider.subnet)


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


def test_a_server_that_stays_off_is_clean_by_a_later_look_and_leaves_one_row_a_port(fabric):
    down = list(fabric.ports)
    Rollout.objects.update(finished_at=timezone.now() + timedelta(minutes=1))
    for _ in range(4):
        fabric.look(*down)
    assert LinkLoss.objects.count() == 2
    assert not Cleaning.objects.exists()
    Rollout.objects.update(finished_at=timezone.now() - timedelta(minutes=10))
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
    def fails(subnet) -> None:
        raise RuntimeError("bug")

    heard = []
    monkeypatch.setitem(whole_looks.FOLLOWERS, "a", fails)
    monkeypatch.setitem(whole_looks.FOLLOWERS, "z", heard.append)
    whole_looks.tell(provider.subnet)
    assert heard == [provider.subnet]
    assert "a failed after a look" in caplog.text
