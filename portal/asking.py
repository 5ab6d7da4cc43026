"""What a tenant's people do with requests: ask, comment, withdraw. Nothing here touches the fabric or what is staged.

Each writes its event in the same transaction; the tenant's own part of the trail shows it. Sentences are for the
tenant: they name its own people and the provider, and nobody of the provider's.
"""

from collections.abc import Collection
from datetime import date
from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from inventory.models import Server, Subnet
from partitions import quotas
from partitions.models import Partition
from people.actor import actor_of
from people.models import Tenant, TenantRole, User
from portal import sight
from portal.door import Seat
from portal.errors import OverQuota, Refused, RequestMoved
from portal.models import RequestComment, RequestedServer, StorageOffer, TenantRequest

Kind, State = TenantRequest.Kind, TenantRequest.State

MOST_OPEN: Final = 20  # requests of a tenant that wait or are on their way
MOST_SERVERS: Final = 100  # of one request
MOST_COMMENTS: Final = 200
LONGEST: Final = 1000  # characters of a reason, an answer or a comment


@transaction.atomic
def ask_more_servers(
    *,
    seat: Seat,
    subnet: Subnet,
    count: int,
    why: str,
    sort: str = "",
    wanted_from: date | None = None,
    partition: Partition | None = None,
    actor: Actor | None = None,
) -> TenantRequest:
    """Ask for `count` servers of a sort in own words, into an own partition or any. Raises OverQuota, Refused."""
    tenant = _held(seat)
    if not 1 <= count <= MOST_SERVERS:
        raise Refused(
            gettext("%(count)s servers cannot be asked for at once. Nothing was asked. Ask for 1 to %(most)s.")
            % {"count": count, "most": MOST_SERVERS}
        )
    if wanted_from is not None and wanted_from < timezone.localdate():
        raise Refused(
            gettext("%(day)s is over. Nothing was asked. Give a day from today on, or none for at once.")
            % {"day": f"{wanted_from:%Y-%m-%d}"}
        )
    if partition is not None:
        _require_own(partition)
    if tenant.most_servers is not None:
        has = len(quotas.servers_wanted(tenant))
        open_ones = TenantRequest.objects.filter(tenant=tenant, kind=Kind.MORE_SERVERS, state=State.OPEN)
        asked = sum(number or 0 for number in open_ones.values_list("count", flat=True))
        if has + asked + count > tenant.most_servers:
            raise OverQuota(
                gettext(
                    "%(tenant)s has %(has)s servers, has asked for %(asked)s more, and may have %(most)s. Nothing was "
                    "asked. Ask for fewer, return servers first, or ask your provider to raise the number."
                )
                % {"tenant": tenant.name, "has": has, "asked": asked, "most": tenant.most_servers}
            )
    return _ask(
        seat, subnet, Kind.MORE_SERVERS, why, (), actor, count=count, sort=sort.strip(), wanted_from=wanted_from,
        partition=partition,
    )  # fmt: skip


@transaction.atomic
def ask_to_return(*, seat: Seat, servers: Collection[Server], why: str, actor: Actor | None = None) -> TenantRequest:
    """Ask that own `servers` go back to the provider. The caller has shown that they are in sight. Raises Refused."""
    _held(seat)
    if not servers:
        raise Refused(gettext("No server was chosen. Nothing was asked. Choose which of yours go back."))
    if len(servers) > MOST_SERVERS:
        raise Refused(
            gettext("%(count)s servers cannot go back at once. Nothing was asked. Choose at most %(most)s.")
            % {"count": len(servers), "most": MOST_SERVERS}
        )
    asked = RequestedServer.objects.filter(
        server__in=servers, request__tenant=seat.tenant, request__kind=Kind.RETURN_SERVERS
    )
    twice = asked.filter(request__state__in=(State.OPEN, State.APPROVED)).order_by("name").first()
    if twice is not None:
        raise Refused(
            gettext("%(server)s is in a request to go back already. Nothing was asked. Leave it out.")
            % {"server": twice.name}
        )
    subnets = {server.subnet_id: server.subnet for server in servers}
    if len(subnets) > 1:
        raise Refused(gettext("These servers are on several fabrics. Nothing was asked. Ask for one fabric at a time."))
    (subnet,) = subnets.values()
    return _ask(seat, subnet, Kind.RETURN_SERVERS, why, servers, actor)


@transaction.atomic
def ask_for_storage(
    *, seat: Seat, partition: Partition, storage: Partition, why: str, actor: Actor | None = None
) -> TenantRequest:
    """Ask that the servers of an own `partition` share `storage`, which must be offered. Raises Refused."""
    _held(seat)
    _require_own(partition)
    if not StorageOffer.objects.filter(partition=storage, partition__retired_at=None).exists():
        raise Refused(
            gettext("Your provider does not offer that storage any more. Nothing was asked. Load the page again.")
        )
    if storage.subnet_id != partition.subnet_id:
        raise Refused(
            gettext("%(storage)s is on another fabric than %(partition)s. Nothing was asked. Choose another one.")
            % {"storage": storage.name, "partition": partition.called}
        )
    same = TenantRequest.objects.not_over().filter(tenant=seat.tenant, partition=partition, storage=storage)
    if same.exists():
        raise Refused(
            gettext("That %(partition)s shares %(storage)s is asked for already. Nothing was asked.")
            % {"storage": storage.name, "partition": partition.called}
        )
    return _ask(seat, partition.subnet, Kind.SHARED_STORAGE, why, (), actor, partition=partition, storage=storage)


@transaction.atomic
def comment(*, seat: Seat, request: TenantRequest, text: str, actor: Actor | None = None) -> RequestComment:
    """Say something to a request of the tenant, also to one that is over. Raises Refused."""
    row = say(request, person=seat.person, by_provider=False, text=text)
    _record(request, Action.REQUEST_COMMENT, actor or actor_of(seat.person), reason=row.text)
    return row


@transaction.atomic
def withdraw(*, seat: Seat, request: TenantRequest, actor: Actor | None = None) -> TenantRequest:
    """Take a request back that nobody has answered: one's own, or any as the tenant's administrator. Raises Refused."""
    held = hold(request)
    if held.asked_by_id != seat.person.pk and seat.role != TenantRole.Role.ADMIN:
        raise Refused(
            gettext("%(who)s asked for it. Nothing was changed. Ask %(who)s or your administrator to withdraw it.")
            % {"who": held.asked_by}
        )
    require_state(held, State.OPEN, is_for_tenant=True)
    held.state, held.ended_at = State.WITHDRAWN, timezone.now()
    held.save(update_fields=["state", "ended_at"])
    _record(held, Action.REQUEST_WITHDRAW, actor or actor_of(seat.person))
    return held


# --- what deciding needs as well ----------------------------------------------------------------------------------
def hold(request: TenantRequest) -> TenantRequest:
    """The row as it is now, held until the transaction ends. A request comes before everything that it is about."""
    return TenantRequest.objects.select_for_update(of=("self",)).whole().get(pk=request.pk)


def require_state(held: TenantRequest, *wanted: TenantRequest.State, is_for_tenant: bool) -> None:
    """Raise RequestMoved unless the held row is in one of these states; it says what happened, to a tenant not by
    whom of the provider's.
    """
    if held.state in wanted:
        return
    at = held.ended_at or held.decided_at
    said = {
        State.OPEN: gettext("It is open again."),
        State.APPROVED: gettext("It was approved at %(at)s UTC."),
        State.DECLINED: gettext("It was declined at %(at)s UTC."),
        State.WITHDRAWN: gettext("It was withdrawn at %(at)s UTC."),
        State.DONE: gettext("It was done at %(at)s UTC."),
    }[State(held.state)] % {"at": f"{at:%Y-%m-%d %H:%M}" if at is not None else "–"}
    if not is_for_tenant and held.decided_by is not None and held.state != State.WITHDRAWN:
        said = f"{said} {gettext('%(who)s answered it.') % {'who': held.decided_by}}"
    mend = gettext("Nothing was changed. Load the page again; if something is missing, say so in a comment.")
    raise RequestMoved(f"{said} {mend}")


def say(request: TenantRequest, *, person: User, by_provider: bool, text: str) -> RequestComment:
    """Write a comment, without its event. Raises Refused for an empty one, a long one, or when there are too many."""
    said = text.strip()
    if not said or len(said) > LONGEST:
        raise Refused(gettext("A comment has 1 to %(most)s characters. Nothing was said.") % {"most": LONGEST})
    held = hold(request)
    if held.comments.count() >= MOST_COMMENTS:
        raise Refused(
            gettext("There are %(most)s comments, and that is the most. Nothing was said. Make another request.")
            % {"most": MOST_COMMENTS}
        )
    return RequestComment.objects.create(request=held, by=person, by_provider=by_provider, at=timezone.now(), text=said)


def subject_of(request: TenantRequest) -> Subject:
    """How the trail names a request: what it asks for, in English."""
    more = f"1 more server for {request.tenant}"
    label = {
        Kind.MORE_SERVERS: more if request.count == 1 else f"{request.count} more servers for {request.tenant}",
        Kind.RETURN_SERVERS: f"return of servers of {request.tenant}",
        Kind.SHARED_STORAGE: f"shared storage for {request.tenant}",
    }[Kind(request.kind)]
    return Subject(kind="request", key=request.public_id, label=label)


def _ask(
    seat: Seat, subnet: Subnet, kind: TenantRequest.Kind, why: str, servers: Collection[Server], actor: Actor | None,
    **fields: object,
) -> TenantRequest:  # fmt: skip
    reason = why.strip()
    if not reason or len(reason) > LONGEST:
        raise Refused(
            gettext("Say in 1 to %(most)s characters why: your provider decides by it. Nothing was asked.")
            % {"most": LONGEST}
        )
    waiting = TenantRequest.objects.not_over().filter(tenant=seat.tenant).count()
    if waiting >= MOST_OPEN:
        raise Refused(
            ngettext(
                "%(count)s request is not done yet, and that is the most. Nothing was asked. Withdraw one, or wait.",
                "%(count)s requests are not done yet, and that is the most. Nothing was asked. Withdraw one, or wait.",
                waiting,
            )
            % {"count": waiting}
        )
    made = TenantRequest.objects.create(
        tenant=seat.tenant, subnet=subnet, kind=kind, asked_by=seat.person, asked_at=timezone.now(), why=reason,
        **fields,
    )  # fmt: skip
    remember_servers(made, servers)
    _record(made, Action.REQUEST_ASK, actor or actor_of(seat.person), after=told_of(made), reason=reason)
    return made


def remember_servers(request: TenantRequest, servers: Collection[Server]) -> None:
    """Note which servers a request is about, beside those that are noted already."""
    known = set(request.servers.values_list("server", flat=True))
    RequestedServer.objects.bulk_create(
        RequestedServer(request=request, server=server, name=server.hostname)
        for server in servers
        if server.pk not in known
    )


def told_of(request: TenantRequest) -> dict[str, object]:
    """What an event says of a request: only what its tenant has said or may know."""
    said: dict[str, object] = {"kind": request.kind}
    if request.count is not None:
        said |= {
            "count": request.count,
            "sort": request.sort,
            "from": request.wanted_from and request.wanted_from.isoformat(),
        }
    if request.partition is not None:
        said["partition"] = request.partition.called
    if request.storage is not None:
        said["storage"] = request.storage.name
    if request.kind == Kind.RETURN_SERVERS:
        said["servers"] = sorted(request.servers.values_list("name", flat=True))
    return said


def _held(seat: Seat) -> Tenant:
    """The tenant, held: two people never ask past its quota, nor for the same."""
    return Tenant.objects.select_for_update(no_key=True).get(pk=seat.tenant.pk)


def _require_own(partition: Partition) -> None:
    fresh = Partition.objects.get(pk=partition.pk)
    if fresh.retired_at is not None:
        raise Refused(
            gettext("%(partition)s is retired. Nothing was asked. Choose another of your partitions.")
            % {"partition": fresh.called}
        )


def _record(request: TenantRequest, action: Action, actor: Actor, *, after: object = None, reason: str = "") -> None:
    record(
        action=action, actor=actor, subject=subject_of(request), after=after, reason=reason,
        tenant_key=request.tenant.public_id,
    )  # fmt: skip


def servers_of(seat: Seat, public_ids: Collection[str]) -> list[Server]:
    """The tenant's servers of these ids, in the order of their names; those that are not its own are left out."""
    return list(sight.own_servers(seat).filter(public_id__in=list(public_ids)[: MOST_SERVERS + 1]))
