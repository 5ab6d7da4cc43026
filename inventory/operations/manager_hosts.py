"""Manager hosts: enrol one with everything about it pinned, and pin it anew after a person has looked."""

import re

from django.db.models import Q
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import AlreadyThere, InventoryError
from inventory.guards import why_not_retire
from inventory.models import ManagerHost, Port, Subnet
from inventory.races import settle
from inventory.subjects import manager_host_subject
from subnet.guid import GUID

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")
_ADDRESS = re.compile(
    r"[A-Za-z0-9:][A-Za-z0-9.:-]{0,254}\Z"
)  # never begins with “-”: no program may take it for an option
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
_HOST_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{68}\Z")  # the only kind that `remote.ssh` takes: 51 bytes
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def enrol_manager_host(
    *,
    subnet: Subnet,
    name: str,
    address: str,
    ssh_port: int,
    ssh_user: str,
    host_key: str,
    port_guid: str,
    wrapper_digest: str,
    reader_digest: str,
    actor: Actor,
) -> ManagerHost:
    """Enrol the machine that runs one SM of `subnet`; its host key, wrapper and reader are pinned from then on.

    `port_guid` is the port its OpenSM is bound to (`opensm -g`): it gets a Port row without a server, so that no server
    can claim it, and is never offered to a partition. Digests are the SHA-256 that the install command printed.
    Raises InventoryError with the field that is wrong, AlreadyThere for a name or port that is enrolled, InvalidGUID.
    """
    guid = GUID(port_guid)
    key = _checked(name=name, address=address, ssh_port=ssh_port, ssh_user=ssh_user, host_key=host_key)
    _checked_digests(wrapper_digest, reader_digest)

    def change() -> ManagerHost:
        twin = ManagerHost.objects.filter(Q(subnet=subnet, name=name) | Q(port_guid=guid)).first()
        if twin is not None:
            raise AlreadyThere(
                f"Manager host {twin.name} with port {twin.port_guid} is enrolled already. "
                "Choose another name and port, or pin that one anew (manage.py repin_manager_host)."
            )
        port, _ = Port.objects.get_or_create(guid=guid, defaults={"subnet": subnet})
        if port.subnet_id != subnet.pk:
            raise AlreadyThere(f"Port {guid} is known in subnet {port.subnet}, so it cannot run the SM of {subnet}.")
        host = ManagerHost.objects.create(
            subnet=subnet,
            name=name,
            address=address,
            ssh_port=ssh_port,
            ssh_user=ssh_user,
            host_key=key,
            port_guid=guid,
            wrapper_digest=wrapper_digest,
            reader_digest=reader_digest,
        )
        record(
            action=Action.MANAGER_HOST_ENROL,
            actor=actor,
            subject=manager_host_subject(host),
            after={
                "subnet": subnet.name,
                "address": address,
                "ssh_port": ssh_port,
                "port_guid": str(guid),
                **_pins(host),
            },
        )
        return host

    return settle(change)


def repin_manager_host(
    *,
    manager_host: ManagerHost,
    host_key: str,
    wrapper_digest: str,
    reader_digest: str,
    actor: Actor,
    reason: str,
) -> ManagerHost:
    """Pin `manager_host` to a new host key, wrapper and reader, because a person has installed or checked them there.

    Raises InventoryError for a malformed value or without a reason.
    """
    if not reason.strip():
        raise InventoryError("Pinning a manager host anew needs a reason: it is how an impostor would be let in.")
    key = _checked_key(host_key)
    _checked_digests(wrapper_digest, reader_digest)

    def change() -> ManagerHost:
        host = ManagerHost.objects.select_for_update().get(pk=manager_host.pk)
        before = _pins(host)
        host.host_key, host.wrapper_digest, host.reader_digest = key, wrapper_digest, reader_digest
        host.save(update_fields=["host_key", "wrapper_digest", "reader_digest"])
        record(
            action=Action.MANAGER_HOST_CHANGE,
            actor=actor,
            subject=manager_host_subject(host),
            before=before,
            after=_pins(host),
            reason=reason.strip(),
        )
        return host

    return settle(change)


def retire_manager_host(*, manager_host: ManagerHost, actor: Actor, reason: str) -> ManagerHost:
    """Take `manager_host` out for good: nobody asks it any more, and its SM is a stranger from then on.

    Works without the machine's help, because a dead one is the usual case; whoever retires a living one stops OpenSM
    there first, or its SM is told as unregistered. Nothing is deleted: rollouts keep its name, which is free again.
    Raises InventoryError without a reason, for one that is retired, or while a rollout works with it.
    """
    if not reason.strip():
        raise InventoryError("Retiring a manager host needs a reason: the next person asks where the standby went.")

    def change() -> ManagerHost:
        host = ManagerHost.with_retired.select_for_update().get(pk=manager_host.pk)
        if host.retired_at is not None:
            raise InventoryError(f"Manager host {host.name} was retired already.")
        why = why_not_retire(host)
        if why:
            raise InventoryError(why)
        host.retired_at = timezone.now()
        host.save(update_fields=["retired_at"])
        record(
            action=Action.MANAGER_HOST_RETIRE,
            actor=actor,
            subject=manager_host_subject(host),
            before={"address": host.address, "port_guid": str(host.port_guid), **_pins(host)},
            reason=reason.strip(),
        )
        return host

    return settle(change)


def _pins(host: ManagerHost) -> dict[str, str]:
    return {"host_key": host.host_key, "wrapper_digest": host.wrapper_digest, "reader_digest": host.reader_digest}


def _checked(*, name: str, address: str, ssh_port: int, ssh_user: str, host_key: str) -> str:
    """The host key without its comment, when every value can be what it says it is."""
    if not _NAME.match(name):
        raise InventoryError(f"“{name[:60]}” cannot name a manager host. Use letters, digits, “-” or “_”.")
    if not _ADDRESS.match(address):
        raise InventoryError(f"“{address[:60]}” is neither a host name nor an IP address.")
    if not 1 <= ssh_port <= 65535:
        raise InventoryError(f"{ssh_port} is no TCP port; sshd usually listens on 22.")
    if not _USER.match(ssh_user):
        raise InventoryError(f"“{ssh_user[:40]}” is no account name.")
    return _checked_key(host_key)


def _checked_key(host_key: str) -> str:
    """`host_key` as `type base64`, without a comment."""
    key = " ".join(host_key.split()[:2])
    if not _HOST_KEY.match(key):
        raise InventoryError(
            "The host key is not one line such as “ssh-ed25519 AAAA…”. "
            "Take it from /etc/ssh/ssh_host_ed25519_key.pub on the manager host itself."
        )
    return key


def _checked_digests(*digests: str) -> None:
    for digest in digests:
        if not _DIGEST.match(digest):
            raise InventoryError(f"“{digest[:70]}” is not a SHA-256 in 64 lower-case hex digits.")
