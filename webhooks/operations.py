"""Everything that changes an endpoint. Each writes its event in the same transaction; no secret and no body does.

An address may say much about who it belongs to, so that events name its host alone.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from audit import nudge
from audit.actions import Action
from audit.record import record
from audit.values import SYSTEM, Actor, Subject
from people.errors import BadName
from people.models import Tenant
from people.names import plain_name
from remote import posting
from webhooks import sealing
from webhooks.errors import BadEndpoint, TooManyEndpoints
from webhooks.kinds import Kind, chosen
from webhooks.models import Delivery, Endpoint
from webhooks.networks import allowed_for
from webhooks.terms import DELIVER, DELIVER_WITHIN_S, KEPT, MOST_ENDPOINTS


@transaction.atomic
def create_endpoint(
    *, name: str, url: str, kinds: Iterable[str], actor: Actor, tenant: Tenant | None = None
) -> tuple[Endpoint, str]:
    """Create an endpoint of `tenant`, or of the operators; return it with its secret, which is shown this once.

    Nothing is resolved or asked here: that is the worker's. Raises BadEndpoint, TooManyEndpoints.
    """
    if tenant is not None:  # of two at once the second counts the first
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    if Endpoint.objects.filter(tenant=tenant).count() >= MOST_ENDPOINTS:
        raise TooManyEndpoints(f"There are {MOST_ENDPOINTS} endpoints. Remove one that nobody needs any more.")
    wanted = chosen(kinds, is_for_tenant=tenant is not None)
    try:
        name = plain_name(name)
    except BadName as error:
        raise BadEndpoint(str(error)) from error
    if not name or not wanted:
        raise BadEndpoint("Give it a name, and choose at least one thing that it is told of.")
    try:
        target = posting.parse(url, allowed=allowed_for(tenant))
    except posting.BadTarget as error:
        raise BadEndpoint(str(error)) from error
    secret = sealing.new_secret()
    endpoint = Endpoint.objects.create(
        tenant=tenant,
        name=name,
        host=target.host_header,
        url=sealing.sealed(url),
        kinds=wanted,
        secret=sealing.sealed(secret),
        created_at=timezone.now(),
    )
    _record(Action.WEBHOOK_CREATE, endpoint, actor, after={"host": target.host, "kinds": wanted})
    return endpoint, secret


@transaction.atomic
def renew_secret(*, endpoint: Endpoint, actor: Actor) -> str:
    """Sign with another secret from now on; return it, to be shown this once."""
    secret = sealing.new_secret()
    Endpoint.objects.filter(pk=endpoint.pk).update(secret=sealing.sealed(secret))
    _record(Action.WEBHOOK_SECRET, endpoint, actor)
    return secret


@transaction.atomic
def switch_off(*, endpoint: Endpoint, actor: Actor, because: str) -> None:
    """Tell it nothing any more, and give up what waits. Idempotent."""
    _off(endpoint, actor, because, action=Action.WEBHOOK_OFF)


@transaction.atomic
def give_up(*, endpoint: Endpoint, because: str) -> None:
    """Switch off an endpoint that takes nothing: one event for all that waited, however many."""
    _off(endpoint, SYSTEM, because, action=Action.WEBHOOK_GIVE_UP)


@transaction.atomic
def switch_on(*, endpoint: Endpoint, actor: Actor) -> None:
    """Tell it of what happens from now on. Idempotent."""
    held = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    if held.off_since is None:
        return
    held.off_since, held.off_because = None, ""
    held.save(update_fields=["off_since", "off_because"])
    _record(Action.WEBHOOK_ON, held, actor)


@transaction.atomic
def send_test(*, endpoint: Endpoint, actor: Actor) -> Delivery:
    """Queue a message that says nothing."""
    now = timezone.now()
    said: dict[str, object] = {"type": Kind.TEST.value, "at": now.isoformat(timespec="milliseconds")}
    delivery = Delivery.objects.create(
        endpoint=endpoint, kind=Kind.TEST.value, said=said, created_at=now, next_try_at=now
    )
    transaction.on_commit(lambda: nudge.task(DELIVER, {}, within_s=DELIVER_WITHIN_S), robust=True)
    _record(Action.WEBHOOK_TEST, endpoint, actor)
    return delivery


@transaction.atomic
def remove_endpoint(*, endpoint: Endpoint, actor: Actor) -> None:
    """Forget an endpoint with all that waited for it."""
    subject, tenant_key = _subject(endpoint), _tenant_key(endpoint)
    waiting = endpoint.deliveries.waiting().count()
    endpoint.delete()
    record(
        action=Action.WEBHOOK_REMOVE, actor=actor, subject=subject, before={"waiting": waiting}, tenant_key=tenant_key
    )


def forget_old(*, now: datetime) -> int:
    """Remove deliveries that are over for two weeks; what they were about is in the trail."""
    removed, _ = Delivery.objects.filter(finished_at__lt=now - KEPT).delete()
    return removed


def _off(endpoint: Endpoint, actor: Actor, because: str, *, action: Action) -> None:
    now = timezone.now()
    held = Endpoint.objects.select_for_update().get(pk=endpoint.pk)
    if held.off_since is not None:
        return
    held.off_since, held.off_because = now, because
    held.save(update_fields=["off_since", "off_because"])
    given_up = held.deliveries.waiting().update(state=Delivery.State.GIVEN_UP, finished_at=now)
    _record(action, held, actor, after={"given_up": given_up}, reason=because)


def _record(action: Action, endpoint: Endpoint, actor: Actor, *, after: object = None, reason: str = "") -> None:
    record(
        action=action,
        actor=actor,
        subject=_subject(endpoint),
        after=after,
        reason=reason,
        tenant_key=_tenant_key(endpoint),
    )


def _subject(endpoint: Endpoint) -> Subject:
    return Subject(kind="webhook", key=endpoint.public_id, label=endpoint.name)


def _tenant_key(endpoint: Endpoint) -> str:
    return endpoint.tenant.public_id if endpoint.tenant is not None else ""
