"""What the command lines say to somebody who has configured nothing yet."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from django.test import override_settings

from audit import keyring, signing
from audit import production as production_of_trail
from fabricui import command_line
from fabricui.command_line import doctor, main, why_not_up
from lab.house import House
from lab.site import Site

ROOT = Path(__file__).resolve().parents[1]


def test_up_names_the_secret_it_needs(monkeypatch):
    monkeypatch.delenv("FABRICUI_SECRET_KEY", raising=False)
    monkeypatch.delenv("FABRICUI_SECRET_KEY_FILE", raising=False)
    assert "Neither FABRICUI_SECRET_KEY_FILE nor FABRICUI_SECRET_KEY is set." in why_not_up()


@pytest.fixture
def production(settings, tmp_path, monkeypatch):
    """Settings as somebody has them who has made everything but the keys of the trail."""
    monkeypatch.setenv("FABRICUI_SECRET_KEY", "x" * 50)
    settings.DEMO = False
    settings.MFA, settings.FRESH_LOGIN_MIN = "required", 15
    settings.DATA_DIR = tmp_path / "data"
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", str(tmp_path / "data" / "db.sqlite3"))
    settings.AUDIT_KEY_FILE = settings.AUDIT_SIGNING_KEY_FILE = settings.AUDIT_PUBLIC_KEY_FILE = ""
    return settings


def make_keys():
    keyring.write({1: b"k" * 32}, is_first=True)
    signing.make(signing.path())


def test_up_demands_the_keys_of_the_trail(production, tmp_path):
    assert "FABRICUI_AUDIT_KEY_FILE is not set" in why_not_up()
    assert "FABRICUI_AUDIT_SIGNING_KEY_FILE is not set" in why_not_up()
    assert "./run manage audit make-keys" in why_not_up()
    assert not (tmp_path / "data").exists()

    production.AUDIT_KEY_FILE = str(tmp_path / "keys" / "secret")
    production.AUDIT_SIGNING_KEY_FILE = str(tmp_path / "keys" / "signing.pem")
    assert "cannot be read" in why_not_up()
    assert "signing.pem, which cannot be read (No such file or directory)" in why_not_up()

    make_keys()
    assert why_not_up() == ""

    (tmp_path / "keys" / "signing.pem").chmod(0o644)
    assert "Every account can read" in why_not_up()


@pytest.mark.parametrize(("name", "value"), [("MFA", "off"), ("FRESH_LOGIN_MIN", 0)])
def test_up_refuses_what_only_the_demo_may_leave_out(production, name, value, tmp_path):
    setattr(production, name, value)
    assert "FABRICUI_MFA=off and FABRICUI_FRESH_LOGIN_MIN=0 are for the demo" in why_not_up()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("name", "value"), [("MFA", "off"), ("FRESH_LOGIN_MIN", 0)])
def test_no_process_starts_without_a_second_factor_but_for_a_demo(
    production, name, value, tmp_path, monkeypatch, capsys
):
    """A variable alone makes no demo of a site's database: its mark lies beside a demo's."""
    started = []
    monkeypatch.setattr(command_line, "_run", lambda addresses: started.append(addresses) or 0)
    assert main(["processes"]) == 0
    setattr(production, name, value)
    assert main(["processes"]) == 1
    assert "are for the demo" in capsys.readouterr().err
    production.DEMO = True
    assert main(["processes"]) == 1
    assert len(started) == 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "this-is-a-demo").touch()
    assert main(["processes"]) == 0
    production.DEMO = False
    assert main(["processes"]) == 1


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """`python -m fabricui VERB` in a process of its own, configured as a production that lacks nothing."""
    folder = tmp_path_factory.mktemp("production")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FABRICUI_")} | {
        "FABRICUI_SECRET_KEY": "x" * 50, "FABRICUI_DATA_DIR": str(folder / "data"),
        "DATABASE_URL": f"sqlite://{folder / 'data' / 'new.sqlite3'}",
        "FABRICUI_AUDIT_KEY_FILE": str(folder / "secret"),
        "FABRICUI_AUDIT_SIGNING_KEY_FILE": str(folder / "signing.pem"),
    }  # fmt: skip
    with override_settings(
        **{name.removeprefix("FABRICUI_"): environment[name] for name in environment if "AUDIT" in name}
    ):
        make_keys()

    def command(verb, **more):
        return subprocess.run(
            [sys.executable, "-m", "fabricui", verb], cwd=ROOT, env={**environment, **more},
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    command.folder = folder
    return command


@pytest.mark.parametrize(
    ("verb", "variable", "value", "says"),
    [
        ("up", "FABRICUI_MFA", "off", "FABRICUI_MFA=off and FABRICUI_FRESH_LOGIN_MIN=0 are for the demo"),
        ("check", "FABRICUI_MFA", "off", "FABRICUI_MFA=off and FABRICUI_FRESH_LOGIN_MIN=0 are for the demo"),
        ("up", "FABRICUI_FRESH_LOGIN_MIN", "0", "FABRICUI_MFA=off and FABRICUI_FRESH_LOGIN_MIN=0 are for the demo"),
        ("up", "FABRICUI_DEMO", "1", "belongs to a demo"),
    ],
)
def test_the_command_itself_refuses_it_before_anything_is_made(command, verb, variable, value, says):
    done = command(verb, **{variable: value})
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(command.folder.glob("data/*"))


def test_what_lacks_nothing_may_start(command):
    """So that the refusals above are of what was changed, and of nothing else."""
    done = command("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_worker_that_may_not_see_the_signing_key_is_not_asked_for_it(production, tmp_path):
    production.AUDIT_PUBLIC_KEY_FILE = str(tmp_path / "signing.pem.pub")
    assert [lack.id for lack in production_of_trail.lacks()] == ["audit.W001"]


def test_keys_and_anchors_in_the_data_folder_are_told_and_do_not_stop_it(production, tmp_path):
    production.AUDIT_KEY_FILE = str(tmp_path / "data" / "secret")
    production.AUDIT_SIGNING_KEY_FILE = str(tmp_path / "data" / "signing.pem")
    production.AUDIT_ANCHOR_FILE = str(tmp_path / "data" / "anchors.jsonl")
    make_keys()
    assert why_not_up() == ""
    assert [lack.id for lack in production_of_trail.lacks()] == ["audit.W006", "audit.W006", "audit.W007"]


def test_the_keys_can_be_made_before_the_first_table(tmp_path):
    environment = {
        **os.environ, "FABRICUI_SECRET_KEY": "test", "FABRICUI_DATA_DIR": str(tmp_path),
        "FABRICUI_AUDIT_KEY_FILE": str(tmp_path / "keys" / "secret"),
        "FABRICUI_AUDIT_SIGNING_KEY_FILE": str(tmp_path / "keys" / "signing.pem"),
    }  # fmt: skip
    environment.pop("DATABASE_URL", None)
    subprocess.run([sys.executable, "manage.py", "audit", "make-keys"], cwd=ROOT, env=environment, check=True)
    assert {file.name for file in (tmp_path / "keys").iterdir()} == {"secret", "signing.pem", "signing.pem.pub"}


@pytest.mark.parametrize(
    ("tls", "verdict"),
    [("", "note TLS: FABRICUI_TLS is not 1"), ("0", "note TLS: FABRICUI_TLS is not 1"), ("1", "ok   TLS: ")],
)
def test_doctor_names_the_variable_that_mends_it(tls, verdict, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("FABRICUI_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("FABRICUI_SECRET_KEY_FILE", raising=False)
    monkeypatch.setenv("FABRICUI_SECRET_KEY", "short")
    monkeypatch.setenv("FABRICUI_TLS", tls)
    monkeypatch.setenv("FABRICUI_MFA", "required")
    monkeypatch.setenv("FABRICUI_FRESH_LOGIN_MIN", "15")
    for name in ("DATABASE_URL", "FABRICUI_AUDIT_KEY_FILE", "FABRICUI_AUDIT_SIGNING_KEY_FILE", "FABRICUI_DEMO"):
        monkeypatch.delenv(name, raising=False)
    doctor()
    *_, of_key, of_signing, of_anchors, settings, about_tls = capsys.readouterr().out.splitlines()
    assert of_key.startswith("note trail: (audit.W001) FABRICUI_AUDIT_KEY_FILE is not set")
    assert of_signing.startswith("note trail: (audit.W003) FABRICUI_AUDIT_SIGNING_KEY_FILE is not set")
    assert of_anchors.startswith("note trail: (audit.W007) The trail is anchored in ")
    assert settings.startswith("note settings: (security.W009) Your SECRET_KEY has less than 50")
    assert about_tls.startswith(verdict)


def test_manage_on_an_empty_database_says_how_to_name_another(tmp_path):
    environment = {**os.environ, "FABRICUI_DATA_DIR": str(tmp_path), "FABRICUI_SECRET_KEY": "test"}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, "manage.py", "audit", "verify"],
        cwd=ROOT, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"The database {tmp_path / 'fabricui.sqlite3'} is empty.")
    assert "Traceback" not in done.stderr


def test_migrate_makes_the_tables_of_an_empty_database(tmp_path):
    """As `./run up` calls it, with its checks: none of them may ask for what is not made yet."""
    environment = {
        **os.environ, "FABRICUI_SECRET_KEY": "test", "FABRICUI_DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite://{tmp_path / 'new.sqlite3'}",
    }  # fmt: skip
    command = [sys.executable, "manage.py", "migrate", "--no-input", "audit"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "audit.0001_initial" in done.stdout


SITE = SimpleNamespace(fabric=SimpleNamespace(servers=tuple(range(24))))


def test_the_demo_counts_the_servers_that_registered(tmp_path):
    house = House(folder=tmp_path, site=cast(Site, SITE), web_port=1, register_port=2)
    assert "24 simulated servers" in house.welcome()
    assert "do not report" not in house.welcome()
    house.silent = 1
    assert "23 simulated servers" in house.welcome()
    assert "and 1 more do not report" in house.welcome()
