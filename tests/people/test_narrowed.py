"""Roles are asked in one place, which heeds the tenant of a token: `of_person`, and the predicates."""

import re

import pytest

from people.models import Tenant, TenantRole, User
from people.permissions import is_operator, is_somebodys, may_review
from people.scopes import scopes_of
from tests.test_house import ROOT, product_files

ASKED = re.compile(
    r"tenant_roles(?!\.of_person)\b|roles__user|tenant__roles|TenantRole\.objects(?!\.of_person)|(user|person)\.role\b"
)
# Who may read roles otherwise: what says what somebody *else* is, or changes it; and the two places themselves.
OTHERWISE = {
    "people/models.py", "people/permissions.py", "people/operations.py", "people/accounts.py", "people/suspension.py",
    "people/openid.py",
    "console/views/people.py",
    "console/views/board.py",  # what an answer is remembered under
    "portal/door.py",  # of the seat; and who else administers the tenant
    "portal/turns.py",  # of those who staged, whom no token says
    "portal/own_people.py", "portal/views/settings.py",  # of the tenant's people, for its administrators
    "portal/activity_models.py", "portal/activity/found.py",  # of those who acted
    "portal/evidence/contents.py", "portal/evidence/signing.py",  # a worker's: of those who asked, and whose names show
}  # fmt: skip


def test_roles_are_asked_in_one_place():
    found = {
        str(path.relative_to(ROOT))
        for path in product_files()
        if not {"migrations", "lab"} & set(path.relative_to(ROOT).parts) and _asks(path.read_text(encoding="utf-8"))
    }
    assert found <= OTHERWISE


def _asks(text: str) -> bool:
    lines = (line.partition("#")[0] for line in text.splitlines())
    return any(ASKED.search(line) for line in lines if not re.match(r"\s*(from|import|\"\"\")", line))


@pytest.mark.django_db
def test_who_acts_for_one_tenant_is_nothing_else(olga, acme):
    for tenant in (acme, Tenant.objects.create(name="Bert", slug="bert")):
        TenantRole.objects.create(user=olga, tenant=tenant, role="ADMIN")
    person = User.objects.get(pk=olga.pk)
    assert is_operator(person)
    assert TenantRole.objects.of_person(person).count() == 2
    person.narrowed_to = acme
    assert not is_operator(person)
    assert not may_review(person)
    assert is_somebodys(person)
    assert [role.tenant for role in TenantRole.objects.of_person(person)] == [acme]
    TenantRole.objects.filter(user=olga, tenant=acme).delete()
    assert not is_somebodys(person)
    assert scopes_of(person) == []
