"""The client against the real API: in this process, with a token of a person."""

import io
import urllib.error
from email.message import Message

import pytest
from django.test import Client

from fabricui.client import door
from fabricui.client.command_line import main
from tests.api.conftest import auditor, operator, site, tenant, tina  # noqa: F401  the same site and people

MOST_SLEEPS = 100  # the clock does not move while it sleeps here: a test that waits in vain is to end


class Answered(io.BytesIO):
    """A response as urllib gives it."""

    def __init__(self, response):
        super().__init__(response.content)
        self.status, self.headers = response.status_code, Message()
        for name, value in response.items():
            self.headers[name] = value


class InProcess:
    """In the place of urllib's opener: each request goes to Django; `asked` keeps them."""

    def __init__(self):
        self.asked, self.client = [], Client(raise_request_exception=False)
        self.before = lambda request: None

    def open(self, request, timeout):
        self.asked.append(request)
        self.before(request)
        address = request.full_url.partition("//")[2]
        headers = {name: value for name, value in request.header_items() if name.lower() != "content-type"}
        response = self.client.generic(
            request.get_method(), address[address.index("/") :], request.data or b"", content_type="application/json",
            headers=headers,
        )  # fmt: skip
        answered = Answered(response)
        if response.status_code >= 300:
            raise urllib.error.HTTPError(request.full_url, response.status_code, "", answered.headers, answered)
        return answered


class Shell:
    """Runs `fabricui …` in this process: (exit code, stdout, stderr)."""

    def __init__(self, capsys, monkeypatch, transport):
        self.capsys, self.monkeypatch, self.transport = capsys, monkeypatch, transport
        self.slept = []
        self.while_sleeping = lambda: None

    def sleep(self, seconds):
        self.slept.append(seconds)
        assert len(self.slept) < MOST_SLEEPS, "what is waited for does not come"
        self.while_sleeping()

    def as_(self, caller):
        token = "fui_none" if caller is None else caller.headers["Authorization"].removeprefix("Token ")
        self.monkeypatch.setenv("FABRICUI_TOKEN", token)
        return self

    def __call__(self, *words):
        try:
            code = main(words)
        except SystemExit as end:  # argparse
            code = end.code
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def transport(monkeypatch):
    made = InProcess()
    monkeypatch.setattr(door.urllib.request, "build_opener", lambda *handlers: made)
    return made


@pytest.fixture
def shell(capsys, monkeypatch, transport, tmp_path):
    for name in ("FABRICUI_TOKEN_FILE", "FABRICUI_CA_FILE", "FABRICUI_CONFIG", "FABRICUI_TIMEOUT_S", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FABRICUI_URL", "http://127.0.0.1:1")
    made = Shell(capsys, monkeypatch, transport)
    monkeypatch.setitem(door.Door.__init__.__kwdefaults__, "sleep", made.sleep)
    return made
