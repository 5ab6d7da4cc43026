"""docs/openapi.yaml is what the code does, and says it of every address."""

import pytest
import yaml

from fabricui import api
from people.api.problems import CODES
from tests.api import openapi


@pytest.fixture(scope="module")
def described():
    return yaml.safe_load(openapi.DOC.read_text(encoding="utf-8"))


def test_the_file_is_what_the_code_says():
    assert openapi.DOC.read_text(encoding="utf-8") == openapi.text(), "run: python -m tests.api.openapi"


def test_every_address_and_verb_is_described(described):
    there = {
        (f"/api/v1/{str(one.pattern).replace('<str:id>', '{id}')}", verb)
        for one in api.urlpatterns
        for verb in one.callback.actions
        if verb != "head"
    }
    said = {(path, verb) for path, verbs in described["paths"].items() for verb in verbs}
    assert there == said


def test_it_says_of_every_refusal_what_it_looks_like(described):
    for path, verbs in described["paths"].items():
        for verb, one in verbs.items():
            refusals = {int(status): said for status, said in one["responses"].items() if int(status) >= 400}
            assert {400, 401, 403, 404, 503} <= set(refusals), (path, verb)
            for said in refusals.values():
                (content,) = said["content"].items()
                assert content == ("application/problem+json", {"schema": {"$ref": "#/components/schemas/Problem"}})
            if "If-Match" in [parameter["name"] for parameter in one.get("parameters", ())]:
                assert {412, 428} <= set(refusals), (path, verb)
            if "Idempotency-Key" in [parameter["name"] for parameter in one.get("parameters", ())]:
                assert 422 in refusals, (path, verb)


def test_every_post_takes_a_key_and_every_edit_a_match(described):
    for path, verbs in described["paths"].items():
        for verb, one in verbs.items():
            named = {parameter["name"] for parameter in one.get("parameters", ())}
            assert ("Idempotency-Key" in named) == (verb == "post"), path
            assert ("If-Match" in named) == (verb in ("patch", "delete")), path


def test_it_is_openapi_3_1(described):
    assert described["openapi"] == "3.1.0"
    assert CODES
