"""Titles: what a tenant calls its partition, and the name in the file that is made of it.

A partition's name stands in partitions.conf, where no two may be alike; a tenant that hears “taken” would learn of
another tenant's partition. So a title is a tenant's own, the name is made of it and the tenant's slug, and should that
name be taken by somebody else, by chance or on purpose, another one is made and nobody is told (ADR 45).
"""

import secrets
from typing import Final

from inventory.models import Subnet
from partitions.errors import PartitionRefused
from partitions.models import Partition
from people.models import Tenant
from subnet.table import partition_name

LONGEST: Final = 31  # bytes that OpenSM keeps of a name (ground truth: OpenSM, 2.2)
_SHORT: Final = 12  # characters of slug and title in a name that must be cut, or told from another one
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"


def check(*, tenant: Tenant, subnet: Subnet, title: str, of: Partition | None = None) -> None:
    """Raise InvalidName or PartitionRefused unless a partition of `tenant` (`of`, or a new one) may be called so.

    Only the tenant's own partitions are asked.
    """
    partition_name(title)
    own = Partition.objects.filter(subnet=subnet, tenant=tenant)
    for partition in own if of is None else own.exclude(pk=of.pk):
        if partition.called.lower() == title.lower():
            retired = ", which is retired, and its name stays in old files" if partition.retired_at else ""
            raise PartitionRefused(f"You already have a partition {partition.called}{retired}. Choose another name.")


def file_name(*, tenant: Tenant, subnet: Subnet, title: str, of: Partition | None = None) -> str:
    """A name for the file that no partition of `subnet` but `of` has: “slug.title”, cut and made different at need."""
    slug = tenant.slug if tenant.slug[0].isalpha() else f"t{tenant.slug}"
    name = f"{slug}.{title}"
    others = Partition.objects.filter(subnet=subnet).exclude(pk=0 if of is None else of.pk)
    while len(name) > LONGEST or others.filter(name__iexact=name).exists():
        tail = "".join(secrets.choice(_ALPHABET) for _ in range(4))
        name = f"{slug[:_SHORT]}.{title[:_SHORT]}.{tail}"
    return name
