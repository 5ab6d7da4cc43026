"""The room's only way to machines: a pair's two shells, through `remote`, and one run over them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from probes.models import ProbeHost
from probes.session import run_pair
from probes.terms import Order, RunResult
from remote import probe_host
from remote.ssh import SSHShell


def measure(sender: ProbeHost, target: ProbeHost, order: Order, deadline_s: float) -> RunResult:
    """Run `order` between two hosts; every expected failure is an outcome of the result."""
    with connected(sender) as one, connected(target) as other:
        return run_pair(sender=one, target=other, order=order, deadline_s=deadline_s)


@contextmanager
def connected(host: ProbeHost) -> Iterator[probe_host.ProbeHost]:
    """The way to one host, with what is pinned of it; it connects when first used, and is closed at the end."""
    shell = SSHShell(host.address, host.ssh_port, host.ssh_user, Path(settings.PROBE_KEY_FILE), host.host_key)
    reached = probe_host.ProbeHost(str(host), shell, host.wrapper_digest, host.program_digest)
    try:
        yield reached
    finally:
        reached.close()
