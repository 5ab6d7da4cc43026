"""Where a server stands on its way from one tenant to another: remove, proven, clean, add, proven.

Read from what is: memberships, what is staged, the rollout that runs, and who marked it clean. Nothing stores a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.models import Rollout
from deploy.queries import running_rollout
from inventory.models import Port, Server
from partitions import link_loss
from partitions.models import Cleaning, Membership, StagedChange
from people.models import Tenant


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `at` is done, now or ahead; `what` in the imperative, `note` what is known of it."""

    name: str
    at: str
    what: str
    note: str


@dataclass(frozen=True, slots=True)
class Passage:
    """The five steps of one server, and what a person can do next."""

    former: str
    to: str
    steps: tuple[Step, ...]
    next: str

    @property
    def position(self) -> str:
        """The name of the step that is on; empty when all is done."""
        return next((step.name for step in self.steps if step.at == "now"), "")


NAMES = ("remove", "removed", "clean", "add", "added")
_WHAT = {
    "remove": "Take it out of the former tenant’s partitions",
    "removed": "Proven: its ports hold none of that tenant’s keys",
    "clean": "Clean the server and say how",
    "add": "Give it the new keys",
    "added": "Proven: the new tenant has it",
}


def passage(server: Server) -> Passage | None:
    """The steps of `server`, or None when it does not change hands. Ten queries at most."""
    ports = Port.objects.filter(hca__server=server)
    staged = list(StagedChange.objects.of_server(server).whole())
    owners = set(
        Tenant.objects.filter(pk__in=Membership.objects.filter(port__in=ports).values("partition__tenant")).values_list(
            "name", flat=True
        )
    )
    former = set(
        Tenant.objects.filter(pk__in=ports.exclude(former_tenant=None).values("former_tenant")).values_list(
            "name", flat=True
        )
    )
    joins = [row for row in staged if row.kind_from is None]
    leaves = {str(row.partition.tenant) for row in staged if row.kind_to is None and row.partition.tenant is not None}
    bound = owners | former
    new = {str(row.partition.tenant or "the provider") for row in joins} - owners
    if not owners:
        # It has left: whoever it was with last, it is on its way until it is clean.
        if former:
            return _at(2, former=former, to=new - former or new, server=server)
        cleaned = Cleaning.objects.filter(port__in=ports).select_related("tenant").order_by("-at").first()
        if cleaned is not None and joins and {cleaned.tenant.name} != new:
            index = 4 if _is_rolling(server, joins) else 3
            return _at(index, former={cleaned.tenant.name}, to=new, server=server, cleaned=cleaned)
        return None
    if not (leaves & bound and new - bound):
        return None
    return _at(1 if _is_rolling(server, [row for row in staged if row.kind_to is None]) else 0,
               former=leaves & bound, to=new - bound, server=server)  # fmt: skip


def _at(index: int, *, former: set[str], to: set[str], server: Server, cleaned: Cleaning | None = None) -> Passage:
    notes = dict.fromkeys(NAMES, "")
    if index >= 2:
        notes["removed"] = "in force, and read from the fabric"
    if cleaned is not None:
        notes["clean"] = f"{cleaned.doer}, {cleaned.reason}"
    if index == 2:
        notes["clean"] = _links(server)
    if index == 2 and to:
        notes["add"] = "staged; it waits for the server to be clean"
    what_next = (
        "Review the plan and roll it out: it holds the first half only.",
        "Wait for the proof.",
        "Erase it, then mark it clean below, or let the provisioning system say so; where the site takes that for "
        "enough, the fabric says it by the loss of all its links. Until then it takes no new key.",
        "Review the plan and roll it out: it holds the second half.",
        "Wait for the proof.",
    )[index]
    steps = tuple(
        Step(name, "done" if at < index else "now" if at == index else "ahead", _WHAT[name], notes[name])
        for at, name in enumerate(NAMES)
    )
    return Passage(", ".join(sorted(former)), ", ".join(sorted(to)), steps, what_next)


def _links(server: Server) -> str:
    """How many of its ports the fabric showed down since its keys were taken away; nothing while it showed none."""
    ports = list(link_loss.between_tenants(server.subnet).filter(hca__server=server))
    seen = link_loss.lost(ports)
    return f"link loss seen on {len(seen)} of {len(ports)} ports, in two looks each" if seen else ""


def _is_rolling(server: Server, rows: Sequence[StagedChange]) -> bool:
    """Whether the rollout that holds the subnet carries any of these changes: its revision says what they want."""
    rollout: Rollout | None = running_rollout(server.subnet)
    if rollout is None:
        return False
    held = {
        (int(str(partition["pkey"]), 16) & 0x7FFF, guid)
        for partition in rollout.revision.table["partitions"]
        for guid, _ in partition["members"]
    }
    places = [((row.partition.pkey, str(row.port.guid)), row.kind_to is not None) for row in rows]
    return any((place in held) == wanted for place, wanted in places)
