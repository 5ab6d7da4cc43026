"""Enrolment: a token that lets servers in, and the credential each of them then has for itself."""

import hashlib
import secrets
from datetime import timedelta

from django.db.models import F
from django.utils import timezone

from audit.actions import Action
from audit.record import record
from audit.values import Actor
from inventory.errors import CredentialRefused, EnrolmentRefused, HostnameTaken, InventoryError
from inventory.models import EnrolmentToken, Server, ServerCredential, Subnet
from inventory.races import settle
from inventory.subjects import server_actor, server_subject, token_subject

LONGEST_LIFETIME = timedelta(days=30)


def digest_of(secret: str) -> str:
    """Give the SHA-256 under which a token or credential is stored; both are random, so it needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create_enrolment_token(*, subnet: Subnet, name: str, uses: int, lifetime: timedelta, actor: Actor) -> str:
    """Create a token with which `uses` servers can enrol in `subnet` within `lifetime`; give it, this once.

    Only its digest is stored. Raises InventoryError for no name, fewer than one use, or a life of over 30 days.
    """
    if not name.strip() or len(name) > 60 or not name.isprintable():
        raise InventoryError("Name the token in 1 to 60 characters, for instance after the rack it is for.")
    if not 1 <= uses <= 100_000:
        raise InventoryError(f"A token cannot be for {uses} servers; say how many will use it.")
    if not timedelta(0) < lifetime <= LONGEST_LIFETIME:
        raise InventoryError("A token lives for at least a moment and at most 30 days.")
    secret = f"fui_enrol_{secrets.token_urlsafe(32)}"

    def change() -> None:
        token = EnrolmentToken.objects.create(
            subnet=subnet,
            name=name.strip(),
            digest=digest_of(secret),
            uses_left=uses,
            expires_at=timezone.now() + lifetime,
        )
        after = {"subnet": subnet.name, "uses": uses, "expires_at": token.expires_at.isoformat()}
        record(action=Action.ENROLMENT_TOKEN_CREATE, actor=actor, subject=token_subject(token), after=after)

    settle(change)
    return secret


def enrol_server(*, token: str, hostname: str, credential_digest: str, boot_id: str = "") -> Server:
    """Enrol the server `hostname`, whose own credential is from then on the secret behind `credential_digest`.

    The server makes its secret itself and sends the SHA-256 only, so an answer that gets lost loses nothing: the same
    request again finds itself enrolled and uses up nothing. A name stands for one server: while another credential is
    valid for it, nobody else gets it. Raises EnrolmentRefused, HostnameTaken.
    """

    def change() -> Server:
        # The token's row is held until the commit, so that the same request twice at once finds itself enrolled.
        tokens = EnrolmentToken.objects.select_related("subnet").select_for_update(of=("self",))
        found = tokens.filter(digest=digest_of(token)).first()
        if found is None:
            raise EnrolmentRefused("The enrolment token is unknown. Create one and put it on the server anew.")
        own = ServerCredential.objects.select_related("server").filter(digest=credential_digest).first()
        if own is not None:
            is_same = own.revoked_at is None and own.server.hostname == hostname
            if is_same and own.server.subnet_id == found.subnet_id:
                return own.server
            raise EnrolmentRefused("The credential belongs to another server or was revoked. Make a new one.")
        now = timezone.now()
        if found.expires_at <= now:
            raise EnrolmentRefused(f"The enrolment token expired at {found.expires_at:%Y-%m-%d %H:%M} UTC.")
        left = EnrolmentToken.objects.filter(pk=found.pk, uses_left__gt=0).update(uses_left=F("uses_left") - 1)
        if left != 1:
            raise EnrolmentRefused("The enrolment token is used up. Create a new one for this server.")
        server = Server.objects.select_for_update().filter(subnet=found.subnet, hostname=hostname).first()
        if server is None:
            server = Server.objects.create(subnet=found.subnet, hostname=hostname, boot_id=boot_id)
        elif server.credentials.filter(revoked_at=None).exists():
            raise HostnameTaken(
                f"A server called {hostname} has enrolled already. If this is that server, installed anew, an operator "
                f"must revoke its old credential first; if not, give this one a host name of its own."
            )
        ServerCredential.objects.create(server=server, digest=credential_digest)
        record(
            action=Action.SERVER_ENROL,
            actor=server_actor(server),
            subject=server_subject(server),
            after={"subnet": found.subnet.name, "token": found.name, "credential": credential_digest[:12]},
        )
        return server

    return settle(change)


def server_of_credential(*, credential: str) -> Server:
    """Give the server whose own, unrevoked credential this is (one query); raise CredentialRefused otherwise."""
    found = (
        ServerCredential.objects.select_related("server__subnet")
        .filter(digest=digest_of(credential), revoked_at=None)
        .first()
    )
    if found is None:
        raise CredentialRefused("The server's credential is unknown or was revoked. Enrol the server anew.")
    return found.server


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
