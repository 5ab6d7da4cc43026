"""Fixtures of the room partitions."""

import pytest

from tests.partitions.site import Provider, build


@pytest.fixture
def provider(db) -> Provider:
    return build()


@pytest.fixture
def training(provider):
    return provider.partition("training", provider.acme, 0x2C41)


@pytest.fixture
def inference(provider):
    return provider.partition("inference", provider.acme, 0x1B07)


@pytest.fixture
def storage(provider):
    """The provider's own, shared."""
    return provider.partition("storage", None, 0x0100)


@pytest.fixture
def berts(provider):
    return provider.partition("berts", provider.bert, 0x3D02)
