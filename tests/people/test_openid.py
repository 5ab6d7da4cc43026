"""Signing in with a real OpenID provider, over HTTP on loopback."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from audit.actions import Action
from audit.models import Event
from fabricui import environment
from fabricui.settings import openid_providers
from people.models import User
from tests.people.codes import code, set_up
from tests.people.openid_provider import CLIENT_ID, PASSWORD, SECRET

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.people.site")]

ROOT = Path(__file__).resolve().parents[2]
LOGIN, CALLBACK = "/account/sso/sso/login/", "/account/sso/sso/callback/"


class Provider:
    """The running provider, and what it does with people at the moment."""

    def __init__(self, folder, port):
        self.folder, self.origin = folder, f"http://127.0.0.1:{port}"
        self.be()

    def be(self, *, wrong="", **groups):
        """Put people into groups, and do `wrong` what a provider should not."""
        (self.folder / "groups.json").write_text(json.dumps(groups))
        (self.folder / "broken").write_text(wrong)

    def visit(self, url, username="ona"):
        """What a browser does there: go to the login page, sign in, and come back with a code; returns that address."""
        browser = requests.Session()
        form = browser.get(url, timeout=10)
        assert form.url.startswith(f"{self.origin}/login/"), form.url
        hidden = dict(re.findall(r'name="(csrfmiddlewaretoken|next)" value="([^"]*)"', form.text))
        hidden["next"] = hidden["next"].replace("&amp;", "&")
        answer = browser.post(
            form.url, {**hidden, "username": username, "password": PASSWORD}, timeout=10, allow_redirects=False
        )
        back = browser.get(self.origin + answer.headers["Location"], timeout=10, allow_redirects=False)
        return back.headers["Location"]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("provider")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.people.openid_provider", str(folder), f"http://testserver{CALLBACK}"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    port = process.stdout.readline().strip()
    assert port.isdecimal(), "the provider did not start; it says why above"
    yield Provider(folder, port)
    process.stdin.close()
    process.wait(timeout=20)
    process.stdout.close()


@pytest.fixture
def provider(running, settings):
    settings.OIDC_ISSUER, settings.OIDC_NAME = f"{running.origin}/o", "Acme SSO"
    settings.SOCIALACCOUNT_PROVIDERS = openid_providers(settings.OIDC_ISSUER, CLIENT_ID, SECRET, "Acme SSO")
    running.be()
    return running


@pytest.fixture
def by_claim(settings):
    settings.OIDC_ROLE_CLAIM = "groups"
    settings.OIDC_ROLES = {"fabric-ops": "operator", "fabric-admins": "admin", "reviewers": "auditor"}


def sign_in(client, provider, username="ona", query=""):
    away = client.get(LOGIN + query)
    assert away.status_code == 302, away.content.decode()
    return client.get(provider.visit(away.url, username).removeprefix("http://testserver"))


def recorded(action):
    return list(Event.objects.filter(action=action).order_by("number"))


def test_the_login_page_offers_it_only_where_it_is_configured(client, settings, provider):
    assert "Sign in with Acme SSO" in client.get("/account/login/?next=/people/").content.decode()
    assert f"{LOGIN}?next=/people/" in client.get("/account/login/?next=/people/").content.decode()
    settings.OIDC_ISSUER, settings.SOCIALACCOUNT_PROVIDERS = "", openid_providers("", "", "", "")
    assert "Sign in with" not in client.get("/account/login/").content.decode()
    assert client.get(LOGIN).status_code == 404
    assert client.get(CALLBACK).status_code == 404


def test_an_identity_is_never_joined_to_somebody_who_is_signed_in(client, provider, olga):
    client.force_login(olga)
    assert sign_in(client, provider, query="?process=connect").status_code == 502
    assert not SocialAccount.objects.exists()
    assert "cannot be joined" in recorded(Action.PERSON_LOGIN_FAILED)[-1].reason


def test_a_first_login_makes_a_person_without_a_role(client, provider):
    away = client.get(LOGIN).url
    assert "code_challenge_method=S256" in away
    assert "state=" in away
    response = sign_in(client, provider, query="?next=/people/")
    assert (response.status_code, response.url) == (302, "/people/")
    assert client.get("/people/").status_code == 200
    assert client.get("/reviewers/").status_code == 404

    person = User.objects.get()
    assert (person.username, str(person), person.role, person.email) == ("ona", "Ona Petrauskaitė", "NONE", "")
    assert not person.has_usable_password()
    (created,), (login,) = recorded(Action.PERSON_CREATE), recorded(Action.PERSON_LOGIN)
    assert (created.reason, created.after["role"]) == ("first login with Acme SSO", "NONE")
    assert login.after == {"address": "127.0.0.1", "by": ["socialaccount"]}
    stored = str(list(Event.objects.values()))
    assert SECRET not in stored
    assert PASSWORD not in stored

    sign_in(Client(), provider)
    assert User.objects.count() == 1
    assert len(recorded(Action.PERSON_LOGIN)) == 2


def test_a_role_that_an_administrator_gave_stays(client, provider):
    sign_in(client, provider)
    User.objects.update(role=User.Role.AUDITOR)
    again = Client()
    sign_in(again, provider)
    assert again.get("/reviewers/").status_code == 200


def test_a_configured_claim_gives_the_role_at_each_login_and_takes_it(client, provider, by_claim):
    provider.be(ona=["people", "reviewers", "fabric-ops"])
    sign_in(client, provider)
    assert User.objects.get().role == "OPERATOR"  # of several the strongest
    assert client.get("/operators/").status_code == 200

    provider.be(ona="reviewers")
    again = Client()
    sign_in(again, provider)
    assert [again.get(page).status_code for page in ("/operators/", "/reviewers/")] == [404, 200]
    assert client.get("/reviewers/").status_code == 302  # the session with the old role is over
    provider.be()
    last = Client()
    sign_in(last, provider)
    assert last.get("/reviewers/").status_code == 404
    assert [(event.before["role"], event.after["role"]) for event in recorded(Action.PERSON_ROLE)] == [
        ("OPERATOR", "AUDITOR"), ("AUDITOR", "NONE"),
    ]  # fmt: skip
    assert recorded(Action.PERSON_ROLE)[0].reason == "the claim groups of the provider"


def test_the_only_administrator_is_not_unmade_by_a_claim(client, provider, by_claim):
    provider.be(ona=["fabric-admins"])
    sign_in(client, provider)
    provider.be()
    response = sign_in(Client(), provider)
    assert response.status_code == 502
    assert User.objects.get().role == "ADMIN"


def test_a_local_account_of_the_same_name_is_not_taken_over(olga, client, provider):
    sign_in(client, provider, "olga")
    stranger = User.objects.exclude(pk=olga.pk).get()
    assert (stranger.username, stranger.role) == ("olga-2", "NONE")
    assert client.get("/operators/").status_code == 404


def test_an_operator_from_there_owes_the_second_factor_too(client, provider, by_claim, settings):
    settings.MFA = "required"
    provider.be(ona=["fabric-ops"])
    sign_in(client, provider)
    assert client.get("/operators/").url == "/account/second-factor/set-up/"
    set_up(User.objects.get())
    again = Client()
    assert sign_in(again, provider).url == "/account/login/code/"
    assert again.get("/people/").status_code == 302
    assert again.post("/account/login/code/", {"code": code()}).status_code == 302
    assert again.get("/operators/").status_code == 200
    assert recorded(Action.PERSON_LOGIN)[-1].after["by"] == ["socialaccount", "totp"]


def test_a_closed_account_stays_closed(client, provider):
    sign_in(client, provider)
    User.objects.update(is_active=False)
    again = Client()
    sign_in(again, provider)
    assert again.get("/people/").status_code == 302


WRONG_IDENTITIES = [
    "another nonce", "no nonce", "another audience", "several audiences", "another party", "identity of another issuer",
    "identity that is over", "no end", "unsigned", "a secret as its key",
]  # fmt: skip


@pytest.mark.parametrize("wrong", ["another person", "nonsense", "other keys", *WRONG_IDENTITIES])
def test_a_provider_that_says_wrong_things_signs_nobody_in(client, provider, wrong):
    away = client.get(LOGIN).url
    provider.be(wrong=wrong)
    response = client.get(provider.visit(away).removeprefix("http://testserver"))
    assert response.status_code == 502
    assert "You are not signed in" in response.content.decode()
    assert client.get("/people/").status_code == 302
    assert not User.objects.exists()
    assert len(recorded(Action.PERSON_LOGIN_FAILED)) == 1


@pytest.mark.parametrize("wrong", ["another issuer", "no description"])
def test_a_provider_that_is_not_the_configured_one_is_not_gone_to(client, provider, wrong):
    provider.be(wrong=wrong)
    assert client.get(LOGIN).status_code == 502
    assert "description" in recorded(Action.PERSON_LOGIN_FAILED)[0].reason


def test_a_provider_that_is_down_is_told_so(client, provider, settings):
    settings.SOCIALACCOUNT_PROVIDERS = openid_providers("http://127.0.0.1:1/o", CLIENT_ID, SECRET, "Acme SSO")
    assert client.get(LOGIN).status_code == 502
    assert client.get(LOGIN).status_code == 502
    assert len(recorded(Action.PERSON_LOGIN_FAILED)) == 1  # one a minute and address


def test_an_answer_that_nobody_asked_for_signs_nobody_in(client, provider):
    back = provider.visit(client.get(LOGIN).url).removeprefix("http://testserver")
    victim = Client()
    assert victim.get(back).status_code == 502  # a code with the state of another session
    assert victim.get("/people/").status_code == 302
    assert client.get(CALLBACK + "?error=access_denied").status_code == 502
    assert client.get(back + "x").status_code == 502
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 502  # a code works once


def test_a_code_that_was_given_in_another_session_signs_nobody_in(client, provider):
    """Somebody got hold of a code before it was shown, and brings it to a login of their own (RFC 9700, 4.5)."""
    stolen = provider.visit(client.get(LOGIN).url)
    thief = Client()
    own = parse_qs(urlsplit(thief.get(LOGIN).url).query)
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    assert thief.get(f"{CALLBACK}?{urlencode({'code': code, 'state': own['state'][0]})}").status_code == 502
    assert thief.get("/people/").status_code == 302
    assert not User.objects.exists()


def test_each_login_has_its_own_state_challenge_and_nonce(client, provider):
    asked = [parse_qs(urlsplit(client.get(LOGIN).url).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        first, second = (one[name] for one in asked)
        assert len(first) == len(second) == 1
        assert first != second, name
        assert len(first[0]) >= 16


def test_a_stolen_code_meets_the_nonce_even_where_a_provider_ignores_pkce(client, provider):
    """The code is taken with the verifier of the session it belongs to, and the identity is still of another login."""
    stolen = parse_qs(urlsplit(provider.visit(client.get(LOGIN).url)).query)["code"][0]
    ((stashed, *_),) = client.session["socialaccount_states"].values()
    thief = Client()
    state = parse_qs(urlsplit(thief.get(LOGIN).url).query)["state"][0]
    session = thief.session
    session["socialaccount_states"][state][0]["pkce_code_verifier"] = stashed["pkce_code_verifier"]
    session.save()
    assert thief.get(f"{CALLBACK}?{urlencode({'code': stolen, 'state': state})}").status_code == 502
    assert "another login" in recorded(Action.PERSON_LOGIN_FAILED)[0].reason
    assert not User.objects.exists()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_start_a_login(client, provider, site):
    response = client.get(LOGIN, headers={"Sec-Fetch-Site": site})
    assert response.url.startswith("/account/login/")


def test_nobody_is_sent_elsewhere_after_it(client, provider):
    assert sign_in(client, provider, query="?next=https://elsewhere.example/").url == "/"


@pytest.mark.parametrize("value", ["ops", "ops=king", "=operator", "ops=operator,reviewers"])
def test_groups_that_give_no_role_are_refused_at_the_start(monkeypatch, value):
    monkeypatch.setenv("GROUPS", value)
    with pytest.raises(environment.BadEnvironment, match="GROUPS"):
        environment.pairs("GROUPS", "", allowed=("operator",))


def test_a_group_may_hold_an_equals_sign(monkeypatch):
    monkeypatch.setenv("GROUPS", "cn=ops=operator, reviewers=operator")
    found = environment.pairs("GROUPS", "", allowed=("operator",))
    assert found == {"cn=ops": "operator", "reviewers": "operator"}
