"""A subnet to register in."""

import pytest

from tests.inventory.reports import OLGA


@pytest.fixture
def subnet(db):
    """The subnet `lab`, in mode observe."""
    from inventory.operations import create_subnet

    return create_subnet(name="lab", actor=OLGA)


@pytest.fixture
def enrolled_trust(settings):
    """The site accepts what a server reports with its own credential."""
    settings.REGISTRATION_TRUST = "enrolled"
