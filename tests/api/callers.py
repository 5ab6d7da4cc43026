"""Caller: a program with somebody's token."""

import json
from datetime import timedelta

from django.test import Client

from audit.values import SYSTEM
from people.operations import create_token
from people.scopes import _SCOPES, scopes_of

EVERYTHING = "everything"  # for every scope that there is, whoever's the token is


class Caller:
    """Asks the API in the name of a person; `scopes` are all that the person may have unless it says others.

    With a `tenant` the token is made for that one alone.
    """

    def __init__(self, person=None, *, scopes=None, lifetime=timedelta(days=1), name="ci", tenant=None):
        self.client = Client(raise_request_exception=False)
        self.headers = {}
        self.token = None
        if person is not None:
            from fabricui import api  # noqa: F401  the rooms' scopes come with it

            wanted = [scope.name for scope in scopes_of(person)] if scopes is None else list(scopes)
            wanted = sorted(_SCOPES) if scopes == EVERYTHING else wanted
            self.token, text = create_token(
                person=person, name=name, lifetime=lifetime, actor=SYSTEM, scopes=wanted, tenant=tenant
            )
            self.headers = {"Authorization": f"Token {text}"}

    def ask(self, verb, address, body=None, *, data=None, content_type="application/json", **headers):
        """One request; `body` is sent as JSON, `data` as it is. Words of `headers` with _ for -."""
        if body is not None:
            data = json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            verb, f"/api/v1/{address}", data or "", content_type=content_type, headers={**self.headers, **named}
        )

    def get(self, address, **headers):
        return self.ask("GET", address, **headers)

    def post(self, address, body, **headers):
        return self.ask("POST", address, body, **headers)

    def items(self, address):
        """Everything on all pages of a list."""
        found, cursor = [], ""
        while cursor is not None:
            sign = "&" if "?" in address else "?"
            answer = self.get(f"{address}{sign}cursor={cursor}" if cursor else address)
            assert answer.status_code == 200, answer.content
            found += answer.json()["items"]
            cursor = answer.json()["next_cursor"]
        return found


def is_problem(answer, status, code):
    """Whether an answer is this refusal, in its one shape; fails with what it is."""
    assert answer.status_code == status, (answer.status_code, answer.content[:600])
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["code"] == code, body
    assert {"status", "code", "title", "detail", "where", "mend", "errors", "request_id"} <= set(body)
    assert body["status"] == status
    assert all(body[name] for name in ("title", "detail", "where", "mend")), body
    return body
