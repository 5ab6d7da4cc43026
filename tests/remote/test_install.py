"""install: one documented command that prepares a manager host, as root or as an ordinary user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from remote.local import LocalShell
from remote.manager_host import ManagerHost
from tests.remote.sites import PORT_GUID, SOURCES, Host, install, sha256


def arguments(root: Path, key_file: Path, **changes: str) -> list[str]:
    values = {
        "--to": f"{root}/host", "--partitions": f"{root}/partitions.conf", "--list": f"{root}/l", "--log": f"{root}/g",
        "--port-guid": PORT_GUID, "--authorized-key": f"{key_file}.pub",
    }  # fmt: skip
    values |= {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return [word for pair in values.items() for word in pair]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SOURCES / "install", *words], capture_output=True, text=True, check=False)


def test_prints_the_digests_and_the_line_for_authorized_keys(prepared: Host, key_file: Path) -> None:
    assert prepared.wrapper_digest == sha256((SOURCES / "fabricui-host").read_bytes())
    assert prepared.reader_digest == sha256((SOURCES / "fabricui-tables").read_bytes())
    public = key_file.with_suffix(".pub").read_text().strip()
    assert prepared.authorized_keys == f'restrict,command="{prepared.conf}/fabricui-host {prepared.conf}" {public}'


def test_twice_is_once(prepared: Host, key_file: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {
            path.name: (path.stat().st_mode, path.read_bytes()) for path in prepared.conf.iterdir() if path.is_file()
        }

    before = state()
    assert install(prepared.conf.parent, key_file.with_suffix(".pub")) == prepared
    assert state() == before
    assert sorted(path.name for path in prepared.conf.iterdir()) == [
        "fabricui-host",
        "fabricui-tables",
        "host.env",
        "run",
    ]


def test_lines_of_host_env_arrive_as_they_were_written(tmp_path: Path, key_file: Path) -> None:
    odd = 'it\'s $HOME `id` "x" = y'
    host = install(tmp_path, key_file.with_suffix(".pub"), "--host-env-line", f"MKEY={odd}", "--host-env-line", "A=1")
    host.replace_reader('printf "%s\\n" "$MKEY" "$A"')
    environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": "sm_state"}
    done = subprocess.run([host.wrapper, host.conf], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{odd}\n1\n"


def test_registers_the_file_behind_a_symbolic_link(tmp_path: Path, key_file: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "etc" / "partitions.conf").symlink_to(tmp_path / "real" / "partitions.conf")
    host = install(tmp_path, key_file.with_suffix(".pub"))
    manager = host.locally()
    manager.stage(b"x", digest=sha256(b"x"))
    manager.place(digest=sha256(b"x"), generation=1)
    assert (tmp_path / "real" / "partitions.conf").read_bytes() == b"x"
    assert (tmp_path / "etc" / "partitions.conf").is_symlink()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"port_guid": "0x0210fa10000a000g"}, "is no port GUID"),
        ({"port_guid": "0x00210fa10000a00001"}, "is no port GUID"),
        ({"to": "relative/path"}, "not an absolute path"),
        ({"to": "/with blank"}, "characters other than"),
        ({"list": '/a"b'}, "characters other than"),
        ({"partitions": "/no-such-folder/partitions.conf"}, "does not exist"),
        ({"authorized_key": "/no-such-key.pub"}, "cannot be read"),
        ({"authorized_key": "/etc/passwd"}, "no ssh-ed25519 public key"),
        ({"python": "/no-such-python"}, "is missing"),
        ({"host_env_line": "no assignment"}, "no line for host.env"),
        ({"host_env_line": "A-B=1"}, "no name for host.env"),
        ({"log": ""}, "--log is missing"),
        ({"unknown": "x"}, "is no option"),
    ],
)
def test_refuses_with_a_sentence_and_writes_nothing(
    tmp_path: Path, key_file: Path, changes: dict[str, str], sentence: str
) -> None:
    done = run(arguments(tmp_path, key_file, **changes))
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "host" / "host.env").exists()


def test_the_sudo_variant_prints_its_two_lines(tmp_path: Path, key_file: Path) -> None:
    done = run([*arguments(tmp_path, key_file), "--sudo"])
    assert f'command="sudo -n {tmp_path}/host/fabricui-host {tmp_path}/host"' in done.stdout
    assert f'Defaults!{tmp_path}/host/fabricui-host env_keep += "SSH_ORIGINAL_COMMAND"' in done.stdout
    assert f"ACCOUNT ALL=(root) NOPASSWD: {tmp_path}/host/fabricui-host {tmp_path}/host" in done.stdout


@pytest.fixture
def ordinary() -> Iterator[tuple[int, Path]]:
    """An account that is not root, and a folder of its own."""
    uid = os.geteuid() or 65534
    root = Path(tempfile.mkdtemp(prefix="fabricui-ordinary-"))
    os.chown(root, uid, -1)
    root.chmod(0o755)
    yield uid, root
    shutil.rmtree(root)


def test_works_for_an_ordinary_user(ordinary: tuple[int, Path], key_file: Path) -> None:
    uid, root = ordinary
    for name in ("install", "fabricui-host", "fabricui-tables"):
        shutil.copy(SOURCES / name, root / name)
    shutil.copy(key_file.with_suffix(".pub"), root / "key.pub")
    words = arguments(root, root / "key")
    done = subprocess.run(
        [root / "install", *words], user=uid, cwd=root, env={"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (root / "host" / "host.env").stat().st_uid == uid
    # A wrapper that runs as this account: through `setpriv`, because LocalShell starts it as ourselves.
    runner = root / "as-ordinary"
    runner.write_text(f'#!/bin/sh\nexec setpriv --reuid {uid} --clear-groups {root}/host/fabricui-host "$@"\n')
    if os.geteuid() != 0:
        runner.write_text(f'#!/bin/sh\nexec {root}/host/fabricui-host "$@"\n')
    runner.chmod(0o755)
    digests = [row.split()[1] for row in done.stdout.splitlines()[:2]]
    manager = ManagerHost("sm1", LocalShell(runner, root / "host"), *digests)
    manager.stage(b"x", digest=sha256(b"x"))
    assert manager.place(digest=sha256(b"x"), generation=1) == "PLACED"
    assert manager.read() == b"x"
    assert (root / "partitions.conf").stat().st_uid == uid
