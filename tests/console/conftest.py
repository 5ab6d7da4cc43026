"""Fixtures of the room console: a small provider whose first assignment is proven, and the people who look at it."""

from dataclasses import dataclass

import pytest

from partitions.models import Partition
from tests.partitions.site import Provider, build
from tests.remembered import remembered


@dataclass
class Site:
    """The rows, with the partitions by name."""

    provider: Provider
    training: Partition
    inference: Partition
    research: Partition  # of another tenant
    storage: Partition  # the provider's


@remembered
def settled_site() -> Site:
    """Six servers: two in training, one in inference, one in the other tenant's research, two unassigned."""
    provider = build()
    site = Site(
        provider=provider,
        training=provider.partition("training", provider.acme, 0x2C41),
        inference=provider.partition("inference", provider.acme, 0x1B07),
        research=provider.partition("research", provider.bert, 0x3D02),
        storage=provider.partition("storage", None, 0x0100),
    )
    for number in range(1, 7):
        provider.server(number, state="ACTIVE", rate_text="400 Gb/sec (4X NDR)")
    homes = [site.training, site.training, site.inference, site.research]
    for server, home in zip(provider.servers[:4], homes, strict=True):
        provider.move(server, None, home)
    provider.settle(provider.roll_out(provider.olga, reason="first assignment"))
    return site


@pytest.fixture
def site(db) -> Site:
    return settled_site()


@pytest.fixture
def operator(site, client_of):
    """Olga's browser."""
    return client_of(site.provider.olga)


@pytest.fixture
def auditor(ada, client_of):
    """Ada's browser."""
    return client_of(ada)
