"""A small real lab for a module, and how to talk to its manager hosts."""

import pytest

from lab.site import Site
from remote.ssh import SSHShell

SERVERS, HCAS = 6, 2


@pytest.fixture(scope="module")
def module_site(tmp_path_factory):
    with Site.up(tmp_path_factory.mktemp("lab") / "site", servers=SERVERS, hcas=HCAS, owned=True) as site:
        yield site


@pytest.fixture
def site(module_site):
    """The module's lab; a test that breaks something mends it, and the roles are as at the start before the next."""
    yield module_site
    module_site.wait_for_master("sm-a", timeout_s=20)
    module_site.wait_for_roles(timeout_s=20)


@pytest.fixture
def call(site):
    """Run one verb on a manager host over SSH: `call("sm-a", "read")`."""
    shells = {}

    def run(name, verb, arguments=(), stdin=b"", *, timeout_s=20.0, host_key=None, fresh=False):
        manager = site.manager(name)
        key = (name, host_key)
        if fresh and key in shells:
            shells.pop(key).close()
        if key not in shells:
            shells[key] = SSHShell(
                address=manager.address,
                port=manager.ssh_port,
                user=manager.user,
                key_file=site.manager_key,
                host_key=host_key or manager.host_key,
            )
        return shells[key].call(verb, arguments, stdin, timeout_s=timeout_s)

    yield run
    for shell in shells.values():
        shell.close()
