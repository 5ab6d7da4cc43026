"""Fixtures of the room probes."""

import pytest

from tests.probes.site import probed


@pytest.fixture
def site(db):
    return probed()
