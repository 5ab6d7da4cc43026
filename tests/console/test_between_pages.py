"""Where a server stands between two tenants, step by step, as its page says it."""

import pytest
from django.urls import reverse
from django.utils import timezone

from console.between import NAMES, passage
from inventory.models import Port
from partitions import operations
from partitions.models import LinkLoss


@pytest.fixture
def server(site):
    """srv-001, of Acme's training."""
    return site.provider.servers[0]


def at(server) -> str:
    found = passage(server)
    assert found is not None
    states = [step.at for step in found.steps]
    now = states.index("now")
    assert states == ["done"] * now + ["now"] + ["ahead"] * (len(NAMES) - now - 1)
    return found.position


def test_a_server_that_stays_with_its_tenant_has_no_passage(site, server, operator):
    assert passage(server) is None
    site.provider.move(server, site.training, site.inference)
    assert passage(server) is None
    assert 'id="passage"' not in operator.get(reverse("console:server", args=[server.public_id])).content.decode()


def test_the_five_steps_one_after_the_other(site, server, operator):
    provider = site.provider
    provider.move(server, site.training, site.research)
    assert at(server) == "remove"
    found = passage(server)
    assert (found.former, found.to) == ("Acme", "Bert")
    text = operator.get(reverse("console:server", args=[server.public_id])).content.decode()
    assert 'id="passage-remove" aria-current="step"' in text

    first = provider.roll_out(provider.olga)
    assert at(server) == "removed"
    provider.settle(first)
    assert at(server) == "clean"
    assert "takes no new key" in passage(server).next
    text = operator.get(reverse("console:server", args=[server.public_id])).content.decode()
    assert 'id="passage-clean" aria-current="step"' in text

    provider.observe()
    operations.mark_clean(server=server, actor=provider.otto, reason="erased")
    assert at(server) == "add"
    second = provider.roll_out(provider.olga)
    assert at(server) == "added"
    provider.settle(second)
    assert passage(server) is None


def test_a_first_half_that_was_restored_is_to_be_removed_again(site, server):
    from deploy.models import Rollout

    site.provider.move(server, site.training, site.research)
    site.provider.end(site.provider.roll_out(site.provider.olga), Rollout.State.RESTORED)
    assert at(server) == "remove"


def test_a_server_that_only_left_waits_to_be_cleaned(site, server):
    site.provider.settled_move(server, site.training, None)
    assert at(server) == "clean"
    assert passage(server).to == ""


def test_a_server_that_leaves_for_the_providers_partition_is_on_its_way_too(site, server):
    site.provider.move(server, site.training, None)
    site.provider.move(server, None, site.storage)
    assert at(server) == "remove"
    assert passage(server).to == "the provider"


def test_link_loss_is_counted_where_the_server_waits_to_be_clean(site, server, operator, settings):
    settings.CLEAN_BY_LINK_LOSS = False
    site.provider.settled_move(server, site.training, None)
    first, second = Port.objects.filter(hca__server=server)
    after = timezone.now()
    LinkLoss.objects.create(port=first, seen_at=after, again_at=after)
    LinkLoss.objects.create(port=second, seen_at=after)  # once is not believed
    address = reverse("console:server", args=[server.public_id])
    text = operator.get(address).content.decode()
    assert "link loss seen on 1 of 2 ports, in two looks each" in text
    assert "found all its links down" not in text
    settings.CLEAN_BY_LINK_LOSS = True
    assert "found all its links down" in operator.get(address).content.decode()
