"""The small provider after its first assignment: what most pages look like on a quiet day."""

from dataclasses import dataclass

from lab.pictures.provider import Provider
from partitions.models import Partition


@dataclass
class Site:
    """The rows, with the partitions by name."""

    provider: Provider
    training: Partition
    inference: Partition
    research: Partition  # of another tenant
    storage: Partition  # the provider's


def settle(provider: Provider) -> Site:
    """Six servers: two in training, one in inference, one in the other tenant's research, two unassigned."""
    site = Site(
        provider=provider,
        training=provider.partition("training", provider.acme, 0x2C41),
        inference=provider.partition("inference", provider.acme, 0x1B07),
        research=provider.partition("research", provider.bert, 0x3D02),
        storage=provider.partition("storage", None, 0x0100),
    )
    for number in range(1, 7):
        provider.server(number, state="ACTIVE", rate_text="400 Gb/sec (4X NDR)")
    homes = [site.training, site.training, site.inference, site.research]
    for server, home in zip(provider.servers[:4], homes, strict=True):
        provider.move(server, None, home)
    provider.settle(provider.roll_out(provider.olga, reason="first assignment"))
    return site
