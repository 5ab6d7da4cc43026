"""What an operator does with requests: approve, decline, open again, comment; and which storage is offered.

Approving does the work as far as it is ours, and in the same transaction: it stages what was asked for, by the same
operations as the board. What is staged goes out like any other change, as a plan that somebody looks at; the request
is done when the fabric proves it (`portal/finishing.py`). Refusals are written for operators.
"""

from collections.abc import Collection
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from audit.actions import Action
from audit.record import record
from inventory.models import Port, Server
from partitions import operations as partitions
from partitions.doer import Doer, as_actor, as_person
from partitions.errors import PartitionsError
from partitions.models import Membership, Partition, StagedChange
from partitions.subjects import partition_subject
from people.models import User
from portal import finishing
from portal.asking import LONGEST, hold, remember_servers, require_state, say, subject_of
from portal.errors import Refused
from portal.models import RequestComment, StorageOffer, TenantRequest
from subnet.errors import SubnetError

Kind, State = TenantRequest.Kind, TenantRequest.State

MOST_SHOWN: Final = 200  # servers of the pool on a page

type Moves = list[tuple[Server, Partition | None]]


@transaction.atomic
def approve(
    *,
    request: TenantRequest,
    actor: Doer,
    answer: str = "",
    servers: Collection[Server] = (),
    partition: Partition | None = None,
) -> TenantRequest:
    """Stage what an open request asks for; `answer` is what the tenant reads.

    More servers: `servers` are those chosen from the pool, `partition` is where they come, unless the tenant named one.
    Raises RequestMoved when somebody was quicker, and Refused for whatever keeps it from being staged; then nothing is.
    """
    held, person = hold(request), as_person(actor)
    require_state(held, State.OPEN, is_for_tenant=False)
    said = _checked(answer)
    if held.tenant.suspended_at is not None:
        raise Refused(
            gettext("%(tenant)s is suspended. Nothing was staged. Let its people in again, or decline this.")
            % {"tenant": held.tenant}
        )
    chosen, moves, target = _work(held, servers, partition, said)
    if held.kind == Kind.MORE_SERVERS:
        held.partition = target
    reason = f"request {held.public_id}{': ' if said else ''}{said}"
    if moves:
        _stage(moves, target, keep=held.kind == Kind.SHARED_STORAGE, actor=actor, reason=reason)
    remember_servers(held, chosen)
    _decide(held, State.APPROVED, person, said)
    after = {"servers": sorted(server.hostname for server in chosen)} if held.kind == Kind.RETURN_SERVERS else None
    # Names of servers that the tenant does not have yet are not its to read: the staging's own events have them.
    _record(held, Action.REQUEST_APPROVE, actor, after=after or {"servers": len(chosen)}, reason=said)
    finishing.finish_if_done(held)
    return held


@transaction.atomic
def decline(*, request: TenantRequest, actor: Doer, answer: str) -> TenantRequest:
    """Say no, and why: the tenant reads it. Raises RequestMoved, Refused without an answer."""
    held, person = hold(request), as_person(actor)
    require_state(held, State.OPEN, is_for_tenant=False)
    said = _checked(answer)
    if not said:
        raise Refused(gettext("Say why: the tenant reads it. Nothing was changed."))
    _decide(held, State.DECLINED, person, said)
    _record(held, Action.REQUEST_DECLINE, actor, reason=said)
    return held


@transaction.atomic
def reopen(*, request: TenantRequest, actor: Doer, answer: str = "") -> TenantRequest:
    """Open an approved request again, of which nothing is staged any more. Raises RequestMoved, Refused."""
    held, person = hold(request), as_person(actor)
    require_state(held, State.APPROVED, is_for_tenant=False)
    said = _checked(answer)
    staged = staged_for(held).select_related("port__hca__server").first()
    if staged is not None:
        raise Refused(
            gettext("%(port)s is still staged for it. Nothing was changed. Discard that on the board first.")
            % {"port": staged.port.hca.server if staged.port.hca is not None else staged.port}
        )
    if held.kind != Kind.RETURN_SERVERS:
        held.servers.all().delete()
    _decide(held, State.OPEN, person, said)
    _record(held, Action.REQUEST_REOPEN, actor, reason=said)
    return held


@transaction.atomic
def comment(*, request: TenantRequest, actor: Doer, text: str) -> RequestComment:
    """Say something to the tenant; it reads that its provider did. Raises Refused."""
    row = say(request, person=as_person(actor), by_provider=True, text=text)
    _record(request, Action.REQUEST_COMMENT, actor, reason=row.text)
    return row


@transaction.atomic
def offer_storage(*, partition: Partition, words: str, actor: Doer) -> StorageOffer:
    """Let tenants ask to share a partition of the provider's, under its name and `words`. Raises Refused."""
    held = Partition.objects.select_for_update(no_key=True, of=("self",)).get(pk=partition.pk)
    if held.tenant_id is not None or held.retired_at is not None:
        raise Refused(
            gettext("%(partition)s is not a partition of the provider's in use. Nothing was offered. Choose another.")
            % {"partition": held}
        )
    said = " ".join(words.split())[:120]
    before = StorageOffer.objects.filter(partition=held).first()
    if before is not None and before.words == said:
        return before
    made, _ = StorageOffer.objects.update_or_create(
        partition=held, defaults={"words": said, "by": as_person(actor), "at": timezone.now()}
    )
    record(action=Action.STORAGE_OFFER, actor=as_actor(actor), subject=partition_subject(held), after={"words": said})
    return made


@transaction.atomic
def keep_storage(*, partition: Partition, actor: Doer) -> None:
    """Offer it no more; who shares it already goes on. Idempotent."""
    offer = StorageOffer.objects.select_for_update().filter(partition=partition).first()
    if offer is not None:
        offer.delete()
        record(action=Action.STORAGE_KEEP, actor=as_actor(actor), subject=partition_subject(partition))


# --- what is there to choose from ---------------------------------------------------------------------------------
def pool(request: TenantRequest) -> QuerySet[Server]:
    """The servers that may come to the tenant now: in no partition, staged into none, clean of every other tenant."""
    ports = Port.objects.filter(hca__server=OuterRef("pk"))
    infiniband = ports.filter(link_layer=Port.LinkLayer.INFINIBAND)
    of_others = ports.exclude(former_tenant=None).exclude(former_tenant=request.tenant)
    free = Server.objects.filter(Exists(infiniband), subnet=request.subnet).exclude(
        Q(Exists(Membership.objects.filter(port__hca__server=OuterRef("pk"))))
        | Q(Exists(StagedChange.objects.filter(port__hca__server=OuterRef("pk"))))
        | Q(Exists(of_others))
    )
    return free.filter(Q(tenant=None) | Q(tenant=request.tenant)).order_by("hostname")


def staged_for(request: TenantRequest) -> QuerySet[StagedChange]:
    """What is staged now of what an approved request asks for."""
    its = StagedChange.objects.filter(port__hca__server__in=request.servers.values("server"))
    theirs = Q(partition__tenant=request.tenant) | Q(partition__tenant=None)
    if request.kind == Kind.RETURN_SERVERS:
        return its.filter(theirs, kind_to=None)
    if request.kind == Kind.SHARED_STORAGE:
        return its.filter(partition=request.storage, kind_from=None)
    return its.filter(partition__tenant=request.tenant, kind_from=None)


def _work(
    held: TenantRequest, servers: Collection[Server], partition: Partition | None, said: str
) -> tuple[list[Server], Moves, Partition | None]:
    """The servers it is about, the moves to stage, and where they go; None is Unassigned. Raises Refused."""
    if held.kind == Kind.MORE_SERVERS:
        return _more(held, list(servers), partition, said)
    if held.kind == Kind.RETURN_SERVERS:
        return _returned(held)
    return _shared(held)


def _more(
    held: TenantRequest, servers: list[Server], partition: Partition | None, said: str
) -> tuple[list[Server], Moves, Partition | None]:
    target = held.partition or partition
    if target is None:
        raise Refused(gettext("Choose in which partition of %(tenant)s they come.") % {"tenant": held.tenant})
    if target.tenant_id != held.tenant_id or target.subnet_id != held.subnet_id or target.retired_at is not None:
        raise Refused(
            gettext("%(partition)s takes no servers for it. Choose a partition of %(tenant)s that is in use.")
            % {"partition": target, "tenant": held.tenant}
        )
    asked = held.count or 0
    if not 1 <= len(servers) <= asked:
        raise Refused(
            gettext("%(tenant)s asked for %(asked)s, and %(chosen)s were chosen. Choose from 1 to %(asked)s.")
            % {"tenant": held.tenant, "asked": asked, "chosen": len(servers)}
        )
    if len(servers) < asked and not said:
        raise Refused(gettext("These are fewer than were asked for. Say why: the tenant reads it."))
    free = set(pool(held).filter(pk__in=[server.pk for server in servers]).values_list("pk", flat=True))
    taken = [server for server in servers if server.pk not in free]
    if taken:
        raise Refused(
            gettext(
                "%(server)s is not in the pool any more: it is in a partition, staged into one, or not clean of "
                "another tenant. Nothing was staged. Load the page again and choose another."
            )
            % {"server": taken[0]}
        )
    return servers, [(server, None) for server in servers], target


def _returned(held: TenantRequest) -> tuple[list[Server], Moves, None]:
    """Each server out of everything that the tenant has it in, and out of what it shares."""
    servers = list(Server.objects.filter(pk__in=held.servers.values("server")).order_by("hostname"))
    theirs = Q(partition__tenant=held.tenant) | Q(partition__tenant=None)
    leaving = StagedChange.objects.filter(port=OuterRef("port"), partition=OuterRef("partition"), kind_to=None)
    for server in servers:
        others = Membership.objects.filter(port__hca__server=server).exclude(theirs).exists()
        bound = Port.objects.filter(hca__server=server).exclude(former_tenant=None)
        if others or bound.exclude(former_tenant=held.tenant).exists():
            raise Refused(
                gettext(
                    "%(server)s is not %(tenant)s’s any more. Nothing was staged. Decline the request and say so, or "
                    "ask in a comment."
                )
                % {"server": server, "tenant": held.tenant}
            )
    by_server = {server.pk: server for server in servers}
    members = Membership.objects.filter(theirs, port__hca__server__in=servers).exclude(Exists(leaving))
    places = set(members.values_list("port__hca__server", "partition"))
    joins = StagedChange.objects.filter(theirs, port__hca__server__in=servers, kind_from=None)
    places |= set(joins.values_list("port__hca__server", "partition"))
    known = Partition.objects.select_related("tenant").in_bulk({partition for _, partition in places})
    moves: Moves = [(by_server[server], known[partition]) for server, partition in sorted(places)]
    return servers, moves, None


def _shared(held: TenantRequest) -> tuple[list[Server], Moves, Partition | None]:
    """Each server of the partition into the storage beside it, as a limited member: the rule of the board."""
    partition, storage = held.partition, held.storage
    assert partition is not None and storage is not None  # noqa: S101, PT018  asked so
    if storage.retired_at is not None or partition.retired_at is not None:
        raise Refused(
            gettext("%(partition)s or %(storage)s is retired. Nothing was staged. Decline the request and say so.")
            % {"partition": partition, "storage": storage}
        )
    leaves = StagedChange.objects.filter(port=OuterRef("port"), partition=OuterRef("partition"), kind_to=None)
    members = Membership.objects.filter(partition=partition).exclude(Exists(leaves))
    in_it = Exists(members.filter(port__hca__server=OuterRef("pk")))
    servers = list(Server.objects.filter(in_it).order_by("hostname"))
    if not servers:
        raise Refused(
            gettext("No server is in %(partition)s, so there is nothing to share. Nothing was staged.")
            % {"partition": partition}
        )
    there = Membership.objects.filter(partition=storage, port__hca__server__in=servers).exclude(Exists(leaves))
    coming = StagedChange.objects.filter(partition=storage, port__hca__server__in=servers).exclude(kind_to=None)
    known = {*there.values_list("port__hca__server", flat=True), *coming.values_list("port__hca__server", flat=True)}
    return servers, [(server, None) for server in servers if server.pk not in known], storage


def _stage(moves: Moves, target: Partition | None, *, keep: bool, actor: Doer, reason: str) -> None:
    """All of it or nothing. Raises Refused with the board's own sentence."""
    try:
        outcomes = partitions.stage_moves(moves=moves, target=target, keep=keep, actor=actor, reason=reason)
    except (PartitionsError, SubnetError) as error:
        raise Refused(f"{error} {gettext('Nothing was staged.')}") from error
    refused = [one.refusal for one in outcomes if one.refusal]
    if refused:
        raise Refused(f"{refused[0]} {gettext('Nothing was staged.')}")


def _checked(answer: str) -> str:
    said = answer.strip()
    if len(said) > LONGEST:
        raise Refused(gettext("An answer has at most %(most)s characters. Nothing was changed.") % {"most": LONGEST})
    return said


def _decide(held: TenantRequest, state: TenantRequest.State, person: User, answer: str) -> None:
    now = timezone.now()
    held.state, held.answer, held.decided_by, held.decided_at = state, answer, person, now
    held.ended_at = now if state == State.DECLINED else None
    held.save(update_fields=["state", "answer", "decided_by", "decided_at", "ended_at", "partition"])


def _record(held: TenantRequest, action: Action, actor: Doer, *, after: object = None, reason: str = "") -> None:
    record(
        action=action, actor=as_actor(actor), subject=subject_of(held), after=after, reason=reason,
        tenant_key=held.tenant.public_id,
    )  # fmt: skip
