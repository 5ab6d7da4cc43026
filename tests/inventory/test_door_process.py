"""The door as it is run: uvicorn, the commands, the real agent on the oldest Python here."""

import contextlib
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.inventory.test_agent import AGENT, old_python
from tests.inventory.trees import case, materialise

ROOT = Path(__file__).resolve().parents[2]


# One process for all of it: starting Django is what these commands cost. It prints the tokens, one a line.
PREPARE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, skip_checks=True)
call_command("create_subnet", "lab", verbosity=0)
for rack, uses in (("rack 1", "2"), ("rack 2", "2"), ("rack 3", "1"), ("rack 4", "1")):
    call_command("enrolment_token", "lab", rack, "--uses", uses)
"""


class Site:
    """A database of its own, and the door in front of it."""

    tokens: dict[str, str]  # by rack

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite://{folder / 'door.sqlite3'}",
            "FABRICUI_DATA_DIR": str(folder),
            "FABRICUI_LISTENER": "register",
            "FABRICUI_REGISTRATION_TRUST": "enrolled",
            "FABRICUI_MANAGEMENT_NETWORKS": "127.0.0.1/32",
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments, "--skip-checks"]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def agent(self, hostname: str, tree: Path, *options: str) -> subprocess.CompletedProcess:
        command = [
            old_python() or "/usr/bin/python3", str(AGENT), "--url", f"http://127.0.0.1:{self.port}",
            "--sysfs-root", str(tree), "--hostname", hostname, "--attempts", "3", "--backoff-s", "0.1",
            "--enrolment-token-file", str(self.folder / "token"),
            "--credential-file", str(self.folder / hostname / "credential"), *options,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def count(self, table: str) -> int:
        return self.rows(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608  a literal below

    def rows(self, statement: str, *values: object) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.folder / "door.sqlite3", timeout=20)) as database, database:
            return database.execute(statement, values).fetchall()

    def post(self, name: str, body: bytes, secret: str, source: str = "127.0.0.1") -> tuple[int, str]:
        """The status and the error word of an answer to a request from `source`."""
        door = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(source, 0))
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret}"}
        with contextlib.closing(door):
            door.request("POST", f"/register/v1/{name}", body, headers)
            answer = door.getresponse()
            return answer.status, json.loads(answer.read()).get("error", "")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    found = Site(tmp_path_factory.mktemp("door"))
    environment = found.environment | {"DJANGO_SETTINGS_MODULE": "fabricui.settings"}
    command = [sys.executable, "-c", PREPARE]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    tokens = [line for line in done.stdout.splitlines() if line.startswith("fui_enrol_")]
    found.tokens = {f"rack {number}": token for number, token in enumerate(tokens, 1)}
    assert len(found.tokens) == 4, done.stdout
    (found.folder / "token").write_text(found.tokens["rack 1"])
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "fabricui.asgi:application", "--port", str(found.port), "--no-proxy-headers",
         "--http", "h11"],
        cwd=ROOT, env=found.environment, stdout=subprocess.DEVNULL, stderr=(found.folder / "log").open("wb"),
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", found.port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, "uvicorn ended"
                assert time.monotonic() < deadline, "uvicorn does not listen"
                time.sleep(0.05)
        yield found
    finally:
        process.kill()
        process.wait()


def test_a_server_boots_and_is_there(site, tmp_path):
    tree = materialise(case("B02"), tmp_path / "infiniband")
    first = site.agent("srv-001", tree)
    assert first.returncode == 0, first.stderr
    assert "mlx4_0 port 1 0x0210fa0300b20001: new" in first.stderr
    assert "mlx4_0 port 2 None: ethernet. Ethernet ports are listed" in first.stderr
    again = site.agent("srv-001", tree)
    assert "0x0210fa0300b20001: unchanged" in again.stderr
    spoof = site.agent("srv-002", tree)
    assert spoof.returncode == 0
    assert "0x0210fa0300b20001: conflict. Port 0x0210fa0300b20001 is registered to another server" in spoof.stderr
    known = site.count("inventory_server")
    third = site.agent("srv-003", tree)
    assert third.returncode == 1
    assert "The enrolment token is used up" in third.stderr
    assert site.count("inventory_server") == known  # others of this file may have enrolled one
    assert site.manage("revoke_server", "lab", "srv-001", "--reason", "stolen").startswith("srv-001: 1 credential")
    refused = site.agent("srv-001", tree)
    assert refused.returncode == 1
    assert "was revoked" in refused.stderr


@pytest.mark.parametrize("chunked", [False, True])
def test_50_mb_are_refused_and_the_door_stays_open(site, chunked):
    rows = site.count("inventory_server")
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    body = (b" " * 100_000 for _ in range(500))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer x"}
    if not chunked:
        headers["Content-Length"] = "50000000"
    connection.request("POST", "/register/v1/reports", body, headers, encode_chunked=chunked)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]) == (413, "too_large")
    connection.close()
    other = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    other.request("POST", "/register/v1/reports", b"{}", {"Content-Type": "application/json"})
    assert other.getresponse().status == 401
    other.close()
    assert site.count("inventory_server") == rows


def test_headers_without_end_are_cut_off(site):
    """What a header may hold is bounded before anything of ours sees it: a server must not fill the door's memory."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as raw:
        raw.sendall(b"POST /register/v1/reports HTTP/1.1\r\nHost: door\r\nX-Much: ")
        sent = 0
        try:
            while sent < 8_000_000:
                sent += raw.send(b"a" * 65_536)
            answer = raw.recv(64)
        except ConnectionError:
            answer = b""
    assert sent < 8_000_000 or answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(("listener", "kind"), [("register", "BodyLimit"), ("web", "ApiBodyLimit")])
def test_bodies_are_bounded_before_django_reads_them(site, listener, kind):
    code = "import fabricui.asgi; print(type(fabricui.asgi.application).__name__)"
    environment = site.environment | {"FABRICUI_LISTENER": listener}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == kind, done.stderr


def test_bad_input_is_refused_logged_and_audited_and_changes_nothing(site):
    token, expired, used = (site.tokens[f"rack {number}"] for number in (2, 3, 4))
    site.rows("UPDATE inventory_enrolmenttoken SET expires_at = '2020-01-01 00:00:00' WHERE name = 'rack 3'")

    def enrolment(hostname: str, digit: str) -> bytes:
        return json.dumps({"schema": 1, "hostname": hostname, "boot_id": "b", "credential_digest": digit * 64}).encode()

    assert site.post("enrol", enrolment("srv-041", "a"), used) == (201, "")
    tables = ("server", "hca", "port", "portconflict", "servercredential", "enrolmenttoken")
    state = [site.rows(f"SELECT * FROM inventory_{table}") for table in tables]  # noqa: S608
    tries = [
        ("enrol", enrolment("srv-042", "b"), used, "127.0.0.1", 401, "token_refused"),  # replayed
        ("enrol", enrolment("srv-042", "b"), expired, "127.0.0.1", 401, "token_refused"),
        ("enrol", enrolment("srv-042", "b"), token, "127.0.0.5", 403, "not_a_management_network"),
        ("enrol", b'[{"a": null}, 1e9, "\\ud800"]', token, "127.0.0.1", 400, "malformed"),
        ("enrol", b" " * 50_000_000, token, "127.0.0.1", 413, "too_large"),
    ]
    for name, body, secret, source, status, error in tries:
        events = site.count("audit_event")
        try:
            assert site.post(name, body, secret, source) == (status, error)
        except (BrokenPipeError, ConnectionResetError):
            assert status == 413  # the door does not read on, which a client may meet while it still sends
        log = (site.folder / "log").read_text()
        assert log.count(f" {status}: ") >= 1
        assert site.count("audit_event") - events in (0, 1)  # one a source and minute
    assert site.rows("SELECT count(*) FROM audit_event WHERE actor_key = '127.0.0.5'") == [(1,)]
    assert [site.rows(f"SELECT * FROM inventory_{table}") for table in tables] == state  # noqa: S608
