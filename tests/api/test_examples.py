"""docs/api/: each command runs and is answered as its page says, and no address of the API lacks an example."""

import re
import shutil
from types import SimpleNamespace

import pytest
import yaml
from django.core.servers.basehttp import WSGIRequestHandler, WSGIServer
from django.core.wsgi import get_wsgi_application
from django.utils import timezone

from deploy.models import Rollout
from inventory.models import Port
from partitions.models import Partition
from people.models import Tenant, User
from portal.models import StorageOffer
from probes.models import IsolationCheck
from tests.api import openapi
from tests.api.callers import Caller
from tests.api.examples import Answer, as_said, blocks, curl_in, differs, pages, run
from tests.people.everything import everything

PAGES = pages()


class Quiet(WSGIRequestHandler):
    """Django's own, which writes no line for each request."""

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """The site's HTTP door on a free port, which answers when it is told to: in the test's own transaction."""
    found = WSGIServer(("127.0.0.1", 0), Quiet)
    found.set_app(get_wsgi_application())
    found.timeout = 30
    yield found
    found.server_close()


def known():
    """What the variables of the commands stand for, on a site with a row of everything."""
    site = everything()
    Tenant.objects.update(moves="ALONE")
    acme = Tenant.objects.get(slug="acme")
    for name, first in (("inference", "2"), ("training", "z")):  # which comes first in a list is drawn otherwise
        partition = Partition.objects.get(name=name)
        Partition.objects.filter(pk=partition.pk).update(public_id=first + partition.public_id[1:])
    servers = {port.hca.server.hostname: port.hca.server for port in Port.objects.exclude(hca=None)}
    ones = {
        "GUID": "ports", "SUBNET": "subnets", "LOOK": "looks", "ROLLOUT": "rollouts", "REVISION": "revisions",
        "DRIFT": "drift", "SCOPE": "probes_scopes", "RUN": "probes_runs", "CHECK": "probes_isolation",
        "REQUEST": "requests", "TURN": "turns", "SERVER": "servers",
    }  # fmt: skip
    named = {name: str(site.arguments[f"api:{one}_one"][0]) for name, one in ones.items()}
    named |= {name.upper(): Partition.objects.get(name=name).public_id for name in ("training", "inference")}
    named |= {"ACME": acme.public_id, "OTHER_SERVER": servers["srv-002"].public_id}
    olga, now = User.objects.get(username="olga"), timezone.now()
    StorageOffer.objects.create(partition=Partition.objects.get(name="storage"), words="checkpoints", by=olga, at=now)
    IsolationCheck.objects.update(state="DONE", verdict="ISOLATED", finished_at=now)
    for name, person in (("AUTH", olga), ("ACME_AUTH", site.people["member"])):
        named[name] = f"Authorization: {Caller(person).headers['Authorization']}"
    return named


def prepare(command, named):
    """What has to have happened before a person decides about a rollout."""
    act = re.search(r"/rollouts/\$ROLLOUT/(\w+)", command)
    becomes = {
        "confirm": {"confirm_within_s": 600},
        "check": {"state": "UNPROVEN", "read_back": {"moved": {named["GUID"]: [99, "ACTIVE"]}, "absent": []}},
        "release": {"state": "STUCK"},
    }
    if act is not None and act[1] in becomes:
        Rollout.objects.filter(public_id=named["ROLLOUT"]).update(**becomes[act[1]])


def learn(command, shown, named):
    """What the commands below may name of this answer."""
    body = shown.body if isinstance(shown.body, dict) else {}
    found = {
        "ETAG": shown.headers.get("etag") if shown.status == 200 and "-X" not in command else None,
        "NEW": body.get("id") if shown.status in (201, 202) else None,
        "CURSOR": body.get("next_cursor"),
        "DIGEST": body.get("digest") if "selection" in body else None,
        "LOOK": body.get("look") if "selection" in body else None,
        "SEEN": (body.get("acceptable") or {}).get("seen"),
    }
    named.update({name: value for name, value in found.items() if value})


@pytest.mark.django_db
@pytest.mark.parametrize("written", PAGES)
def test_each_command_is_answered_as_the_page_says(written, server, tmp_path, settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    env = {
        "PATH": f"{curl_in(tmp_path, found=shutil.which('curl'))}:/usr/bin:/bin", "HOME": str(tmp_path),
        "SITE": f"http://127.0.0.1:{server.server_port}",
    }  # fmt: skip
    env |= known()
    wrong = []
    for command, said in PAGES[written]:
        prepare(command, env)
        shown = run(command, server=server, env=env)
        learn(command, shown, env)
        if difference := differs(said, shown):
            wrong.append(f"{command}\n  {difference}")
    assert not wrong, "\n".join(wrong)


def asked(command):
    """The verb and the address of a command."""
    verb = re.search(r"-X (\w+)", command)
    address = re.search(r'"\$SITE(/api/v1/[^"?]+)', command)[1]
    return (verb[1] if verb else "POST" if "--json" in command else "GET").lower(), address


def test_every_block_of_a_page_is_read_as_an_example():
    assert {name: len(commands) for name, commands in PAGES.items()} == blocks()
    assert sum(blocks().values()) > 55


def test_no_address_lacks_an_example():
    described = yaml.safe_load(openapi.DOC.read_text(encoding="utf-8"))["paths"]
    there = {(verb, path) for path, verbs in described.items() for verb in verbs}
    shown = set()
    for commands in PAGES.values():
        for command, said in commands:
            verb, address = asked(command)
            fits = [path for path in described if re.fullmatch(path.replace("{id}", r"[^/]+"), address)]
            assert fits, f"{address} is no address"
            path = address if address in fits else fits[0]
            if said.status < 400:
                shown.add((verb, path))
    assert sorted(there - shown) == []


@pytest.mark.parametrize(
    ("said", "shown", "is_so"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, False), ({"a": 1, "…": "…"}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": True}, False),
        ([1, "…"], [1, 2, 3], True), ([1], [1, 2], False), ([1, 2, "…"], [1], False), ("k3…", "anything", True),
        ("k3…", None, False), ("k3…", 7, False), ("/a/k3…", "/a/xy", True), ("/a/k3…", "/b/xy", False),
        (None, "", False),
    ],
)  # fmt: skip
def test_what_counts_as_said(said, shown, is_so):
    assert as_said(said, shown) is is_so


def test_what_stands_in_for_curl_asks_the_same(server, tmp_path, settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    path = f"{curl_in(tmp_path, found=None)}:/usr/bin:/bin"
    env = {"PATH": path, "SITE": f"http://127.0.0.1:{server.server_port}", "ETAG": '"a"'}
    heard = []

    def app(environ, start):
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0)).decode()
        names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE", "HTTP_IF_MATCH")
        heard.append(SimpleNamespace(**{name: environ.get(name) for name in names}, body=body))
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", "2")])
        return [b"{}"]

    server.set_app(app)
    edit = 'curl -si -X PATCH -H "If-Match: $ETAG" --json @- "$SITE/a/b?c=d" <<END\n{"x": "$ETAG"}\nEND'
    for command in (edit, 'curl -si "$SITE/a"'):
        shown = run(command, server=server, env=env)
        assert (shown.status, shown.body) == (200, {})
        assert isinstance(shown, Answer)
    with_body, plain = heard
    assert (with_body.REQUEST_METHOD, with_body.PATH_INFO, with_body.QUERY_STRING) == ("PATCH", "/a/b", "c=d")
    assert (with_body.CONTENT_TYPE, with_body.HTTP_IF_MATCH) == ("application/json", '"a"')
    assert with_body.body == '{"x": ""a""}\n'
    assert (plain.REQUEST_METHOD, plain.body) == ("GET", "")
