"""A private PostgreSQL for one test run: own cluster, own Unix socket, gone afterwards."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


class NoPostgreSQL(Exception):
    """Debian's PostgreSQL is not installed; the message says what to install."""


def _programs() -> Path:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    raise NoPostgreSQL("No PostgreSQL was found: apt-get install postgresql")


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster and yield its DATABASE_URL; it listens on a Unix socket only.

    PostgreSQL refuses to run as root, so root runs it as the package's account.
    """
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="fabricui-pg-"))
    become: list[str] = []
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        become, user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"], "postgres"
    data = folder / "data"
    try:
        _run([*become, programs / "initdb", "-D", data, "-A", "trust", "-U", user, "-N"])
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c full_page_writes=off"
        _run([*become, programs / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"])
        try:
            yield f"postgresql://{user}@/fabricui?host={folder}"
        finally:
            _run([*become, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str | Path]) -> None:
    # pg_ctl's server keeps an inherited pipe open for ever: output goes to nowhere, the server logs to its own file.
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
