"""No secret is ever seen: not in a log, not in a table, not in an export, not on a page. Each holds a canary."""

import contextlib
import hashlib
import json
import logging

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from django.test import Client
from django.urls import reverse

from audit import keyring, signing, watch
from audit.models import Seal
from audit.values import SYSTEM
from fabricui.settings import openid_providers
from people.models import Tenant, User
from tests.conftest import PASSWORD
from tests.fabricui.canaries import Canaries, everything_logged, shown_once
from tests.fabricui.running import Running, free_port, until
from tests.inventory.reports import port, said
from tests.people.codes import code, stored_secret
from tests.people.everything import everything
from webhooks.models import Endpoint
from webhooks.operations import create_endpoint

pytestmark = pytest.mark.django_db
ENROL = r"fui_enrol_[A-Za-z0-9_-]{20,}"
HOOK = r"fui_hook_[A-Za-z0-9_-]{20,}"
TOKEN = r"fui_[A-Za-z0-9]{30,}"


@pytest.fixture
def canaries(settings):
    found = Canaries()
    settings.SECRET_KEY = found.make("django key", 60)
    settings.METRICS_TOKEN = found.make("monitoring token")
    settings.MFA_KEYS = [found.make("key of second factors")]
    secret = found.make("OIDC secret")
    settings.SOCIALACCOUNT_PROVIDERS = openid_providers("http://127.0.0.1:1", "fabricui", secret, "a dead provider")
    return found


def account(client, canaries):
    """An administrator makes an account; its person sets up a second factor, mistypes, and signs in."""
    page = client.post(reverse("console:people"), {"username": "dora", "name": "Dora", "role": "OPERATOR"})
    password = canaries.note("new password", shown_once(r"(?:[a-z2-9]{4}-){3}[a-z2-9]{4}", page))
    dora, login = Client(), reverse("account_login")
    dora.post(login, {"login": "dora", "password": password + "x"})
    dora.post(login, {"login": password, "password": "dora"})  # in the wrong field
    assert dora.post(login, {"login": "dora", "password": password}).status_code == 302
    own, change = canaries.make("own password"), reverse("account_change_password")
    dora.post(change, {"oldpassword": password, "password1": own, "password2": own + "x"})
    assert dora.post(change, {"oldpassword": password, "password1": own, "password2": own}).status_code == 302
    set_up = reverse("mfa_activate_totp")
    secret = shown_once(r"[A-Z2-7]{32}", dora.get(set_up))
    canaries.note("TOTP secret", secret)
    assert dora.post(set_up, {"code": code(secret)}).status_code == 302
    person = User.objects.get(username="dora")
    assert stored_secret(person) == secret
    dora.post(reverse("account_logout"))
    dora.post(login, {"login": "dora", "password": own})
    dora.post(reverse("mfa_authenticate"), {"code": "000000"})
    reset = client.post(reverse("console:person_password", args=[person.public_id]), {"reason": "lost"})
    canaries.note("given password", shown_once(r"(?:[a-z2-9]{4}-){3}[a-z2-9]{4}", reset))


def token_of(client, canaries):
    page = client.post(reverse("tokens"), {"name": "ci", "days": "30", "scopes": ["server:cleaned"]})
    return canaries.note("API token", shown_once(TOKEN, page))


def enrolled(client, canaries, settings):
    """A server enrols with a token from the page, reports, and rotates; programs show their tokens at the door."""
    page = client.post(reverse("console:enrolment"), {"name": "rack 1", "uses": "2", "hours": "1"})
    token = canaries.note("enrolment token", shown_once(ENROL, page))
    credential, next_one = canaries.make("server credential"), canaries.make("rotated credential")
    settings.ROOT_URLCONF = "fabricui.register_urls"
    door = Client()

    def post(name, secret, body):
        address, headers = f"/register/v1/{name}", {"Authorization": f"Bearer {secret}"}
        return door.post(address, json.dumps(body), content_type="application/json", headers=headers)

    digest = hashlib.sha256(credential.encode()).hexdigest()
    answers = [
        post("enrol", token, {"schema": 1, "hostname": "srv-100", "credential_digest": digest}),
        post("reports", credential, said(port("0x0002c903000f0001"), hostname="srv-100")),
        post("reports", credential + "x", said(hostname="srv-100")),
        post("reports", credential, {"schema": credential}),  # a secret where none belongs
        post("rotate", credential, {"schema": 1, "credential_digest": hashlib.sha256(next_one.encode()).hexdigest()}),
        post("cleaned", canaries.known["API token"], {"hostname": "srv-100", "how": "wiped"}),
        post("cleaned", canaries.known["API token"] + "x", {"hostname": "srv-100", "how": "wiped"}),
    ]
    settings.ROOT_URLCONF = "fabricui.urls"
    assert [answer.status_code < 300 for answer in answers[:5]] == [True, True, False, False, True], answers
    for answer in answers:
        canaries.look("an answer of the door", answer.content)


def webhook(client, canaries):
    """An administrator adds a webhook, and renews its secret."""
    asked = {
        "name": "on-call",
        "url": f"https://hooks.example.com/{canaries.make('path of a webhook')}",
        "kinds": ["stuck"],
    }
    page = client.post(reverse("webhooks:endpoints"), asked)
    canaries.note("webhook secret", shown_once(HOOK, page))
    renew = reverse("webhooks:secret", args=[Endpoint.objects.latest("pk").public_id])
    canaries.note("renewed webhook secret", shown_once(HOOK, client.post(renew)))


def webhook_of_a_tenant(tenant, canaries):
    """Its secret is no business of the operators', and nobody's but the tenant's."""
    url = f"https://hooks.example.com/{canaries.make('path of a tenants webhook')}"
    _, secret = create_endpoint(name="theirs", url=url, kinds=["rollout"], tenant=tenant, actor=SYSTEM)
    canaries.note("webhook secret of a tenant", secret)


def signed_trail(canaries, settings, folder):
    """The head of the trail is signed; the private key's text and bytes are the canaries."""
    settings.AUDIT_SIGNING_KEY_FILE = str(folder / "signing.pem")
    settings.AUDIT_PUBLIC_KEY_FILE, settings.AUDIT_ANCHOR_FILE = "", str(folder / "anchors.jsonl")
    signing.make(signing.path())
    pem = signing.path().read_text()
    canaries.note("signing key", pem.splitlines()[1])
    private = load_pem_private_key(pem.encode(), None)
    canaries.note("signing key in hex", private.private_bytes_raw().hex())
    watch.every_minute()
    assert Seal.objects.exists()


def walk(client, who, site, canaries):
    """Every page, fragment and export that `who` may get."""
    from tests.people import matrix

    walked = 0
    for name, verb in matrix.rows():
        if verb != "GET" or name == "account_logout":
            continue
        answer = client.get(reverse(name, args=site.arguments.get(name, [])))
        content = b"".join(answer.streaming_content) if answer.streaming and not answer.is_async else b""
        canaries.look(f"{name} for {who}", content or getattr(answer, "content", b""))
        walked += answer.status_code == 200
    for form in ("jsonl", "csv", "print"):
        answer = client.get(reverse("console:audit_export", args=[form]))
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        canaries.look(f"export {form} for {who}", content)
    return walked


def test_no_secret_is_seen_anywhere(canaries, settings, client_of, tmp_path):
    with everything_logged() as lines:
        site = everything()
        admin = client_of(site.people["admin"])
        operator = client_of(site.people["operator"])
        account(admin, canaries)
        token_of(operator, canaries)
        webhook(admin, canaries)
        webhook_of_a_tenant(Tenant.objects.earliest("pk"), canaries)
        enrolled(operator, canaries, settings)
        signed_trail(canaries, settings, tmp_path)
        canaries.note("session key", admin.session.session_key)
        for path in ("/metrics", "/readyz"):
            headers = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
            canaries.look(path, admin.get(path, headers=headers).content)
        Client().post(reverse("account_login"), {"login": "dora", "password": PASSWORD})
        with contextlib.suppress(Exception):  # the dead provider
            Client().get(reverse("openid_connect_login", args=["sso"]))
        canaries.note("key of the trail", keyring.load()[1].hex())
        walked = {
            name: walk(client_of(site.people[name]), name, site, canaries) for name in ("admin", "auditor", "owner")
        }
        logging.getLogger("a room").warning("something went wrong", exc_info=True)
    assert walked["admin"] > 40
    assert walked["auditor"] > 35
    canaries.look("the log", "\n".join(lines))
    assert canaries.look_through_tables() > 3000
    assert len(canaries.known) >= 21
    assert sorted(canaries.seen) == []


def test_the_search_sees_what_is_there(canaries, olga, client_of):
    """A canary that was left lying about is found in each of the places."""
    left = canaries.make("a secret left about")
    User.objects.filter(pk=olga.pk).update(first_name=left, role="ADMIN")
    with everything_logged() as lines:
        logging.getLogger("anywhere").debug("took %s", left)
        try:
            raise ValueError(left)
        except ValueError:
            logging.getLogger("anywhere").exception("it failed")
    canaries.look("the log", lines[0])
    canaries.look("a traceback", lines[1])
    canaries.look("a page", client_of(olga).get(reverse("console:people")).content)
    canaries.look_through_tables()
    places = {place.partition(" in ")[2] for place in canaries.seen}
    assert {"the log", "a traceback", "a page", "people_user.first_name"} <= places


def test_secrets_of_the_environment_are_not_seen_when_everything_fails(tmp_path):
    """Real processes: a broker with a password that dies, a database that never answers, keys that are not there."""
    canaries = Canaries()
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    canaries.note("manager key", key.decode().splitlines()[3])
    (tmp_path / "manager").write_bytes(key)
    for name in ("probe", "signing"):
        file = tmp_path / name
        signing.make(file)
        canaries.note(f"{name} key", file.read_text().splitlines()[1])
    broker_password = canaries.make("broker password", 32)
    running = Running(
        FABRICUI_SECRET_KEY=canaries.make("django key", 60),
        FABRICUI_METRICS_TOKEN=canaries.make("monitoring token"),
        FABRICUI_OIDC_ISSUER="http://127.0.0.1:1",
        FABRICUI_OIDC_CLIENT_ID="fabricui",
        FABRICUI_OIDC_SECRET=canaries.make("OIDC secret"),
        FABRICUI_MFA_KEYS=canaries.make("key of second factors"),
        FABRICUI_MANAGER_KEY_FILE=str(tmp_path / "manager"),
        FABRICUI_PROBE_KEY_FILE=str(tmp_path / "probe"),
        FABRICUI_AUDIT_SIGNING_KEY_FILE=str(tmp_path / "signing"),
        FABRICUI_LOG_FORMAT="json",
        FABRICUI_LOG_LEVEL="DEBUG",
    )
    broker_port = free_port()
    argv, extra = running.table["broker"]
    running.table["broker"] = (
        [*argv, "--port", str(broker_port), "--requirepass", broker_password, "--bind", "127.0.0.1"],
        extra,
    )
    running.environment["REDIS_URL"] = f"redis://:{broker_password}@127.0.0.1:{broker_port}/0"
    away = f"postgresql://fabricui:{canaries.make('database password')}@127.0.0.1:1/fabricui"
    try:
        running.python("from django.core.management import call_command\ncall_command('migrate', verbosity=0)")
        running.start("broker")
        running.start("web")
        running.start("housekeeping", "-Q", "housekeeping,observe,rollout,probe,webhooks")
        token = canaries.known["monitoring token"]
        # It has all the rooms to import, and a busy machine takes its time over that.
        until(lambda: running.words(token).get("worker:housekeeping") in ("alive", "busy"), seconds=150)
        for path in ("/", "/board/", "/account/openid/sso/login/", "/metrics", "/readyz", "/nowhere"):
            canaries.look(path, running.get(path, token)[1])
        running.kill("broker")
        until(lambda: running.words(token).get("broker") == "unreachable")
        canaries.look("/readyz without a broker", running.get("/readyz", token)[1])
        running.kill("web")
        running.start("web", DATABASE_URL=away)
        until(lambda: running.words(token).get("database") == "unreachable")
        for path in ("/", "/readyz", "/metrics", "/account/login/"):
            canaries.look(f"{path} without a database", running.get(path, token)[1])
        until(lambda: "connecting to" in running.log("housekeeping").read_text() or "onnection" in running.logs())
        canaries.look("the logs", running.logs())
    finally:
        running.stop()
    assert sorted(canaries.seen) == []


def test_lines_name_the_request_through_the_queue():
    """A page queues a look; the lines of the worker, and its events, name the click."""
    running = Running(FABRICUI_LOG_FORMAT="json", FABRICUI_LOG_LEVEL="INFO")
    try:
        running.python("from django.core.management import call_command\ncall_command('migrate', verbosity=0)")
        running.start("broker")
        running.start("observe")
        running.python(QUEUES_A_LOOK)
        lines = until(lambda: [line for line in json_lines(running, "observe") if line.get("request") == "c0ffee"])
        assert lines[0]["logger"].startswith(("deploy", "celery"))
    finally:
        running.stop()


QUEUES_A_LOOK = """
import time
from django.utils import timezone
from audit import nudge
from audit.request_id import request_id
from deploy.models import Observation
from inventory.operations import create_subnet
from audit.models import Seal
from audit.values import SYSTEM
subnet = create_subnet(name="lab", actor=SYSTEM)
look = Observation.objects.create(subnet=subnet, why="plan", requested_at=timezone.now())
with request_id("c0ffee"):
    nudge.task("deploy.tasks.observe", {"observation_id": look.pk})
    nudge.task("deploy.tasks.watch", {"subnet_id": 4711})
deadline = time.monotonic() + 20
while nudge._waiting or not nudge._sent_at:
    assert time.monotonic() < deadline
    time.sleep(0.05)
"""


def json_lines(running, name):
    return [json.loads(line) for line in running.log(name).read_text().splitlines() if line.startswith("{")]
