"""The matrix of roles is red when requests are not scoped any more: `visible_to` alone keeps strangers out."""

import pytest

from portal.request_models import TenantRequestQuerySet
from tests.api.callers import EVERYTHING, Caller
from tests.people import matrix
from tests.people.everything import everything
from tests.people.matrix import PERSONAS
from tests.people.test_roles import answer


@pytest.mark.django_db
def test_a_stranger_gets_in_once_visible_to_is_gone(client_of, monkeypatch):
    site = everything()
    client = client_of(site.people["other"])
    client.program = Caller(site.people["other"], scopes=EVERYTHING)
    rows = [row for row in matrix.rows().values() if "request" in row.name and "operator" not in row.name]
    assert len(rows) > 8

    def red():
        at = PERSONAS.index("other")
        return {f"{row.name} {row.verb}" for row in rows if answer(client, row.name, row.verb, site) != row.answers[at]}

    assert red() == set()
    monkeypatch.setattr(TenantRequestQuerySet, "visible_to", lambda rows, user: rows.all())
    assert red() == {"api:requests_one GET", "api:requests_one DELETE", "api:requests_comment POST"}
