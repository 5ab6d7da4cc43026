"""FabricUI's own key: a file that only this account reads, changed by rename, never used otherwise."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from deploy import checks, hosts, manager_key
from deploy.errors import KeyUnusable
from remote.errors import AccessRefused


@pytest.fixture
def key(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    manager_key.make(folder / "manager")
    return folder / "manager"


def test_a_key_it_makes_is_one_that_ssh_keygen_reads(key):
    assert manager_key.complaint(str(key)) == ""
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    said = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], check=True, capture_output=True, text=True).stdout
    assert said.split()[:2] == manager_key.public_line(key).split()
    with pytest.raises(KeyUnusable, match="not there yet"):
        manager_key.make(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o666])
def test_a_key_that_others_can_read_or_write_is_not_used(key, mode):
    key.chmod(mode)
    assert f"(mode {mode:04o})" in manager_key.complaint(str(key))


def test_a_key_of_another_account_is_not_used(key, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: key.stat().st_uid + 1)
    assert "belongs to another account" in manager_key.complaint(str(key))


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_key_that_others_can_replace_is_not_used(key, mode):
    key.parent.chmod(mode)
    assert "in the place of" in manager_key.complaint(str(key))
    key.parent.chmod(mode | stat.S_ISVTX)  # as /tmp: there only the owner may
    assert manager_key.complaint(str(key)) == ""


@pytest.mark.parametrize("name", ["", "/nonexistent/key"])
def test_no_key_is_told(name):
    assert "is not there" in manager_key.complaint(name)


def test_workers_refuse_it_with_the_same_sentence_and_the_check_too(key, settings):
    settings.MANAGER_KEY_FILE = str(key)
    key.chmod(0o644)
    with pytest.raises(AccessRefused, match="rotate_manager_key"):
        hosts.NoKey(manager_key.complaint(str(key))).call("identify", timeout_s=1)
    assert [found.id for found in checks.manager_key(None)] == ["deploy.E002"]
    key.chmod(0o600)
    assert checks.manager_key(None) == []


def test_one_of_the_two_keys_always_stands_there(key, monkeypatch):
    new, first = key.with_name("new"), manager_key.public_line(key)
    manager_key.make(new)
    second = manager_key.public_line(new)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", _fail)
        with pytest.raises(KeyUnusable, match="still in use"):
            manager_key.put_in_place(new, key)
    assert manager_key.public_line(key) == first
    kept = manager_key.put_in_place(new, key)
    assert (manager_key.public_line(key), manager_key.public_line(kept)) == (second, first)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def _fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("what", ["nonsense", "rsa", "locked"])
def test_what_is_no_ed25519_key_is_named(tmp_path, what):
    file = tmp_path / "key"
    if what == "nonsense":
        file.write_text("nonsense")
    else:
        kind, phrase = ("rsa", "") if what == "rsa" else ("ed25519", "secret")
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", phrase, "-f", str(file)], check=True)
    with pytest.raises(KeyUnusable, match=r"Ed25519|passphrase"):
        manager_key.public_line(file)
