"""Fixtures: a prepared manager host, reached locally and through a real sshd."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remote.manager_host import ManagerHost
from tests.remote.sites import Host, Sshd, install, make_key


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key"
    make_key(path)
    return path


@pytest.fixture
def prepared(tmp_path: Path, key_file: Path) -> Host:
    """A manager host where no OpenSM runs."""
    return install(tmp_path, key_file.with_suffix(".pub"))


@pytest.fixture(scope="session")
def running_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture
def sshd(running_sshd: Sshd, prepared: Host) -> Sshd:
    """A real sshd whose only authorised key may run the prepared host's wrapper."""
    running_sshd.let_in(prepared.authorized_keys)
    return running_sshd


@pytest.fixture(params=["local", "ssh"])
def manager(request: pytest.FixtureRequest, prepared: Host, key_file: Path) -> Iterator[ManagerHost]:
    """The prepared host through either shell: the verbs keep the same promises."""
    if request.param == "local":
        yield prepared.locally()
        return
    host = prepared.over(request.getfixturevalue("sshd").shell(key_file))
    yield host
    host.close()
