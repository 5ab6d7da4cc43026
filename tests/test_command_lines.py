"""What the command lines say to somebody who has configured nothing yet."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fabricui.command_line import doctor, why_not_up
from lab.house import House
from lab.site import Site

ROOT = Path(__file__).resolve().parents[1]


def test_up_names_the_secret_it_needs(monkeypatch):
    monkeypatch.delenv("FABRICUI_SECRET_KEY", raising=False)
    monkeypatch.delenv("FABRICUI_SECRET_KEY_FILE", raising=False)
    assert "Neither FABRICUI_SECRET_KEY_FILE nor FABRICUI_SECRET_KEY is set." in why_not_up()


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
    monkeypatch.delenv("DATABASE_URL", raising=False)
    doctor()
    *_, settings, about_tls = capsys.readouterr().out.splitlines()
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


SITE = SimpleNamespace(fabric=SimpleNamespace(servers=tuple(range(24))))


def test_the_demo_counts_the_servers_that_registered(tmp_path):
    house = House(folder=tmp_path, site=cast(Site, SITE), web_port=1, register_port=2)
    assert "24 simulated servers" in house.welcome()
    assert "do not report" not in house.welcome()
    house.silent = 1
    assert "23 simulated servers" in house.welcome()
    assert "and 1 more do not report" in house.welcome()
