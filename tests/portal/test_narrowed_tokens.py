"""A token of one tenant is worth what a person is who has that tenant alone, whatever else its person may be.

Every address of the API is asked with each verb, for what is Acme's, what is Bert's and what nobody has. The answers to
the token of somebody who is Acme's and Bert's administrator and one of the provider are those of Acme's alone.
"""

import copy
from collections.abc import Collection

import pytest
from django.test import override_settings

from people import permissions
from people.models import TenantRole, User
from people.querysets import TenantRoleQuerySet
from tests.api.callers import EVERYTHING, Caller, is_problem
from tests.people import matrix
from tests.portal.test_canary_everywhere import BEHIND_A_ROLE, BEHIND_A_SEAT, OWNER, Two, _asked, _every, sights, two

pytestmark = pytest.mark.django_db
__all__ = ["two"]  # the fixture
READING = ("GET",)
BESIDE_THE_API = {"Endpoint", "SignedEvidence", "Token"}  # no address of the API asks for them


def _open(site: Two) -> set[str]:
    rows = matrix.rows()
    return {name for name, verb in rows if name.startswith("api:") and rows[name, verb].answers[OWNER] == "yes"}


def answers(site: Two, only: Collection[str] = (), verbs: Collection[str] = ()) -> dict[tuple[str, ...], object]:
    """What the program of `site` is told at each address of the API, by name, verb and whose it asks for."""
    found = {}
    for name, verb, arguments, form in _every(site):
        if name.startswith("api:") and (not only or name in only) and (not verbs or verb in verbs):
            for whose, values in (("acme", {}), ("bert", site.of_bert), ("nobody", site.nobodys)):
                asked = [values.get(value, value) for value in arguments]
                found[name, verb, whose] = _asked(site, name, verb, asked, form)
    return found


def raise_her(two: Two) -> None:
    """Make Acme's administrator Bert's and the provider's too; her program has a token for Acme now."""
    owner = two.site.people["owner"]
    acme = TenantRole.objects.get(user=owner).tenant
    TenantRole.objects.create(user=owner, tenant=two.bert, role="ADMIN")
    User.objects.filter(pk=owner.pk).update(role="ADMIN")
    two.site.people["owner"] = User.objects.get(pk=owner.pk)
    two.program = Caller(two.site.people["owner"], scopes=EVERYTHING, tenant=acme)


@pytest.fixture
def mighty(two) -> Two:
    """She is all that, with a token for Acme."""
    raise_her(two)
    return two


def _differ(one: dict, other: dict) -> list[tuple[str, str, str]]:
    return [key for key in one if one[key] != other[key]]


def test_it_is_answered_as_if_its_person_had_that_tenant_alone(two):
    plain = answers(two)
    raise_her(two)
    assert len(plain) > 100
    assert _differ(plain, answers(two)) == []
    two.program = Caller(two.site.people["owner"], scopes=EVERYTHING)
    wide = answers(two, verbs=READING)
    assert len(_differ({key: plain[key] for key in wide}, wide)) > 20


def test_a_forgotten_narrowing_is_found(two, monkeypatch):
    """That of roles for the provider, that of roles for tenants, and each `visible_to` in turn."""
    only = _open(two)
    plain = answers(two, only, READING)
    raise_her(two)
    assert _differ(plain, answers(two, only, READING)) == []
    with monkeypatch.context() as patch:
        patch.setattr(permissions, "_has_role", lambda user, *roles: user.role in roles)
        assert _differ(plain, answers(two, only, READING))
    with monkeypatch.context() as patch:
        patch.setattr(TenantRoleQuerySet, "of_person", lambda self, user: self.in_force().filter(user=user.pk))
        assert _differ(plain, answers(two, only, READING))
    for name, kind in sights().items():
        if name in BEHIND_A_ROLE | BEHIND_A_SEAT | BESIDE_THE_API:
            continue
        with monkeypatch.context() as patch:
            scoped = kind.visible_to
            patch.setattr(kind, "visible_to", lambda self, user, scoped=scoped: scoped(self, _wide(user)))
            assert _differ(plain, answers(two, only, READING)), name


def _wide(user: User) -> User:
    """The same person, not narrowed."""
    found = copy.copy(user)
    found.narrowed_to = None
    return found


def test_it_asks_for_nothing_in_the_name_of_another_tenant(mighty):
    two = mighty
    asked = {"tenant": two.bert.public_id, "kind": "MORE_SERVERS", "count": 1, "why": "more"}
    refused = is_problem(two.program.post("requests", asked), 400, "invalid")
    assert refused["detail"] == "tenant: You have no role for a tenant of this id."
    acme = two.site.arguments["portal:servers"][0]
    assert two.program.post("requests", {**asked, "tenant": acme}).status_code == 201


def test_it_reads_the_activity_of_its_tenant_without_naming_it(mighty):
    """By the seat, which stands before `visible_to`: a token of all her tenants has to say which."""
    two = mighty
    acme = two.site.arguments["portal:servers"][0]
    lines = two.program.items("activity")
    assert lines
    assert two.program.items(f"activity?tenant={acme}") == lines
    refused = is_problem(two.program.get(f"activity?tenant={two.bert.public_id}"), 400, "invalid")
    assert refused["detail"] == "tenant: You have no role for a tenant of this id."
    wide = Caller(two.site.people["owner"], scopes=EVERYTHING)
    assert is_problem(wide.get("activity"), 400, "invalid")["detail"] == "tenant: You have several tenants. Name one."
    assert [line["id"] for line in wide.items(f"activity?tenant={acme}")] == [line["id"] for line in lines]
    of_bert = {line["id"] for line in wide.items(f"activity?tenant={two.bert.public_id}")}
    assert of_bert - {line["id"] for line in lines}


def test_it_repeats_no_answer_that_another_token_was_given(mighty):
    two = mighty
    asked = {"tenant": two.bert.public_id, "kind": "MORE_SERVERS", "count": 1, "why": "more"}
    wide = Caller(two.site.people["owner"], scopes=EVERYTHING)
    assert wide.post("requests", asked, Idempotency_Key="k1").status_code == 201
    is_problem(two.program.post("requests", asked, Idempotency_Key="k1"), 400, "invalid")
    asked["tenant"] = two.site.arguments["portal:servers"][0]
    answers = [two.program.post("requests", asked, Idempotency_Key="k1") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()


def test_whose_role_is_taken_has_a_token_that_is_worth_nothing(mighty):
    two = mighty
    assert two.program.items("servers")
    TenantRole.objects.filter(user=two.site.people["owner"]).exclude(tenant=two.bert).delete()
    assert two.program.get("servers").status_code == 404


def test_the_door_of_provisioning_takes_it_for_no_operators(mighty):
    two = mighty
    text = two.program.headers["Authorization"].removeprefix("Token ")
    wide = Caller(two.site.people["owner"], scopes=EVERYTHING).headers["Authorization"].removeprefix("Token ")
    asked = {"hostname": "srv-001", "how": "wiped"}
    with override_settings(ROOT_URLCONF="fabricui.register_urls"):
        told = [
            two.program.client.post(
                "/register/v1/cleaned", asked, "application/json", headers={"Authorization": f"Bearer {shown}"}
            ).status_code
            for shown in (text, wide)
        ]
    assert told[0] == 403
    assert told[1] != 403
