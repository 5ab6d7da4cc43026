"""A private PostgreSQL for one run: own cluster, own Unix socket, gone afterwards."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class NoPostgreSQL(Exception):
    """Debian's PostgreSQL is not installed; the message says what to install."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `url` names its database `fabricui` as DATABASE_URL does."""

    folder: Path
    user: str
    become: tuple[str, ...]

    @property
    def url(self) -> str:
        """The database `fabricui`, which whoever migrates makes."""
        return self.url_of("fabricui")

    def url_of(self, database: str) -> str:
        """Another database of the cluster."""
        return f"postgresql://{self.user}@/{database}?host={self.folder}"

    def restart(self) -> None:
        """Stop it at once, as a crash would, and start it again; every session of it is gone."""
        self.control("restart", "-m", "immediate")

    def sql(self, *statements: str) -> None:
        """Run statements in the database `postgres`."""
        words = [word for statement in statements for word in ("-c", statement)]
        where = ["-h", str(self.folder), "-U", self.user, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-q"]
        _run([*self.become, _programs() / "psql", *where, *words])

    def control(self, verb: str, *words: str) -> None:
        """Let pg_ctl do `verb` and wait for it."""
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off -c full_page_writes=off"
        how = [] if verb == "stop" else ["-o", options, "-l", str(self.folder / "log")]
        _run([*self.become, _programs() / "pg_ctl", "-D", self.folder / "data", *how, "-w", verb, *words])


def _programs() -> Path:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    raise NoPostgreSQL("No PostgreSQL was found: apt-get install postgresql")


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """Start a cluster; it listens on a Unix socket only. PostgreSQL refuses root, so root runs it as `postgres`."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="fabricui-pg-"))
    become: list[str] = []
    user = pwd.getpwuid(os.getuid()).pw_name
    if os.getuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        become, user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"], "postgres"
    made = Cluster(folder, user, tuple(become))
    try:
        _run([*become, programs / "initdb", "-D", folder / "data", "-A", "trust", "-U", user, "-N"])
        made.control("start")
        try:
            yield made
        finally:
            made.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster and yield its DATABASE_URL."""
    with running() as made:
        yield made.url


def _run(command: list[str | Path]) -> None:
    # pg_ctl's server keeps an inherited pipe open for ever: output goes to nowhere, the server logs to its own file.
    subprocess.run(
        [str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
