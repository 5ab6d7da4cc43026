"""Two administrators at the same moment, on a database that really lets them."""

from functools import partial

import pytest
from django.conf import settings

from people import accounts, operations
from people.actor import actor_of
from people.errors import LastAdmin
from people.models import User
from tests.partitions.test_races import together

pytestmark = [pytest.mark.pg, pytest.mark.django_db(transaction=True, available_apps=list(settings.INSTALLED_APPS))]

TAKE = [
    partial(operations.set_role, role=User.Role.NONE, reason="away"),
    partial(accounts.lock, reason="away"),
]


@pytest.mark.parametrize("take", TAKE, ids=["role", "lock"])
def test_two_administrators_never_remove_each_other(take):
    for number in range(10):
        one, two = (User.objects.create_user(username=f"{name}-{number}", role=User.Role.ADMIN) for name in ("a", "b"))

        def away(*, person, by):
            try:
                return take(person=person, actor=actor_of(by))
            except LastAdmin as refused:
                return refused

        results = together(partial(away, person=two, by=one), partial(away, person=one, by=two))
        assert sum(isinstance(result, LastAdmin) for result in results) == 1, results
        assert User.objects.active().filter(role=User.Role.ADMIN).count() == 1
        User.objects.all().update(role=User.Role.NONE)
