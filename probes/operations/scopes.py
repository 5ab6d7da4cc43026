"""Probe sets, and how the pairs of a partition or probe set are probed."""

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from inventory.models import Subnet
from partitions.models import Partition
from people.errors import BadName
from people.names import plain_name
from probes.errors import ProbeRefused
from probes.models import ProbeHost, ProbeRun, ProbeScope, ProbeSet, ProbeSetMember
from probes.settings_of_scope import ScopeSettings


def scope_subject(scope: ProbeScope) -> Subject:
    """Name a scope in the trail: as the partition or the probe set that it is."""
    if scope.partition is not None:
        return Subject(kind="partition", key=scope.partition.public_id, label=scope.partition.name)
    assert scope.probe_set is not None  # noqa: S101  a constraint of the row
    return Subject(kind="probe-set", key=scope.probe_set.public_id, label=scope.probe_set.name)


def tenant_key_of(scope: ProbeScope) -> str:
    """The public id of the tenant whose scope it is; empty for the provider's and for probe sets."""
    tenant = scope.partition.tenant if scope.partition is not None else None
    return "" if tenant is None else tenant.public_id


@transaction.atomic
def create_probe_set(
    *, subnet: Subnet, name: str, actor: Actor, note: str = "", settings: ScopeSettings | None = None
) -> ProbeScope:
    """Make an empty probe set in `subnet` and return its scope; without `settings` it is switched off.

    `note` says on every page of it what the reader must know, for example that its ports are software.
    Raises ProbeRefused for a name that is empty, too long or taken.
    """
    try:
        name = plain_name(name)
    except BadName as error:
        raise ProbeRefused(str(error)) from error
    if not name or len(name) > 60:
        raise ProbeRefused("A probe set needs a name of up to 60 characters.")
    Subnet.objects.select_for_update(no_key=True).get(pk=subnet.pk)
    if ProbeSet.objects.filter(subnet=subnet, name__iexact=name).exists():
        raise ProbeRefused(f"Subnet {subnet} already has a probe set {name}. Choose another name.")
    probe_set = ProbeSet.objects.create(subnet=subnet, name=name, note=note.strip())
    settings = settings or ScopeSettings()
    scope = ProbeScope.objects.create(
        subnet=subnet, probe_set=probe_set, next_at=timezone.now(), **settings.to_columns()
    )
    record(
        action=Action.PROBE_SET_CREATE, actor=actor, subject=scope_subject(scope),
        after={"subnet": subnet.name, "note": probe_set.note, "settings": settings.to_event()},
    )  # fmt: skip
    return scope


@transaction.atomic
def add_to_probe_set(
    *, scope: ProbeScope, host: ProbeHost, actor: Actor, device: str = "", port: int = 0, interface: str = ""
) -> ProbeSetMember:
    """Add a host; `device` and `port` name the port it uses there (empty, 0: an active one that the host chooses)."""
    probe_set = scope.probe_set
    if probe_set is None:
        raise ProbeRefused(f"{scope} is a partition: its members come from the board.")
    if host.server.subnet_id != scope.subnet_id:
        raise ProbeRefused(f"{host} is not in subnet {scope.subnet}.")
    if ProbeSetMember.objects.filter(probe_set=probe_set, host=host).exists():
        raise ProbeRefused(f"{host} is in {probe_set} already.")
    member = ProbeSetMember.objects.create(
        probe_set=probe_set, host=host, device=device, port=port, interface=interface
    )
    record(
        action=Action.PROBE_SET_MEMBER, actor=actor, subject=scope_subject(scope),
        after={"added": host.server.hostname, "device": device, "port": port, "interface": interface},
    )  # fmt: skip
    return member


@transaction.atomic
def scope_of_partition(*, partition: Partition, actor: Actor) -> ProbeScope:
    """The scope of a partition; made, and switched off, when nobody asked for it before."""
    found = ProbeScope.objects.named().filter(partition=partition).first()
    if found is not None:
        return found
    Partition.objects.select_for_update().get(pk=partition.pk)
    settings = ScopeSettings()
    scope, is_new = ProbeScope.objects.get_or_create(
        partition=partition, defaults={"subnet": partition.subnet, "next_at": timezone.now()} | settings.to_columns()
    )
    if is_new:
        record(
            action=Action.PROBE_SETTINGS, actor=actor, subject=scope_subject(scope), after=settings.to_event(),
            tenant_key=tenant_key_of(scope),
        )  # fmt: skip
    return scope


@transaction.atomic
def change_settings(*, scope: ProbeScope, settings: ScopeSettings, actor: Actor, reason: str = "") -> ProbeScope:
    """Change how a scope is probed. What waits and is no longer asked for is dropped; the next tick is at once."""
    row = ProbeScope.objects.select_for_update().get(pk=scope.pk)
    before = ScopeSettings.of(row)
    if before == settings:
        return row
    now = timezone.now()
    for name, value in settings.to_columns().items():
        setattr(row, name, value)
    row.next_at = now
    row.save()
    waiting = ProbeRun.objects.filter(scope=row, state=ProbeRun.State.QUEUED).exclude(asked_by__gt="")
    if settings.is_enabled:
        waiting = waiting.exclude(profile__in=settings.profiles, mode=settings.mode)
    waiting.update(state=ProbeRun.State.DROPPED, finished_at=now, reason="The settings no longer ask for it.")
    record(
        action=Action.PROBE_SETTINGS, actor=actor, subject=scope_subject(row), reason=reason,
        before=before.to_event(), after=settings.to_event(), tenant_key=tenant_key_of(row),
    )  # fmt: skip
    return row
