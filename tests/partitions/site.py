"""A small provider on rows: two tenants, two operators, servers of two ports, two manager hosts, a first revision."""

from lab.pictures import provider
from lab.pictures.provider import SM_PORTS, Provider
from tests.remembered import remembered

__all__ = ["SM_PORTS", "Provider", "build"]

build = remembered(provider.build)
