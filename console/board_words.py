"""What a move came to, in one sentence; with what a person may not expect of it."""

from collections.abc import Sequence

from inventory.models import Port, Server
from partitions.models import Partition
from partitions.operations import Moved

NOTHING_SENT = "Nothing has reached the fabric."


def told(outcomes: Sequence[Moved], target: Partition | None) -> tuple[str, bool]:
    """The sentence, and whether not one of them is staged."""
    staged = [one for one in outcomes if not one.refusal]
    refused = [one for one in outcomes if one.refusal]
    if not staged:
        first = refused[0].refusal
        return (first if len(refused) == 1 else f"None of {len(refused)} servers is staged. {first}"), True
    if len(outcomes) == 1:
        return f"{_one(staged[0].server, staged[0].source, target)} {NOTHING_SENT}", False
    where = "Unassigned" if target is None else target.name
    sentence = f"{_servers(len(staged))} staged to {where}."
    if refused:
        names = ", ".join(str(one.server) for one in refused[:3]) + (", …" if len(refused) > 3 else "")
        sentence += f" {len(refused)} {'was' if len(refused) == 1 else 'were'} refused: {names}."
    return f"{sentence} {NOTHING_SENT}", False


def _servers(count: int) -> str:
    return "1 server is" if count == 1 else f"{count} servers are"


def _one(server: Server, source: Partition | None, target: Partition | None) -> str:
    """What was staged for one server."""
    if target is None:
        return f"{server} is staged to Unassigned."
    if target.tenant is None and source is not None and source.tenant is not None:
        return f"{server} is staged to {target.name} as a limited member, and stays in {source.name}."
    joined = Partition.objects.filter(memberships__port__hca__server=server).select_related("tenant")
    bound = {row.tenant for row in joined}
    bound |= {port.former_tenant for port in Port.objects.filter(hca__server=server).select_related("former_tenant")}
    others = sorted(str(tenant) for tenant in bound - {None, target.tenant})
    if target.tenant is not None and others:
        return (
            f"{server} is staged to {target.name}: it leaves {others[0]} first, and joins once that is proven and the "
            "server is marked clean."
        )
    return f"{server} is staged to {target.name}."
