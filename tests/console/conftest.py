"""Fixtures of the room console: a small provider whose first assignment is proven, and the people who look at it."""

import pytest

from lab.pictures.settled import Site, settle
from tests.partitions.site import build
from tests.remembered import remembered

__all__ = ["Site", "settled_site"]


@remembered
def settled_site() -> Site:
    """Six servers: two in training, one in inference, one in the other tenant's research, two unassigned."""
    return settle(build())


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
