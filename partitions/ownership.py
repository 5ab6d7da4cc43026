"""The gate of ownership at plan time: what was staged while its port was confirmed may have lost that since."""

from collections.abc import Iterable

from inventory.models import PortConflict
from inventory.ownership import is_trusted
from partitions import mirror
from partitions.models import StagedChange
from subnet.policy import Violation


def unconfirmed(changes: Iterable[StagedChange]) -> Iterable[Violation]:
    """Refuse every port that would gain a membership without being confirmed as this site asks, or while disputed.

    One query for up to 500 ports that join, none without any.
    """
    joining = {change.port_id: change for change in changes if change.kind_to is not None}
    disputed: set[int] = set()
    for batch in mirror.batches(sorted(joining)):
        disputed |= set(PortConflict.objects.filter(closed_at=None, port__in=batch).values_list("port_id", flat=True))
    for pk, change in sorted(joining.items(), key=lambda item: str(item[1].port.guid)):
        port = change.port
        where = port if port.hca is None else f"{port} of {port.hca.server}"
        if pk in disputed:
            yield Violation(
                rule="conflict",
                severity="refuse",
                where=str(port.guid),
                sentence=f"Port {where} is claimed by another server since it was staged into {change.partition.name}. "
                "Decide the conflict first.",
            )
        elif not is_trusted(port):
            yield Violation(
                rule="unconfirmed",
                severity="refuse",
                where=str(port.guid),
                sentence=f"Port {where} is not confirmed any more as this site asks, and is staged into "
                f"{change.partition.name}. Confirm it on the page of its server, or discard that change.",
            )
