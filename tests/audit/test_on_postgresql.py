"""The trail's own tests once more, on PostgreSQL: its triggers, its jsonb, its locks are not SQLite's."""

import pytest

from tests.audit import (
    test_anchors,
    test_append_only,
    test_chain,
    test_follow,
    test_format_1,
    test_list,
    test_record,
    test_standing,
)

pytestmark = [pytest.mark.pg, pytest.mark.django_db]

# By hand and not by `import *`: linters take away what looks unused, and with it the tests.
for _module in (
    test_append_only,
    test_record,
    test_follow,
    test_list,
    test_anchors,
    test_chain,
    test_format_1,
    test_standing,
):
    for _name, _value in vars(_module).items():
        if _name.startswith("test_") or "fixture" in type(_value).__name__.lower():
            globals().setdefault(_name, _value)


def test_the_tests_of_the_chain_are_here():
    assert "test_swapped_events_are_found" in globals()
    assert "test_followers_are_nudged_after_the_commit_only" in globals()
