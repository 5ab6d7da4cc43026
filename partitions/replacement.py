"""HCA replacement (RMA): a server's ports get other GUIDs and stay what they are: rows, memberships, labels.

One action pairs each old port with a new one. The rows swap GUIDs at once; the current revision still names the old
ones, so a `Replacement` row says what stands for what until a revision without them is current. One plan takes the old
GUIDs out and the new ones in, in one rollout: the card that went away holds no key any more when that is proven.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from deploy.queries import current_revision
from inventory import history, ownership
from inventory.history import Kind, Witness
from inventory.models import HCA, ManagerHost, Port, PortConflict, Server
from inventory.subjects import server_subject
from partitions import mirror, refusals
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import MoveRefused
from partitions.models import Membership, Replacement, StagedChange
from partitions.subjects import tenant_key
from people.permissions import is_operator
from subnet.guid import GUID
from subnet.policy import Violation
from subnet.witness import ABSENT

_HCA_COLUMNS = ("node_guid", "system_image_guid", "device", "firmware", "board_id")


@dataclass(frozen=True, slots=True)
class Pair:
    """One old port and the new one that takes its place, as the page proposes it."""

    old: Port
    new: Port


@transaction.atomic
def replace_hca(
    *, server: Server, pairs: Sequence[tuple[Port, Port]], actor: Doer, reason: str = ""
) -> tuple[Replacement, ...]:
    """Let each old port of `pairs` go on under the GUID of its new one; give the replacements.

    Only for operators: a person has seen the new card in `server`, so its ports are confirmed by this. An old port that
    is in no partition is done at once. Raises MoveRefused for a pair that cannot be right, and then changes nothing.
    """
    person = as_person(actor)
    if not is_operator(person):
        raise MoveRefused("Only an operator may say that an HCA was replaced.", rule="not_yours")
    mirror.catch_up(server.subnet)
    Server.objects.select_for_update().get(pk=server.pk)
    fresh = _fresh(pairs)
    _refuse_bad(server, fresh)
    named = {str(port.guid): server.hostname for pair in fresh for port in (pair.old, pair.new)}
    refusals.refuse_rolling_out(server.subnet, named)
    current = current_revision(server.subnet)
    standing = set() if current is None else {guid for _, guid, _ in refusals.held(current, set(named))}
    now = timezone.now()
    rows = []
    cards = {pair.old.hca_id for pair in fresh if pair.old.hca_id is not None}
    for pair in fresh:
        old_guid, new_guid = pair.old.guid, pair.new.guid
        old_hca = {} if pair.old.hca is None else _columns(pair.old.hca)
        _swap(pair)
        rows.append(
            Replacement(
                port=pair.old,
                former=pair.new,
                old_guid=old_guid,
                new_guid=new_guid,
                old_hca=old_hca,
                by=person,
                at=now,
                reason=reason,
                done_at=None if str(old_guid) in standing else now,
            )
        )
    Replacement.objects.bulk_create(rows)
    HCA.objects.filter(pk__in=cards, ports__isnull=True).delete()
    history.keep(
        history.entry(
            Kind.CARD,
            Witness.PERSON,
            what=row.new_guid,
            before=row.old_guid,
            after=row.new_guid,
            at=now,
            server=server,
            port=row.port,
        )
        for row in rows
    )
    record(
        action=Action.HCA_REPLACE,
        actor=as_actor(actor),
        subject=server_subject(server),
        before={"ports": [str(row.old_guid) for row in rows]},
        after={"ports": [str(row.new_guid) for row in rows], "wait_for_rollout": sum(r.done_at is None for r in rows)},
        reason=reason,
        tenant_key=_tenant_key(rows),
    )
    return tuple(rows)


@transaction.atomic
def undo_replacement(*, server: Server, actor: Doer, reason: str = "") -> int:
    """Take every replacement of `server` back that no rollout has carried; give how many ports that were.

    The port that was new is the server's again as soon as it reports it. Raises MoveRefused when there is nothing to
    take back, or a rollout is carrying it.
    """
    person = as_person(actor)
    if not is_operator(person):
        raise MoveRefused("Only an operator may take the replacement of an HCA back.", rule="not_yours")
    mirror.catch_up(server.subnet)
    Server.objects.select_for_update().get(pk=server.pk)
    pending = Replacement.objects.pending().filter(port__hca__server=server).select_for_update(of=("self",))
    rows = list(pending.select_related("port__hca", "former"))
    if not rows:
        raise MoveRefused(f"No replacement of an HCA of {server} waits for a rollout.", rule="nothing_replaced")
    guids = {str(guid): server.hostname for row in rows for guid in (row.old_guid, row.new_guid)}
    refusals.refuse_rolling_out(server.subnet, guids)
    now = timezone.now()
    for row in rows:
        new_hca = row.port.hca
        card, _ = HCA.objects.get_or_create(
            server=server, node_guid=row.old_hca.get("node_guid"), defaults={**row.old_hca, "server": server}
        )
        Port.objects.filter(pk=row.former_id).update(guid=_placeholder(row.former))
        Port.objects.filter(pk=row.port_id).update(guid=row.old_guid, hca=card, missing_since=now)
        Port.objects.filter(pk=row.former_id).update(guid=row.new_guid, hca=new_hca, former_tenant=None)
        row.done_at, row.undone = now, True
        row.save(update_fields=["done_at", "undone"])
    record(
        action=Action.HCA_REPLACE_UNDO,
        actor=as_actor(actor),
        subject=server_subject(server),
        before={"ports": [str(row.new_guid) for row in rows]},
        after={"ports": [str(row.old_guid) for row in rows]},
        reason=reason,
        tenant_key=_tenant_key(rows),
    )
    return len(rows)


def proposed_pairs(server: Server) -> tuple[tuple[Port, ...], tuple[Port, ...], tuple[Pair, ...]]:
    """What a page offers for `server`: ports that are gone, new ones, and how they most likely pair. 3 queries.

    Gone: missing from its reports, and in a partition or confirmed before. New: reported, and in nothing so far. They
    pair by device and number where both say so, and in order otherwise.
    """
    ports = list(Port.objects.of_server(server).filter(link_layer=Port.LinkLayer.INFINIBAND))
    ids = [port.pk for port in ports]
    held = set(Membership.objects.filter(port__in=ids).values_list("port_id", flat=True))
    held |= set(StagedChange.objects.filter(port__in=ids).values_list("port_id", flat=True))
    gone = [port for port in ports if port.missing_since is not None]
    new = [one for one in ports if one.missing_since is None and one.pk not in held and one.former_tenant_id is None]
    left = {(_device(port), port.number): port for port in new}
    pairs: list[Pair] = []
    rest: list[Port] = []
    for port in gone:
        same = left.pop((_device(port), port.number), None)
        if same is None:
            rest.append(port)
        else:
            pairs.append(Pair(port, same))
    pairs += [Pair(old, other) for old, other in zip(rest, left.values(), strict=False)]
    return tuple(gone), tuple(new), tuple(pairs)


def without_their_replacement(changes: Iterable[StagedChange], replaced: Iterable[Replacement]) -> Iterable[Violation]:
    """A change of a replaced port names its new GUID, so it goes out with the replacement or not at all. One query."""
    taken = {row.pk for row in replaced}
    ports = {change.port_id for change in changes}
    rows: list[Replacement] = []
    for batch in mirror.batches(sorted(ports)):
        rows += Replacement.objects.pending().filter(port__in=batch).select_related("port__hca__server", "by")
    for row in rows:
        if row.pk not in taken:
            yield Violation(
                rule="not_selected",
                severity="refuse",
                where=str(row.new_guid),
                sentence=f"{row.by} has replaced an HCA of {row.port.server or row.port} at {refusals.moment(row.at)}, "
                f"and that is not in this selection. Roll out all changes, or wait until {row.by} has rolled it out.",
            )


def _fresh(pairs: Sequence[tuple[Port, Port]]) -> list[Pair]:
    """The pairs with their rows as they are now, held until the commit."""
    ids = {port.pk for pair in pairs for port in pair}
    rows = Port.objects.select_related("hca__server", "former_tenant", "subnet").select_for_update(of=("self",))
    held = {port.pk: port for port in rows.filter(pk__in=ids).order_by("guid")}
    return [Pair(held[old.pk], held[new.pk]) for old, new in pairs if old.pk in held and new.pk in held]


def _refuse_bad(server: Server, pairs: Sequence[Pair]) -> None:
    """Raise MoveRefused for the first pair that cannot be a replacement."""

    def bad(sentence: str) -> MoveRefused:
        return MoveRefused(sentence, rule="bad_pair")

    if not pairs:
        raise bad(f"Choose which port of {server} was replaced by which.")
    ids = [port.pk for pair in pairs for port in (pair.old, pair.new)]
    if len(set(ids)) != len(ids):
        raise bad("One port stands in two pairs. Each old port has one new one.")
    held = set(Membership.objects.filter(port__in=ids).values_list("port_id", flat=True))
    held |= set(StagedChange.objects.filter(port__in=ids).values_list("port_id", flat=True))
    pending = set(Replacement.objects.pending().filter(port__in=ids).values_list("port_id", flat=True))
    guids = [port.guid for pair in pairs for port in (pair.old, pair.new)]
    managers = dict(ManagerHost.objects.filter(port_guid__in=guids).values_list("port_guid", "name"))
    conflicts = PortConflict.objects.filter(port__in=ids, closed_at=None).select_related("port", "claimed_by")
    disputed = {conflict.port_id: conflict for conflict in conflicts}
    for pair in pairs:
        old, new = pair.old, pair.new
        for port in (old, new):
            if port.server is None or port.server.pk != server.pk:
                raise bad(f"Port {port} is not a port of {server}. A card that moved to another server is a conflict.")
            if port.link_layer != Port.LinkLayer.INFINIBAND:
                raise bad(f"Port {port} speaks Ethernet. Only InfiniBand ports stand in partitions.")
            if port.guid in managers:
                raise bad(f"Port {port} runs the SM of {managers[port.guid]}. Enrol that manager host anew instead.")
            if port.pk in disputed:
                raise bad(f"Port {port} is also claimed by {disputed[port.pk].claimed_by}. Decide the conflict first.")
            if port.pk in pending:
                raise bad(f"Port {port} replaced another one already and waits for its rollout. Roll that out first.")
        if old.missing_since is None:
            raise bad(f"{server} still reports port {old}, so it was not replaced. Let the agent report again.")
        if _is_on_the_fabric(old):
            raise bad(f"The fabric still shows port {old}. Unplug the old card, then look at the fabric again.")
        if new.missing_since is not None:
            raise bad(f"{server} does not report port {new} any more. Let the agent report again.")
        if new.pk in held or new.former_tenant is not None:
            raise bad(f"Port {new} is or was in a partition of its own, so it is no new card. Choose another one.")
        if new.subnet_prefix is not None and new.subnet_prefix != server.subnet.prefix:
            raise bad(f"Port {new} is cabled to another subnet ({new.subnet_prefix}). Check its cable.")
        if new.testimony == "disagrees":
            raise bad(f"The fabric contradicts what {server} says of port {new}. Look at its page before you trust it.")


def _is_on_the_fabric(port: Port) -> bool:
    """Whether the newest look at the whole fabric showed the port."""
    looked_at = port.subnet.looked_at
    is_newest = port.seen_at is not None and looked_at is not None and port.seen_at >= looked_at
    return is_newest and port.seen_state != ABSENT


def _swap(pair: Pair) -> None:
    """Let the old row have the new card's GUID, HCA and what is said of it; the other row keeps the old GUID, alone."""
    old, new = pair.old, pair.new
    old_guid, new_guid, card = old.guid, new.guid, new.hca
    said = {
        name: getattr(new, name)
        for name in (
            "number", "state", "phys_state", "rate_text", "rate_gbps", "lid", "sm_lid", "subnet_prefix", "seen_at",
            "seen_node_guid", "seen_lid", "seen_sm_lid", "seen_state", "seen_description", "leaf_guid", "leaf_port",
            "testimony", "points",
        )
    }  # fmt: skip
    seen = {name: getattr(old, name) for name in said if name.startswith(("seen_", "leaf_"))}
    Port.objects.filter(pk=new.pk).update(guid=_placeholder(new))
    Port.objects.filter(pk=old.pk).update(
        guid=new_guid, hca=card, missing_since=None, confirmed_at=timezone.now(), confirmed_how=ownership.PERSON,
        home_leaf_guid=new.leaf_guid, home_leaf_port=new.leaf_port, **said,
    )  # fmt: skip
    # Whose the old card was stays known: no other tenant's server takes it before it is clean.
    Port.objects.filter(pk=new.pk).update(
        guid=old_guid, hca=None, confirmed_at=None, confirmed_how="", home_leaf_guid=None, home_leaf_port=None,
        former_tenant=old.former_tenant, missing_since=None, lid=None, sm_lid=None, state="", testimony="", points=[],
        **seen,
    )  # fmt: skip
    old.guid, old.hca = new_guid, card
    new.guid, new.hca = old_guid, None


def _columns(hca: HCA) -> dict[str, Any]:
    return {name: None if (value := getattr(hca, name)) is None else str(value) for name in _HCA_COLUMNS}


def _placeholder(port: Port) -> GUID:
    """A GUID that no port has while two rows swap theirs: locally administered, from the row's own number."""
    return GUID(f"0xfefe{port.pk:012x}")


def _device(port: Port) -> str:
    return "" if port.hca is None else port.hca.device


def _tenant_key(rows: Iterable[Replacement]) -> str:
    ids = [row.port_id for row in rows]
    return tenant_key(
        row.partition for row in Membership.objects.filter(port__in=ids).select_related("partition__tenant")
    )
