"""The rules of a move, one function each. Each returns quietly or raises MoveRefused with a sentence."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from audit.actions import Action
from audit.models import Event
from deploy.models import Revision, Rollout
from deploy.queries import current_revision, running_rollout
from inventory.models import Server, Subnet
from inventory.ownership import is_trusted
from partitions.errors import MoveRefused
from partitions.models import MembershipKind, Partition, StagedChange
from partitions.standing import Standing, in_words
from people.models import User
from subnet.pkey import Membership


def refuse_target(server: Server, target: Partition | None, source: Partition | None) -> None:
    """The target must be another partition of the same subnet that still takes members."""
    if target == source:
        where = "Unassigned" if target is None else target.name
        raise MoveRefused(
            f"{server} is already in {where}: source and target are the same. Choose another target.",
            rule="same_partition",
        )
    if target is None:
        return
    refuse_retired(target)
    if target.subnet_id != server.subnet_id:
        raise MoveRefused(
            f"{server} is on another subnet than {target.name}. Choose a partition of subnet {server.subnet}.",
            rule="another_subnet",
        )


def refuse_retired(target: Partition) -> None:
    """A retired partition takes no members: its P_Key may be another's soon."""
    if target.retired_at is not None:
        raise MoveRefused(
            f"{target.name} was retired at {moment(target.retired_at)} and takes no members. Choose another partition.",
            rule="retired",
        )


def refuse_unfit_ports(standing: Standing, *, joins: bool = True) -> None:
    """A server moves only when each of its InfiniBand ports is known, undisputed and no manager host's.

    What only leaves need not be confirmed: nobody gains anything by it.
    """
    server, ports = standing.server, standing.ports
    if not ports:
        raise MoveRefused(
            f"{server} has reported no InfiniBand port, so it cannot be a member of a partition. Check its HCAs "
            "(their link layer may be Ethernet) and let its agent report again.",
            rule="no_ports",
        )
    if standing.sm_ports:
        guid, host = min(standing.sm_ports.items())
        raise MoveRefused(
            f"Port {guid} of {server} is the SM port of manager host {host}. FabricUI keeps it a full member of "
            "Default only; it never joins a tenant's or the provider's partition. Move another server.",
            rule="sm_port",
        )
    disputed = standing.disputed
    if disputed is not None:
        raise MoveRefused(
            f"Port {disputed.port} of {server} is also claimed by {disputed.claimed_by}. "
            f"Decide the conflict on the page of {server} first; nothing moves until then.",
            rule="conflict",
        )
    unconfirmed = [port.guid for port in ports if not is_trusted(port)]
    if unconfirmed and joins:
        more = f" (and {len(unconfirmed) - 1} more)" if len(unconfirmed) > 1 else ""
        raise MoveRefused(
            f"Port {unconfirmed[0]}{more} of {server} is not confirmed yet. Confirm on the page of {server} that the "
            "hardware is really there, then move it.",
            rule="unconfirmed",
        )


def refuse_anothers_change(standing: Standing, person: User) -> None:
    """Two people never stage on one port; the first one's change stands until it is current or discarded."""
    others = [change for change in standing.staged.values() if change.by_id != person.pk]
    if not others:
        return
    newest = max(others, key=lambda change: change.at)
    raise MoveRefused(
        f"{newest.by} has already staged {standing.server} {way(others)} at {moment(newest.at)}. "
        f"Ask {newest.by}, or discard that change first.",
        rule="another_person",
    )


def refuse_lost_source(standing: Standing, source: Partition | None) -> None:
    """The server must still be where the person took it from."""
    server = standing.server
    wanted = standing.partitions_wanted()
    if source is None:
        if not wanted:
            return
        gone = f"{server} is no longer unassigned"
    else:
        if standing.is_in(source):
            return
        gone = f"{server} is not in {source.name} any more"
    raise MoveRefused(
        f"{gone}{_last_mover(server)}. Now it is in {in_words(wanted)}. Load the board again and move it from there.",
        rule="source_lost",
    )


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A rollout that runs, and which of the ports that were asked about it is changing."""

    rollout: Rollout
    guids: frozenset[str]


def under_way(subnet: Subnet, guids: Iterable[str]) -> UnderWay | None:
    """What a running rollout changes of these ports; None when it changes none of them. Two queries, or none."""
    named = {str(guid) for guid in guids}
    if not named:
        return None
    rollout = running_rollout(subnet)
    if rollout is None or rollout.revision == current_revision(subnet):
        return None  # nothing runs, or all that is owed is another copy of the file
    touched = frozenset(guid for _, guid, _ in held(rollout.parent, named) ^ held(rollout.revision, named))
    return UnderWay(rollout, touched) if touched else None


def refuse_changing(changing: UnderWay | None, places: Mapping[str, str]) -> None:
    """What a running rollout is making true cannot be changed under its hands. `places`: port GUID to server."""
    touched = sorted(set(places) & changing.guids) if changing is not None else []
    if changing is not None and touched:
        names = ", ".join(sorted({places[guid] for guid in touched})[:3])
        rollout = changing.rollout
        raise MoveRefused(
            f"A rollout that {rollout.started_by_name} started at {moment(rollout.requested_at)} is changing port "
            f"{touched[0]} ({names}). Wait until it has ended, then try again.",
            rule="rolling_out",
        )


def refuse_rolling_out(subnet: Subnet, places: Mapping[str, str]) -> None:
    """The same, asked for these ports alone."""
    refuse_changing(under_way(subnet, places), places)


def refuse_two_tenants(standing: Standing, target: Partition, after: Collection[Partition]) -> None:
    """A server is wanted in one tenant's partitions at a time; a move to another leaves all of the former's.

    `after` is every partition the board will show it in, `target` included. Where it *was* is no reason: then its
    joining waits, see `partitions/handover.py`.
    """
    if target.tenant is None:
        return
    others = sorted((p for p in after if p.tenant not in (None, target.tenant)), key=lambda p: p.name.lower())
    if others:
        raise MoveRefused(
            f"{standing.server} would be in {others[0].name}, a partition of {others[0].tenant}, and in {target.name} "
            f"of {target.tenant}. A server is with one tenant at a time: move it out of {in_words(others)} as well.",
            rule="two_tenants",
        )


def refuse_full_in_shared(standing: Standing, target: Partition, after: Collection[Partition]) -> None:
    """A tenant's port is a limited member of the provider's partitions: two tenants never meet there."""
    if target.tenant is None:
        return
    for partition in after:
        places = [(port.pk, partition.pk) for port in standing.ports]
        if partition.tenant is None and MembershipKind.FULL in {standing.wanted(place) for place in places}:
            raise MoveRefused(
                f"{standing.server} is a full member of the provider's partition {partition.name}, where it would meet "
                f"other tenants' servers. Move it from {partition.name} instead of adding, or make it a limited "
                "member there first.",
                rule="full_in_shared",
            )


def refuse_limited_only(standing: Standing, partition: Partition, asked: Membership) -> None:
    """What `stage_membership` asks for must be possible: a tenant's port is never a full member of the provider's."""
    belongs_to_tenant = bool(standing.tenants_now()) or any(p.tenant is not None for p in standing.partitions_wanted())
    if partition.tenant is None and belongs_to_tenant and asked == Membership.FULL:
        raise MoveRefused(
            f"{standing.server} belongs to a tenant, and {partition.name} is the provider's and shared: a full member "
            "there could reach other tenants' servers. It stays limited.",
            rule="limited_in_shared",
        )


def way(changes: Iterable[StagedChange]) -> str:
    """The way of one server's changes in a sentence: “from training to inference”."""
    rows = list(changes)
    left = sorted({row.partition.name for row in rows if row.kind_to is None})
    joined = sorted({row.partition.name for row in rows if row.kind_from is None})
    altered = sorted({row.partition.name for row in rows if row.kind_from is not None and row.kind_to is not None})
    to = " and ".join(joined) or "Unassigned"
    words = f"from {' and '.join(left)} to {to}" if left else f"to {to}" if joined else ""
    if not altered:
        return words
    return f"{words} to another membership in {' and '.join(altered)}".strip()


def moment(at: datetime) -> str:
    """A time in a sentence, in UTC."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def held(revision: Revision, guids: set[str]) -> set[tuple[str, str, str]]:
    """What these ports hold in a revision: P_Key, port GUID, membership.

    Read from the stored JSON as it is: building all of a table of 40,000 members would take most of a second, and a
    person waits for the card to land.
    """
    return {
        (partition["pkey"], guid, membership)
        for partition in revision.table["partitions"]
        for guid, membership in partition["members"]
        if guid in guids
    }


def _last_mover(server: Server) -> str:
    """Who last staged this server, as an apposition; nothing when the trail does not say."""
    event = (
        Event.objects.filter(action=Action.MEMBER_STAGE, subject_kind="server", subject_key=server.public_id)
        .order_by("-number")
        .first()
    )
    return "" if event is None else f": {event.actor_name} moved it at {moment(event.at)}"
