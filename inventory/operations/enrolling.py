"""enrol_server: exchange a token for a server's own credential; those that come at once share a transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import ip_network

from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from audit.actions import Action
from audit.record import Draft, record_all
from audit.request_id import current_address, current_request_id
from inventory.errors import EnrolmentRefused, HostnameTaken, InventoryError
from inventory.inserting import insert
from inventory.models import EnrolmentToken, Server, ServerCredential
from inventory.operations.enrolment import Address, digest_of
from inventory.races import settle
from inventory.subjects import server_actor, server_subject
from inventory.together import Steps, Wish, all_or_each


@dataclass(frozen=True, slots=True)
class Asked:
    """One server that shows a token, and the request that brought it."""

    token_digest: str
    hostname: str
    credential_digest: str
    boot_id: str
    source: Address | None
    request_id: str = field(default_factory=current_request_id)
    address: str = field(default_factory=current_address)

    def names(self) -> frozenset[object]:
        """What it touches: a name and a credential. The token is counted down for all that show it."""
        return frozenset((self.hostname, self.credential_digest))


def enrol_server(
    *, token: str, hostname: str, credential_digest: str, boot_id: str = "", source: Address | None = None
) -> Server:
    """Enrol the server `hostname`, whose own credential is from then on the secret behind `credential_digest`.

    The server makes its secret itself and sends the SHA-256 only, so an answer that gets lost loses nothing: the same
    request again finds itself enrolled and uses up nothing. A name stands for one server: while another credential is
    valid for it, nobody else gets it. `source` is the address that shows the token, for tokens that are for certain
    networks. Raises EnrolmentRefused, HostnameTaken.
    """
    found = settle(lambda: _enrol([Asked(digest_of(token), hostname, credential_digest, boot_id, source)]))[0]
    if isinstance(found, Exception):
        raise found
    return found


def enrol_with_others(
    *, token: str, hostname: str, credential_digest: str, boot_id: str = "", source: Address | None = None
) -> Steps[Server]:
    """As `enrol_server`, in one transaction with what else wants to be enrolled at the same time."""
    asked = Asked(digest_of(token), hostname, credential_digest, boot_id, source)
    server: Server = yield Wish(_enrol_all, asked, asked.names())
    return server


def _enrol_all(asked: Sequence[Asked]) -> Sequence[Server | Exception]:
    return all_or_each(_enrol, asked)


@dataclass(slots=True)
class _Known:
    """What the database holds about those that ask, and what becomes of it."""

    tokens: Mapping[str, EnrolmentToken]  # by digest, locked until the commit
    credentials: Mapping[str, ServerCredential]  # by digest
    servers: Mapping[tuple[int, str], Server]  # by subnet and name
    taken: set[int]  # servers that have a valid credential
    used: Counter[int] = field(default_factory=Counter)  # by token


def _enrol(asked: Sequence[Asked]) -> list[Server | Exception]:
    """Enrol those that may be: a refusal of one is its answer, and nothing is written for it."""
    known = _gather(asked)
    answers: list[Server | Exception] = []
    let_in: list[tuple[Asked, EnrolmentToken, Server]] = []
    for one in asked:
        try:
            token, server, is_known = _judge(one, known)
        except InventoryError as refusal:
            answers.append(refusal)
            continue
        answers.append(server)
        if not is_known:
            let_in.append((one, token, server))
            known.used[token.pk] += 1
    for token_id, uses in known.used.items():
        left = EnrolmentToken.objects.filter(pk=token_id, uses_left__gte=uses)
        if left.update(uses_left=F("uses_left") - uses) != 1:
            raise IntegrityError("An enrolment token was used by somebody else meanwhile. Look again.")
    new = [server for _, _, server in let_in if server._state.adding]
    new.sort(key=lambda server: server.hostname)
    insert(Server, new, with_keys=True)
    credentials = (
        ServerCredential(server=server, digest=one.credential_digest, token=token) for one, token, server in let_in
    )
    insert(ServerCredential, list(credentials))
    record_all([_draft(one, token, server) for one, token, server in let_in])
    return answers


def _gather(asked: Sequence[Asked]) -> _Known:
    # The tokens' rows are held until the commit, so that the same request twice at once finds itself enrolled.
    tokens = EnrolmentToken.objects.select_related("subnet").select_for_update(of=("self",)).order_by("pk")
    by_digest = {token.digest: token for token in tokens.filter(digest__in={one.token_digest for one in asked})}
    credentials = ServerCredential.objects.select_related("server").defer("server__report")
    own = {row.digest: row for row in credentials.filter(digest__in=[one.credential_digest for one in asked])}
    subnets = {token.subnet_id for token in by_digest.values()}
    servers = Server.objects.select_for_update().defer("report").order_by("pk")
    known = list(servers.filter(subnet__in=subnets, hostname__in=[one.hostname for one in asked]))
    taken = set()
    if known:
        valid = ServerCredential.objects.filter(server__in=known, revoked_at=None)
        taken = set(valid.values_list("server_id", flat=True))
    return _Known(by_digest, own, {(server.subnet_id, server.hostname): server for server in known}, taken)


def _judge(asked: Asked, known: _Known) -> tuple[EnrolmentToken, Server, bool]:
    """The token, the server (not saved, where it is new), and whether it has enrolled with this credential before."""
    token = known.tokens.get(asked.token_digest)
    if token is None:
        raise EnrolmentRefused("The enrolment token is unknown. Create one and put it on the server anew.")
    own = known.credentials.get(asked.credential_digest)
    if own is not None:
        is_same = own.revoked_at is None and own.server.hostname == asked.hostname
        if is_same and own.server.subnet_id == token.subnet_id:
            return token, own.server, True
        raise EnrolmentRefused("The credential belongs to another server or was revoked. Make a new one.")
    _require_worth(token, asked.hostname, asked.source)
    if token.uses_left <= known.used[token.pk]:
        raise EnrolmentRefused("The enrolment token is used up. Create a new one for this server.")
    server = known.servers.get((token.subnet_id, asked.hostname))
    if server is None:
        return token, Server(subnet=token.subnet, hostname=asked.hostname, boot_id=asked.boot_id), False
    if server.pk in known.taken:
        raise HostnameTaken(
            f"A server called {asked.hostname} has enrolled already. If this is that server, installed anew, an "
            f"operator must revoke its old credential first; if not, give this one a host name of its own."
        )
    return token, server, False


def _draft(asked: Asked, token: EnrolmentToken, server: Server) -> Draft:
    after = {"subnet": token.subnet.name, "token": token.name, "credential": asked.credential_digest[:12]}
    return Draft(
        action=Action.SERVER_ENROL,
        actor=server_actor(server),
        subject=server_subject(server),
        after=after | ({"rack": token.rack} if token.rack else {}),
        request_id=asked.request_id,
        address=asked.address,
    )


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
