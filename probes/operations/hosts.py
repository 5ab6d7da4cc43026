"""Servers that probes may reach, and tenants that let them."""

import re
from typing import Final

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor, Subject
from inventory.models import Server
from people.actor import tenant_subject
from people.models import Tenant
from probes.errors import ProbeRefused
from probes.models import ProbeConsent, ProbeHost, ProbeRun

_DIGEST = re.compile(r"\A[0-9a-f]{64}\Z", re.ASCII)
_HOST_KEY = re.compile(r"\Assh-ed25519 [A-Za-z0-9+/=]{60,120}( .*)?\Z", re.ASCII)
_ADDRESS = re.compile(r"\A[A-Za-z0-9.:_-]{1,255}\Z", re.ASCII)
_USER = re.compile(r"\A[a-z_][a-z0-9_-]{0,31}\Z", re.ASCII)
_PINNED: Final = ("address", "ssh_port", "ssh_user", "host_key", "program_digest", "wrapper_digest")


@transaction.atomic
def add_probe_host(
    *,
    server: Server,
    address: str,
    ssh_user: str,
    host_key: str,
    program_digest: str,
    wrapper_digest: str,
    actor: Actor,
    ssh_port: int = 22,
) -> ProbeHost:
    """Let probes reach `server` at `address`; a withdrawn one comes back with what is given now.

    `host_key` is pinned ("ssh-ed25519 AAAA…"), so are the SHA-256 of the installed on-host program and of its forced
    command, which the installer prints. Raises ProbeRefused.
    """
    pinned = _checked(address, ssh_port, ssh_user, host_key, program_digest, wrapper_digest)
    host = ProbeHost.objects.select_for_update().filter(server=server).first()
    if host is not None and host.withdrawn_at is None:
        raise ProbeRefused(f"{server} is a probe host already. Change it, or withdraw it first.")
    if host is None:
        host = ProbeHost(server=server)
    for name, value in pinned.items():
        setattr(host, name, value)
    host.withdrawn_at = None
    host.save()
    record(action=Action.PROBE_HOST_ADD, actor=actor, subject=_subject(host), after=pinned)
    return host


@transaction.atomic
def change_probe_host(
    *,
    host: ProbeHost,
    actor: Actor,
    reason: str,
    address: str | None = None,
    ssh_port: int | None = None,
    ssh_user: str | None = None,
    host_key: str | None = None,
    program_digest: str | None = None,
    wrapper_digest: str | None = None,
) -> ProbeHost:
    """Pin something anew, after the host was moved or its program installed again; what is None stays.

    Raises ProbeRefused for a malformed value or without a reason.
    """
    if not reason.strip():
        raise ProbeRefused("Pinning a probe host anew needs a reason: it is how an impostor would be let in.")
    host = ProbeHost.objects.select_for_update().get(pk=host.pk)
    before = {name: getattr(host, name) for name in _PINNED}
    given = {
        "address": address, "ssh_port": ssh_port, "ssh_user": ssh_user, "host_key": host_key,
        "program_digest": program_digest, "wrapper_digest": wrapper_digest,
    }  # fmt: skip
    wanted = before | {name: value for name, value in given.items() if value is not None}
    pinned = _checked(**wanted)
    if pinned == before:
        return host
    for name, value in pinned.items():
        setattr(host, name, value)
    host.save()
    record(
        action=Action.PROBE_HOST_CHANGE, actor=actor, subject=_subject(host), before=before, after=pinned,
        reason=reason.strip(),
    )  # fmt: skip
    return host


@transaction.atomic
def withdraw_probe_host(*, host: ProbeHost, actor: Actor, reason: str = "") -> None:
    """Let no probe reach the host any more; its past runs stay, what waits is dropped."""
    host = ProbeHost.objects.select_for_update().get(pk=host.pk)
    if host.withdrawn_at is not None:
        return
    now = timezone.now()
    host.withdrawn_at = now
    host.save(update_fields=["withdrawn_at"])
    waiting = ProbeRun.objects.touching(host.server).filter(state=ProbeRun.State.QUEUED)
    dropped = waiting.update(state=ProbeRun.State.DROPPED, finished_at=now, reason="The host was withdrawn.")
    record(
        action=Action.PROBE_HOST_WITHDRAW, actor=actor, subject=_subject(host), reason=reason,
        after={"dropped_runs": dropped},
    )  # fmt: skip


@transaction.atomic
def set_consent(*, tenant: Tenant, is_given: bool, actor: Actor, reason: str = "") -> ProbeConsent:
    """Note whether `tenant` lets probes run on its servers. Without it only the control plane is asked."""
    consent = ProbeConsent.objects.select_for_update().filter(tenant=tenant).first()
    was_given = consent is not None and consent.is_given
    if consent is not None and consent.is_given == is_given:
        return consent
    consent = consent or ProbeConsent(tenant=tenant)
    consent.is_given, consent.at, consent.by_name = is_given, timezone.now(), actor.name[:150]
    consent.save()
    record(
        action=Action.PROBE_CONSENT, actor=actor, subject=tenant_subject(tenant), reason=reason,
        before={"consents": was_given}, after={"consents": is_given}, tenant_key=tenant.public_id,
    )  # fmt: skip
    return consent


def _checked(
    address: str, ssh_port: int, ssh_user: str, host_key: str, program_digest: str, wrapper_digest: str
) -> dict[str, str | int]:
    """What is pinned of a host, or ProbeRefused. The address becomes part of no command, but of pages and logs."""
    if not _ADDRESS.match(address):
        raise ProbeRefused(f"“{address[:60]}” is no host name or IP address.")
    if not 1 <= ssh_port <= 65_535:
        raise ProbeRefused(f"{ssh_port} is no TCP port.")
    if not _USER.match(ssh_user):
        raise ProbeRefused(f"“{ssh_user[:40]}” is no name of an account.")
    if not _HOST_KEY.match(host_key):
        raise ProbeRefused("The host key is no Ed25519 key. Copy the line of ssh_host_ed25519_key.pub on the host.")
    for digest, what in ((program_digest, "on-host program"), (wrapper_digest, "forced command")):
        if not _DIGEST.match(digest):
            raise ProbeRefused(f"The digest of the {what} is no SHA-256 in hex. The installer prints it.")
    return {
        "address": address, "ssh_port": ssh_port, "ssh_user": ssh_user, "host_key": host_key,
        "program_digest": program_digest, "wrapper_digest": wrapper_digest,
    }  # fmt: skip


def _subject(host: ProbeHost) -> Subject:
    return Subject(kind="probe-host", key=host.public_id, label=host.server.hostname)
