"""Every address and verb as everybody, against the expected matrix (matrix.txt)."""

from contextlib import contextmanager

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from fabricui.settings import openid_providers
from tests.api.callers import EVERYTHING, Caller
from tests.people import matrix
from tests.people.everything import everything
from tests.people.matrix import PERSONAS


@contextmanager
def undone():
    """Whatever is done inside, the next address finds everything as before."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def ask(client, name, verb, site):
    """One request; the cookies are as before afterwards, also when it signed the person out."""
    address = reverse(name, args=site.arguments.get(name, []))
    cookies = client.cookies.output(header="")
    with undone():
        if name.startswith("api:"):
            return client.program.ask(verb, address.removeprefix("/api/v1/"), {})
        response = client.generic(verb, address) if verb != "POST" else client.post(address, site.forms.get(name, {}))
    client.cookies.clear()
    client.cookies.load(cookies)
    return response


def answer(client, name, verb, site):
    """What one request got, in the words of the matrix; an error of ours fails at once."""
    response = ask(client, name, verb, site)
    assert response.status_code != 403 or not name.startswith("api:"), (
        name,
        verb,
        "the token was to be for everything",
    )
    may_fail = name.startswith("openid_connect") or name == "readyz"  # whose answer without workers is 503
    assert response.status_code < 500 or may_fail, (name, verb, response.status_code)
    if response.get("Location", response.get("HX-Redirect", "")).startswith("/account/login/?"):
        return "login"
    return {401: "401", 403: "no", 404: "-", 405: "405"}.get(response.status_code, "yes")


def test_every_address_has_a_row_and_every_row_an_address():
    names = set(matrix.addresses())
    known = {name for name, _ in matrix.rows()}
    assert sorted(names - known) == [], "put rows for them into tests/people/matrix.txt"
    assert sorted(known - names) == []


@pytest.mark.django_db
@pytest.mark.parametrize("persona", PERSONAS)
def test_everybody_gets_what_the_matrix_says(persona, client_of, settings):
    settings.SOCIALACCOUNT_PROVIDERS = openid_providers("http://127.0.0.1:1", "fabricui", "secret", "a dead provider")
    site = everything()
    client = Client() if persona == "anonymous" else client_of(site.people[persona])
    client.program = Caller(site.people.get(persona), scopes=EVERYTHING)
    expected = matrix.rows()
    wrong = []
    for name in matrix.addresses():
        for verb in matrix.verbs_of(name):
            row = expected.get((name, verb))
            wanted = row.answers[PERSONAS.index(persona)] if row else "405"
            got = answer(client, name, verb, site)
            if row is None and name.startswith("api:") and got in ("-", "401"):
                continue  # whoever may not see what is there does not learn which verbs it has
            if got != wanted:
                wrong.append(f"{name} {verb}: {got} instead of {wanted}")
        if (
            persona == "admin"
            and not name.startswith("api:")
            and ask(client, name, "DELETE", site).status_code not in (302, 404, 405)
        ):
            wrong.append(f"{name} takes DELETE")
    assert not wrong, f"{persona}:\n" + "\n".join(wrong)


def test_the_page_of_the_docs_is_made_from_the_matrix():
    assert matrix.DOC.read_text(encoding="utf-8") == matrix.page(), "run: python -m tests.people.matrix"


@pytest.mark.parametrize("line", ["console:home GET yes", "console:home PATCH" + " yes" * 8, "x GET" + " maybe" * 8])
def test_a_line_that_says_nothing_is_refused(line, tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "DATA", tmp_path / "matrix.txt")
    matrix.DATA.write_text(line)
    with pytest.raises(ValueError, match=r"matrix\.txt"):
        matrix.rows()
