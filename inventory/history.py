"""The history of a server and its ports: reboots, new firmware, other names, links and cables, as rows.

A server can report something new twelve times a minute for ever, so only its newest entries are kept; the audit trail
has all of it.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from inventory.models import HistoryEntry, Port, Server

KEPT: Final = 500  # entries a server
_BATCH: Final = 500
Kind = HistoryEntry.Kind
Witness = HistoryEntry.Witness


def entry(
    kind: HistoryEntry.Kind,
    witness: HistoryEntry.Witness,
    *,
    what: object,
    before: object,
    after: object,
    at: datetime,
    server: Server | None = None,
    port: Port | None = None,
) -> HistoryEntry:
    """One entry, not saved yet."""
    return HistoryEntry(
        server=server,
        port=port,
        at=at,
        kind=kind,
        witness=witness,
        what=str(what)[:64],
        before=_text(before),
        after=_text(after),
    )


def keep(entries: Iterable[HistoryEntry]) -> None:
    """Store `entries`; of a server that has many already the oldest go. Two queries a server and one for all."""
    rows = list(entries)
    if not rows:
        return
    HistoryEntry.objects.bulk_create(rows, batch_size=_BATCH)
    for server in {row.server_id for row in rows if row.server_id is not None}:
        newest = HistoryEntry.objects.filter(server=server).order_by("-id")
        oldest = newest.values_list("id", flat=True)[KEPT : KEPT + 1].first()
        if oldest is not None:
            HistoryEntry.objects.filter(server=server, id__lte=oldest).delete()


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:120]
