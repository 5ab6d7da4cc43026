"""A provider with probe hosts, and results as two hosts would give them. No host is reached."""

from datetime import datetime, timedelta

from audit.values import SYSTEM
from lab.pictures.probed import HOST_KEY, START, Probed, add_host, evidence, lost, ok
from probes import operations
from probes.models import ProbeScope
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings
from tests.partitions.site import build

__all__ = ["HOST_KEY", "START", "Probed", "add_host", "evidence", "later", "lost", "ok", "probed"]


def probed(*, servers: int = 4, settings: ScopeSettings | None = None, consents: bool = True) -> Probed:
    """`servers` servers of two ports in Acme's partition training, all of them probe hosts."""
    provider = build()
    partition = provider.partition("training", provider.acme, 0x2C41)
    for number in range(1, servers + 1):
        provider.move(provider.server(number), None, partition)
    provider.settle(provider.roll_out(provider.olga, reason="first"))
    hosts = [add_host(server, provider) for server in provider.servers]
    if consents:
        operations.set_consent(tenant=provider.acme, is_given=True, actor=SYSTEM)
    scope = operations.scope_of_partition(partition=partition, actor=SYSTEM)
    settings = settings or ScopeSettings(
        is_enabled=True, profiles=("link",), interval_s=300, budget=4, mode=LoadMode.LOADED
    )
    scope = operations.change_settings(scope=scope, settings=settings, actor=SYSTEM)
    ProbeScope.objects.update(next_at=START)
    return Probed(provider, partition, ProbeScope.objects.named().get(pk=scope.pk), hosts)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)
