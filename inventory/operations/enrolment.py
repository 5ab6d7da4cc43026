"""Enrolment: tokens that let servers in (`enrolling.py` does), and the credential each of them then has for itself."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import CredentialRefused, InventoryError
from inventory.models import EnrolmentToken, Server, ServerCredential, Subnet
from inventory.races import settle
from inventory.subjects import server_actor, server_subject, token_subject
from inventory.together import Steps, Wish, answer
from people.errors import BadName
from people.names import plain_name

LONGEST_LIFETIME: Final = timedelta(days=7)
_PATTERN = re.compile(r"[a-z0-9._*?\[\]!-]{1,253}\Z")

type Address = IPv4Address | IPv6Address


def digest_of(secret: str) -> str:
    """Give the SHA-256 under which a token or credential is stored; both are random, so it needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create_enrolment_token(
    *,
    subnet: Subnet,
    name: str,
    uses: int,
    lifetime: timedelta,
    actor: Actor,
    rack: str = "",
    hostnames: str = "",
    networks: str = "",
) -> str:
    """Create a token with which `uses` servers can enrol in `subnet` within `lifetime`; give it, this once.

    Only its digest is stored. A token for more than one server is for a rack: `rack`, or else its name. `hostnames`
    (patterns as in a shell, `r12-*`) and `networks` (`10.1.12.0/24`), each separated by commas, narrow down who may
    use it. Raises InventoryError for no name, fewer than one use, a life of over 7 days, or a scope nobody can meet.
    """
    name, rack = _named(name), _named(rack)
    if not name or len(name) > 60:
        raise InventoryError("Name the token in 1 to 60 characters, for instance after the rack it is for.")
    if not 1 <= uses <= 100_000:
        raise InventoryError(f"A token cannot be for {uses} servers; say how many will use it.")
    if not timedelta(0) < lifetime <= LONGEST_LIFETIME:
        raise InventoryError(f"A token lives for at least a moment and at most {LONGEST_LIFETIME.days} days.")
    if len(rack) > 60:
        raise InventoryError("Name the rack in at most 60 characters.")
    scope = {
        "rack": rack or (name if uses > 1 else ""),
        "hostnames": _patterns(hostnames),
        "networks": _networks(networks),
    }
    secret = f"fui_enrol_{secrets.token_urlsafe(32)}"

    def change() -> None:
        token = EnrolmentToken.objects.create(
            subnet=subnet,
            name=name,
            digest=digest_of(secret),
            uses_left=uses,
            expires_at=timezone.now() + lifetime,
            **scope,
        )
        after = {"subnet": subnet.name, "uses": uses, "expires_at": token.expires_at.isoformat(), **scope}
        record(action=Action.ENROLMENT_TOKEN_CREATE, actor=actor, subject=token_subject(token), after=after)

    settle(change)
    return secret


def _named(text: str) -> str:
    """A name as the names of people and tenants are; raise InventoryError for one with characters that nobody sees."""
    try:
        return plain_name(text)
    except BadName as error:
        raise InventoryError(str(error)) from error


def _patterns(text: str) -> str:
    """Patterns of host names, tidied; raise InventoryError for one that no host name can match."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    for word in words:
        if not _PATTERN.match(word):
            raise InventoryError(f"“{word[:60]}” is no pattern of host names. Write for instance r12-* or r12-0?.")
    return _joined(words, "patterns of host names")


def _networks(text: str) -> str:
    """IP networks, tidied; raise InventoryError for what is none."""
    words = []
    for word in filter(None, map(str.strip, text.split(","))):
        try:
            words.append(str(ip_network(word)))
        except ValueError as error:
            raise InventoryError(f"“{word[:60]}” is no IP network. Write for instance 10.1.12.0/24.") from error
    return _joined(words, "networks")


def _joined(words: list[str], what: str) -> str:
    joined = ",".join(words)
    if len(joined) > 255:
        raise InventoryError(f"These are too many {what} for one token; create several.")
    return joined


def revoke_enrolment_token(*, token: EnrolmentToken, actor: Actor, reason: str) -> bool:
    """Make `token` worthless from now on; whether it was worth anything. Servers it let in stay enrolled."""

    def change() -> bool:
        row = EnrolmentToken.objects.select_for_update().get(pk=token.pk)
        now = timezone.now()
        if row.revoked_at is not None or row.uses_left == 0 or row.expires_at <= now:
            return False
        row.revoked_at = now
        row.save(update_fields=["revoked_at"])
        record(
            action=Action.ENROLMENT_TOKEN_REVOKE,
            actor=actor,
            subject=token_subject(row),
            before={"uses": row.uses_left, "expires_at": row.expires_at.isoformat()},
            reason=reason,
        )
        return True

    return settle(change)


def server_of_credential(*, credential: str) -> Server:
    """Give the server whose own, unrevoked credential this is; raise CredentialRefused otherwise."""
    return shown_credential(credential=credential).server


def shown_credential(*, credential: str) -> ServerCredential:
    """Give the credential that a server shows, with its server; raise CredentialRefused otherwise.

    A new credential that is shown for the first time takes over: the one it replaces is revoked.
    """
    return answer(showing(credential=credential))


def showing(*, credential: str) -> Steps[ServerCredential]:
    """As `shown_credential`, looked up in one query with what others show at the same time."""
    digest = digest_of(credential)
    found: ServerCredential | None = yield Wish(_credentials, digest, frozenset())
    if found is None:
        raise CredentialRefused("The server's credential is unknown or was revoked. Enrol the server anew.")
    if found.replaces_id is not None:
        settle(lambda: _take_over(found))
    return found


def _credentials(digests: Sequence[str]) -> list[ServerCredential | None]:
    rows = ServerCredential.objects.select_related("server").defer("server__report")
    found = {row.digest: row for row in rows.filter(digest__in=digests, revoked_at=None)}
    return [found.get(digest) for digest in digests]


def _take_over(credential: ServerCredential) -> None:
    row = ServerCredential.objects.select_for_update().get(pk=credential.pk)
    if row.replaces_id is None or row.revoked_at is not None:
        return  # another request of the same server was here first, or an operator took it away
    others = row.server.credentials.filter(revoked_at=None).exclude(pk=row.pk)
    revoked = list(others.values_list("digest", flat=True))
    others.update(revoked_at=timezone.now())
    row.replaces = credential.replaces = None
    row.save(update_fields=["replaces"])
    record(
        action=Action.SERVER_CREDENTIAL_ROTATE,
        actor=server_actor(row.server),
        subject=server_subject(row.server),
        before={"credential": [digest[:12] for digest in revoked]},
        after={"credential": row.digest[:12], "in_use": True},
    )


def rotate_credential(*, credential: str, new_digest: str) -> Server:
    """Let the server that shows `credential` use the secret behind `new_digest` instead.

    Both are valid until the new one is shown for the first time: an answer that gets lost locks nobody out, and the
    same request again changes nothing. Raises CredentialRefused for one that is unknown, revoked, or itself not in
    use yet, and for a new one that is somebody's already.
    """

    def change() -> Server:
        rows = ServerCredential.objects.select_related("server").defer("server__report")
        old = rows.select_for_update(of=("self",)).filter(digest=digest_of(credential), revoked_at=None).first()
        if old is None:
            raise CredentialRefused("The server's credential is unknown or was revoked. Enrol the server anew.")
        known = ServerCredential.objects.filter(digest=new_digest).first()
        if known is not None:
            if known.replaces_id == old.pk and known.revoked_at is None:
                return old.server
            raise CredentialRefused("The new credential is in use already. Make another one.")
        # One successor at a time: of two that claim to be the server, the second announcement stands.
        ServerCredential.objects.filter(replaces=old, revoked_at=None).update(revoked_at=timezone.now())
        ServerCredential.objects.create(server=old.server, digest=new_digest, token_id=old.token_id, replaces=old)
        record(
            action=Action.SERVER_CREDENTIAL_ROTATE,
            actor=server_actor(old.server),
            subject=server_subject(old.server),
            before={"credential": [old.digest[:12]]},
            after={"credential": new_digest[:12], "in_use": False},
        )
        return old.server

    return settle(change)


def ask_for_rotation(*, server: Server, actor: Actor, reason: str = "") -> bool:
    """Have `server` make itself a new credential with its next report; whether that is news.

    The old one stays valid until the new one is shown: nobody is locked out. Raises InventoryError when the server has
    no credential that could be rotated.
    """

    def change() -> bool:
        valid = server.credentials.select_for_update().filter(revoked_at=None, replaces=None)
        if not valid.exists():
            raise InventoryError(f"{server} has no valid credential. It must enrol anew, with a token.")
        if not valid.filter(is_to_be_renewed=False).exists():
            return False
        valid.update(is_to_be_renewed=True)
        record(
            action=Action.SERVER_CREDENTIAL_ASK,
            actor=actor,
            subject=server_subject(server),
            reason=reason,
        )
        return True

    return settle(change)


def revoke_credentials(*, server: Server, actor: Actor, reason: str) -> int:
    """Make every credential of `server` worthless, so that it must enrol anew; give how many there were."""

    def change() -> int:
        count = server.credentials.filter(revoked_at=None).update(revoked_at=timezone.now())
        if count:
            record(
                action=Action.SERVER_CREDENTIAL_REVOKE,
                actor=actor,
                subject=server_subject(server),
                after={"revoked": count},
                reason=reason,
            )
        return count

    return settle(change)
