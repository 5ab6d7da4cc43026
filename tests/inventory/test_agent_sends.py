"""The agent enrols once, keeps its secret to itself, and never asks for ever."""

import datetime
import hashlib
import ipaddress
import json
import ssl
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from inventory import agent
from tests.inventory.doors import OK, opened
from tests.inventory.trees import case, materialise


@pytest.fixture
def run(tmp_path, capsys):
    """Run the agent against a door; gives the exit status and what it said."""
    top = materialise(case("B01"), tmp_path / "infiniband")
    (tmp_path / "token").write_text("fui_enrol_x\n")

    def run(url, *options, attempts=3):
        status = agent.main(
            [
                "--url", url, "--sysfs-root", str(top), "--hostname", "srv-001", "--boot-id", "boot-1",
                "--credential-file", str(tmp_path / "state" / "credential"),
                "--enrolment-token-file", str(tmp_path / "token"),
                "--attempts", str(attempts), "--backoff-s", "0.01", "--timeout-s", "5", *options,
            ]
        )  # fmt: skip
        return status, capsys.readouterr().err

    run.credential_file = tmp_path / "state" / "credential"
    return run


def test_it_enrols_and_then_reports_with_its_own_secret(run):
    with opened((200, OK)) as door:
        assert run(door.url)[0] == 0
        enrol, report = door.requests
    secret = report["headers"]["Authorization"].removeprefix("Bearer ")
    assert enrol["path"] == "/register/v1/enrol"
    assert enrol["headers"]["Authorization"] == "Bearer fui_enrol_x"
    assert enrol["body"]["credential_digest"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in json.dumps(enrol["body"])
    assert report["path"] == "/register/v1/reports"
    assert report["body"]["ports"][0]["port_guid"] == "0x0210fa0300b10000"


def test_the_secret_is_for_its_owner_only(run):
    with opened((200, OK)) as door:
        run(door.url)
    assert stat.S_IMODE(run.credential_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(run.credential_file.parent.stat().st_mode) == 0o700
    assert [path.name for path in run.credential_file.parent.iterdir()] == ["credential"]


def test_it_enrols_once(run):
    with opened((200, OK)) as door:
        run(door.url)
        run(door.url)
        assert [request["path"][-7:] for request in door.requests] == ["1/enrol", "reports", "reports"]


def test_the_door_may_be_named_in_full(run):
    with opened((200, OK)) as door:
        assert run(door.url + "/register/v1/")[0] == 0
        assert door.requests[0]["path"] == "/register/v1/enrol"


def test_a_lost_answer_costs_no_enrolment(run):
    with opened("cut") as door:
        assert run(door.url, attempts=1)[0] == 3
        lost = door.requests[0]["body"]
    with opened((200, OK)) as door:
        assert run(door.url)[0] == 0
        assert door.requests[0]["body"] == lost


def test_it_tries_again_and_gives_up_after_its_attempts(run):
    with opened((503, {"sentence": "busy"})) as door:
        status, said = run(door.url, attempts=4)
        assert len(door.requests) == 4
    assert status == 3
    assert "answered 503: busy" in said


@pytest.mark.parametrize("trouble", ["cut", (500, {}), (429, {"sentence": "wait"}), (200, b"<html>"), (200, [1])])
def test_a_passing_trouble_is_passed(run, trouble):
    with opened(trouble, (200, OK)) as door:
        assert run(door.url)[0] == 0


def test_nobody_at_the_door_ends_in_status_3(run):
    with opened((200, OK)) as door:
        url = door.url
    assert run(url)[0] == 3


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413])
def test_a_refusal_is_taken_for_an_answer(run, status):
    with opened((status, {"error": "x", "sentence": "Create a new one."})) as door:
        code, said = run(door.url)
        assert len(door.requests) == 1
    assert code == 1
    assert "Create a new one." in said


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_it_follows_no_redirect(run, status):
    with opened((200, OK)) as elsewhere, opened((status, {"Location": elsewhere.url + "/"}, {})) as door:
        assert run(door.url)[0] == 1
        assert elsewhere.requests == []


def test_it_uses_no_proxy(run, monkeypatch):
    with opened((200, OK)) as proxy, opened((200, OK)) as door:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert run(door.url)[0] == 0
        assert proxy.requests == []


def test_pauses_grow_are_random_and_bounded(monkeypatch):
    pauses = []
    monkeypatch.setattr(agent.time, "sleep", pauses.append)
    monkeypatch.setattr(agent.random, "uniform", lambda least, most: most)
    door = agent.Door("http://127.0.0.1:1", None, 12, 2.0, 1.0)
    with pytest.raises(agent.NotReached):
        door.post("reports", "secret", {})
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_it_waits_as_long_as_the_door_asks(monkeypatch):
    pauses = []
    monkeypatch.setattr(agent.time, "sleep", pauses.append)
    monkeypatch.setattr(agent.random, "uniform", lambda least, most: most)
    with opened(
        (429, {"Retry-After": "60"}, {}),
        (503, {"Retry-After": "9999"}, {}),
        (503, {"Retry-After": "soon"}, {}),
        (200, OK),
    ) as door:
        assert agent.Door(door.url, None, 4, 2.0, 5.0).post("reports", "secret", {}) == OK
    assert pauses == [62, 300, 8]


def test_it_renews_its_secret_when_it_is_asked_to(run):
    asked = {**OK, "rotate": True}
    with opened((200, OK)) as door:
        run(door.url)
        old = json.loads(run.credential_file.read_text())["credential"]
    with opened((200, asked), (201, {})) as door:
        assert run(door.url)[0] == 0
        report, rotation = door.requests
    stored = json.loads(run.credential_file.read_text())
    assert report["headers"]["Authorization"] == rotation["headers"]["Authorization"] == f"Bearer {old}"
    assert rotation["path"] == "/register/v1/rotate"
    assert rotation["body"]["credential_digest"] == hashlib.sha256(stored["credential"].encode()).hexdigest()
    assert (stored["credential"] != old, stored["enrolled"], "next" in stored) == (True, True, False)
    assert stored["credential"] not in json.dumps(rotation["body"])


@pytest.mark.parametrize("trouble", ["cut", (401, {"sentence": "no"}), (500, {})])
def test_a_renewal_that_fails_costs_nothing_and_is_tried_with_the_same_secret(run, trouble):
    asked = {**OK, "rotate": True}
    with opened((200, OK)) as door:
        run(door.url)
        old = json.loads(run.credential_file.read_text())["credential"]
    with opened((200, asked), trouble) as door:
        assert run(door.url, attempts=1)[0] == 0
        announced = door.requests[1]["body"]
    assert json.loads(run.credential_file.read_text())["credential"] == old
    with opened((200, asked), (201, {})) as door:
        assert run(door.url)[0] == 0
        assert door.requests[1]["body"] == announced


@pytest.mark.parametrize("url", ["http://192.0.2.1:8001", "ftp://127.0.0.1", "/etc/passwd", "http://"])
def test_a_secret_is_not_sent_in_clear_over_a_wire(run, url, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(url)
    assert stopped.value.code == 2


def test_without_a_token_it_says_what_to_do(run, tmp_path):
    (tmp_path / "token").unlink()
    with opened((200, OK)) as door:
        status, said = run(door.url)
        assert door.requests == []
    assert status == 1
    assert "missing or empty" in said


def test_a_broken_credential_file_is_not_guessed_at(run):
    run.credential_file.parent.mkdir()
    run.credential_file.write_text("{")
    with opened((200, OK)) as door:
        assert run(door.url)[0] == 1
        assert door.requests == []


def certificate(name):
    """A CA that signs itself, for 127.0.0.1, as PEM: certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


def test_only_the_pinned_ca_is_trusted(run, tmp_path):
    for name in ("ours", "theirs"):
        public, private = certificate(name)
        (tmp_path / f"{name}.pem").write_bytes(public)
        (tmp_path / f"{name}.key").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ours.pem", tmp_path / "ours.key")
    with opened((200, OK), context=context) as door:
        assert run(door.url, "--ca-file", str(tmp_path / "theirs.pem"), attempts=1)[0] == 3
        assert door.requests == []
        assert run(door.url, "--ca-file", str(tmp_path / "ours.pem"))[0] == 0


@pytest.mark.parametrize("options", [[], ["--ca-file", ""]])
def test_without_a_pinned_ca_it_sends_nothing(run, options, capsys):
    with pytest.raises(SystemExit) as stopped:
        run("https://127.0.0.1:1", *options)
    assert stopped.value.code == 2
    assert "--ca-file is needed" in capsys.readouterr().err


def test_a_ca_file_that_is_not_there_is_said(run, tmp_path):
    status, said = run("https://127.0.0.1:1", "--ca-file", str(tmp_path / "none.pem"))
    assert status == 1
    assert "cannot send" in said
