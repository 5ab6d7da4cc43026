"""The trail's own tests once more, on PostgreSQL: its triggers, its jsonb, its locks are not SQLite's."""

import pytest

from tests.audit.test_chain import (
    owner,
)
from tests.audit.test_follow import (
    only_ours,
)
from tests.audit.test_list import trail

pytestmark = [pytest.mark.pg, pytest.mark.django_db]

__all__ = [name for name in dir() if name.startswith("test_")] + ["only_ours", "owner", "trail"]
