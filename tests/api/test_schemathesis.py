"""Hostile requests to every operation, made by schemathesis: no 500, no undocumented status, header or shape.

Each is sent by an operator, an auditor and a tenant's member; with --long by everybody, and there are more of them.
What it did is undone.
"""

import os

import pytest
import schemathesis
import yaml
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from django.urls import reverse
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from people import limits
from tests.api import openapi
from tests.api.callers import EVERYTHING, Caller
from tests.people.everything import everything

LONG = bool(os.environ.get("FABRICUI_TEST_LONG"))
FEW = ("operator", "auditor", "member")
ROLES = (*FEW, "viewer", "owner", "other", "admin") if LONG else FEW
EXAMPLES = 60 if LONG else 6
# Where a tenant's member makes something; nothing else that is made is a tenant's to make.
OF_MEMBERS = {
    "/api/v1/requests", "/api/v1/requests/{id}/comments", "/api/v1/partitions", "/api/v1/staged-changes",
    "/api/v1/turns",
}  # fmt: skip
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


def operations():
    """Every operation, to be called on our own site in this process."""
    described = yaml.safe_load(openapi.DOC.read_text(encoding="utf-8"))
    schema = schemathesis.openapi.from_dict(described)
    schema.app = get_wsgi_application()
    return [result.ok() for result in schema.get_all_operations()]


def requests_of(operation, known):
    """Requests as they should be and as they should not, to ids that are there and to others."""
    ways = [operation.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
    if "{id}" in operation.path:
        ways += [operation.as_strategy(path_parameters={"id": known[operation.path]})] * 2
    return st.one_of(ways)


def real_ids(site):
    """An id that is there, by the path of the description."""
    found = {}
    for name, arguments in site.arguments.items():
        if name.startswith("api:"):
            address = reverse(name, args=arguments)
            found[address.replace(f"/{arguments[0]}", "/{id}")] = str(arguments[0])
    return found


@pytest.mark.django_db
def test_no_request_is_answered_otherwise_than_described(monkeypatch):
    monkeypatch.setattr(limits, "REQUESTS_A_MINUTE", 1_000_000)  # none of these is kept from its answer
    site = everything()
    callers = {role: Caller(site.people[role], scopes=EVERYTHING) for role in ROLES}
    known, seen, made = real_ids(site), {role: set() for role in ROLES}, {role: set() for role in ROLES}
    for operation in operations():

        @seed(8)
        @settings(
            max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=requests_of(operation, known))
        def answered(case):
            case.headers.pop("Authorization", None)
            for role, caller in callers.items():
                with transaction.atomic():
                    response = case.call(headers=caller.headers)
                    transaction.set_rollback(True)
                case.validate_response(response, checks=CHECKS)
                seen[role].add(response.status_code)
                if response.status_code in (201, 202):
                    made[role].add(case.operation.path)

        answered()
    assert {200, 202, 400, 404, 409} <= seen["operator"], seen
    assert {200, 400, 404} <= seen["member"], seen
    assert made["member"] <= OF_MEMBERS, made
    assert not made["auditor"], made
