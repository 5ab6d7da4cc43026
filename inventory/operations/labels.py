"""Labels of servers: rack, unit, serial number, tenant. All of a file or nothing of it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import LabelsRefused
from inventory.labels import LabelFile, LabelRow
from inventory.models import Server, Subnet
from inventory.races import settle
from inventory.subjects import server_subject
from people.models import Tenant

_BATCH = 500
_TEXTS = ("rack", "unit", "serial")


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What a file changes on one server: label → (before, after) as text; a tenant by its slug."""

    server: Server
    changed: dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LabelPreview:
    """What a file would do: its errors by row, or its changes; `digest` names exactly these changes."""

    errors: tuple[tuple[int, str], ...]
    changes: tuple[LabelChange, ...]
    rows: int

    @property
    def digest(self) -> str:
        """64 hex digits; another digest means that somebody has labelled one of these servers meanwhile."""
        said = [[change.server.public_id, sorted(change.changed.items())] for change in self.changes]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def preview_labels(*, subnet: Subnet, file: LabelFile) -> LabelPreview:
    """What `file` would change in `subnet`; writes nothing. A few queries whatever its size."""
    return _preview(subnet, file, is_held=False)


def label_servers(*, subnet: Subnet, file: LabelFile, digest: str, actor: Actor) -> int:
    """Write the labels of `file`, which must be the changes that `digest` names; give how many servers changed.

    One event a server. Raises LabelsRefused, and then writes nothing, for any error in the file and when the changes
    are others than were looked at.
    """

    def change() -> int:
        looked_at = _preview(subnet, file, is_held=True)
        if looked_at.errors:
            number, sentence = looked_at.errors[0]
            raise LabelsRefused(f"Row {number}: {sentence} Nothing of the file was taken.")
        if looked_at.digest != digest:
            raise LabelsRefused("Somebody has changed these servers or tenants meanwhile. Look at the preview again.")
        tenants = _tenants(file.rows)
        for one in looked_at.changes:
            for name, (_, after) in one.changed.items():
                setattr(one.server, name, (tenants[after] if after else None) if name == "tenant" else after)
        rows = [one.server for one in looked_at.changes]
        Server.objects.bulk_update(rows, [*_TEXTS, "tenant"], batch_size=_BATCH // 2)
        for one in looked_at.changes:
            record(
                action=Action.SERVER_LABEL,
                actor=actor,
                subject=server_subject(one.server),
                before={name: before for name, (before, _) in one.changed.items()},
                after={name: after for name, (_, after) in one.changed.items()},
            )
        return len(rows)

    return settle(change)


def _preview(subnet: Subnet, file: LabelFile, *, is_held: bool) -> LabelPreview:
    errors = list(file.errors)
    tenants = _tenants(file.rows)
    servers: dict[str, Server] = {}
    names = [row.hostname for row in file.rows]
    for start in range(0, len(names), _BATCH):
        found = Server.objects.filter(subnet=subnet, hostname__in=names[start : start + _BATCH])
        if is_held:
            found = found.select_for_update(of=("self",))
        servers |= {server.hostname: server for server in found.select_related("tenant").order_by("pk")}
    changes = []
    for row in file.rows:
        server = servers.get(row.hostname)
        if server is None:
            errors.append((row.number, f"No server called {row.hostname[:80]} has registered here."))
        elif (slug := row.labels.get("tenant")) and slug not in tenants:
            errors.append((row.number, f"There is no tenant {slug}. Write the tenant's short name (slug)."))
        elif changed := _changed(server, row):
            changes.append(LabelChange(server, changed))
    return LabelPreview(tuple(sorted(errors)), () if errors else tuple(changes), len(file.rows))


def _changed(server: Server, row: LabelRow) -> dict[str, tuple[str, str]]:
    now: dict[str, Any] = {name: getattr(server, name) for name in _TEXTS}
    now["tenant"] = "" if server.tenant is None else server.tenant.slug
    return {name: (now[name], value) for name, value in row.labels.items() if now[name] != value}


def _tenants(rows: Sequence[LabelRow]) -> dict[str, Tenant]:
    wanted = {slug for row in rows if (slug := row.labels.get("tenant"))}
    return {tenant.slug: tenant for tenant in Tenant.objects.all() if tenant.slug in wanted} if wanted else {}
