"""Enrolment: a token that lets servers in, and the credential each of them then has for itself."""

import hashlib
import re
import secrets
from datetime import timedelta
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from django.db.models import F
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import CredentialRefused, EnrolmentRefused, HostnameTaken, InventoryError
from inventory.models import EnrolmentToken, Server, ServerCredential, Subnet
from inventory.races import settle
from inventory.subjects import server_actor, server_subject, token_subject

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
    if not name.strip() or len(name) > 60 or not name.isprintable():
        raise InventoryError("Name the token in 1 to 60 characters, for instance after the rack it is for.")
    if not 1 <= uses <= 100_000:
        raise InventoryError(f"A token cannot be for {uses} servers; say how many will use it.")
    if not timedelta(0) < lifetime <= LONGEST_LIFETIME:
        raise InventoryError(f"A token lives for at least a moment and at most {LONGEST_LIFETIME.days} days.")
    if len(rack) > 60 or not rack.isprintable():
        raise InventoryError("Name the rack in at most 60 characters.")
    scope = {
        "rack": rack.strip() or (name.strip() if uses > 1 else ""),
        "hostnames": _patterns(hostnames),
        "networks": _networks(networks),
    }
    secret = f"fui_enrol_{secrets.token_urlsafe(32)}"

    def change() -> None:
        token = EnrolmentToken.objects.create(
            subnet=subnet,
            name=name.strip(),
            digest=digest_of(secret),
            uses_left=uses,
            expires_at=timezone.now() + lifetime,
            **scope,
        )
        after = {"subnet": subnet.name, "uses": uses, "expires_at": token.expires_at.isoformat(), **scope}
        record(action=Action.ENROLMENT_TOKEN_CREATE, actor=actor, subject=token_subject(token), after=after)

    settle(change)
    return secret


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


def enrol_server(
    *, token: str, hostname: str, credential_digest: str, boot_id: str = "", source: Address | None = None
) -> Server:
    """Enrol the server `hostname`, whose own credential is from then on the secret behind `credential_digest`.

    The server makes its secret itself and sends the SHA-256 only, so an answer that gets lost loses nothing: the same
    request again finds itself enrolled and uses up nothing. A name stands for one server: while another credential is
    valid for it, nobody else gets it. `source` is the address that shows the token, for tokens that are for certain
    networks. Raises EnrolmentRefused, HostnameTaken.
    """

    def change() -> Server:
        # The token's row is held until the commit, so that the same request twice at once finds itself enrolled.
        tokens = EnrolmentToken.objects.select_related("subnet").select_for_update(of=("self",))
        found = tokens.filter(digest=digest_of(token)).first()
        if found is None:
            raise EnrolmentRefused("The enrolment token is unknown. Create one and put it on the server anew.")
        credentials = ServerCredential.objects.select_related("server").defer("server__report")
        own = credentials.filter(digest=credential_digest).first()
        if own is not None:
            is_same = own.revoked_at is None and own.server.hostname == hostname
            if is_same and own.server.subnet_id == found.subnet_id:
                return own.server
            raise EnrolmentRefused("The credential belongs to another server or was revoked. Make a new one.")
        _require_worth(found, hostname, source)
        left = EnrolmentToken.objects.filter(pk=found.pk, uses_left__gt=0).update(uses_left=F("uses_left") - 1)
        if left != 1:
            raise EnrolmentRefused("The enrolment token is used up. Create a new one for this server.")
        servers = Server.objects.select_for_update().defer("report")
        server = servers.filter(subnet=found.subnet, hostname=hostname).first()
        if server is None:
            server = Server.objects.create(subnet=found.subnet, hostname=hostname, boot_id=boot_id)
        elif server.credentials.filter(revoked_at=None).exists():
            raise HostnameTaken(
                f"A server called {hostname} has enrolled already. If this is that server, installed anew, an operator "
                f"must revoke its old credential first; if not, give this one a host name of its own."
            )
        ServerCredential.objects.create(server=server, digest=credential_digest, token=found)
        after = {"subnet": found.subnet.name, "token": found.name, "credential": credential_digest[:12]}
        record(
            action=Action.SERVER_ENROL,
            actor=server_actor(server),
            subject=server_subject(server),
            after=after | ({"rack": found.rack} if found.rack else {}),
        )
        return server

    return settle(change)


def _require_worth(token: EnrolmentToken, hostname: str, source: Address | None) -> None:
    """Raise EnrolmentRefused unless `token` is alive and for a server of this name and address."""
    if token.revoked_at is not None:
        raise EnrolmentRefused(f"The enrolment token was revoked at {token.revoked_at:%Y-%m-%d %H:%M} UTC.")
    if token.expires_at <= timezone.now():
        raise EnrolmentRefused(f"The enrolment token expired at {token.expires_at:%Y-%m-%d %H:%M} UTC.")
    patterns = token.hostnames.split(",") if token.hostnames else []
    if patterns and not any(fnmatchcase(hostname, pattern) for pattern in patterns):
        raise EnrolmentRefused(f"The enrolment token is for servers called {token.hostnames}, not {hostname}.")
    networks = [ip_network(text) for text in token.networks.split(",")] if token.networks else []
    if networks and (source is None or not any(source.version == one.version and source in one for one in networks)):
        raise EnrolmentRefused(f"The enrolment token is for servers in {token.networks}; this one is elsewhere.")


def server_of_credential(*, credential: str) -> Server:
    """Give the server whose own, unrevoked credential this is; raise CredentialRefused otherwise."""
    return shown_credential(credential=credential).server


def shown_credential(*, credential: str) -> ServerCredential:
    """Give the credential that a server shows, with its server (one query); raise CredentialRefused otherwise.

    A new credential that is shown for the first time takes over: the one it replaces is revoked.
    """
    rows = ServerCredential.objects.select_related("server__subnet").defer("server__report")
    found = rows.filter(digest=digest_of(credential), revoked_at=None).first()
    if found is None:
        raise CredentialRefused("The server's credential is unknown or was revoked. Enrol the server anew.")
    if found.replaces_id is not None:
        settle(lambda: _take_over(found))
    return found


def _take_over(credential: ServerCredential) -> None:
    row = ServerCredential.objects.select_for_update().get(pk=credential.pk)
    if row.replaces_id is None:
        return  # another request of the same server was here first
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
