"""From ManagerHost rows to machines that answer. Only the worker's account can read the key that opens them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from deploy import manager_key
from inventory.models import ManagerHost as ManagerHostRow
from inventory.models import Subnet
from remote.errors import AccessRefused
from remote.host_check import QualifiableHost
from remote.shell import Reply, Shell
from remote.ssh import SSHShell


def connect(subnet: Subnet) -> list[QualifiableHost]:
    """Every manager host of `subnet`, in order of name. Nothing is connected before the first call.

    Without a key every call raises AccessRefused with the sentence that says which file is missing, so that a
    rollout ends in a named state with it.
    """
    return [_host(row) for row in ManagerHostRow.objects.filter(subnet=subnet).order_by("name")]


@contextmanager
def connected(subnet: Subnet) -> Iterator[list[QualifiableHost]]:
    """The same for a `with` block; the connections are let go at its end."""
    hosts = connect(subnet)
    try:
        yield hosts
    finally:
        for host in hosts:
            host.close()


class NoKey:
    """A shell to nowhere, for a process that has no key it may use; `why` says what is wrong with it."""

    def __init__(self, why: str) -> None:
        self._why = why

    def call(self, verb: str, arguments: Sequence[str] = (), stdin: bytes = b"", *, timeout_s: float) -> Reply:
        """Raise AccessRefused."""
        raise AccessRefused(self._why)

    def close(self) -> None:
        """Nothing was opened."""


def _host(row: ManagerHostRow) -> QualifiableHost:
    return QualifiableHost(row.name, _shell(row), row.wrapper_digest, row.reader_digest)


def _shell(row: ManagerHostRow) -> Shell:
    why = manager_key.complaint(settings.MANAGER_KEY_FILE)
    if why:
        return NoKey(why)
    key_file = Path(settings.MANAGER_KEY_FILE)
    return SSHShell(address=row.address, port=row.ssh_port, user=row.ssh_user, key_file=key_file, host_key=row.host_key)
