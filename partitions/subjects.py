"""How this room's rows stand in the audit trail: as text, frozen, and with the tenant they concern."""

from collections.abc import Iterable

from audit.values import Subject
from inventory.models import Port
from inventory.subjects import port_subject, server_subject
from partitions.models import Partition
from subnet.pkey import PKey


def partition_subject(partition: Partition) -> Subject:
    """Give the subject that names `partition`."""
    return Subject(kind="partition", key=partition.public_id, label=partition.name)


def place_subject(port: Port) -> Subject:
    """Give the subject that names the server of `port`, or the port when no server has it."""
    return port_subject(port) if port.hca is None else server_subject(port.hca.server)


def partition_label(partition: Partition) -> str:
    """A partition within an event: its name and its P_Key of that moment."""
    return f"{partition.name} ({PKey(partition.pkey)})"


def tenant_key(partitions: Iterable[Partition]) -> str:
    """The tenant whose partitions these are, when it is exactly one."""
    keys = {partition.tenant.public_id for partition in partitions if partition.tenant is not None}
    return keys.pop() if len(keys) == 1 else ""
