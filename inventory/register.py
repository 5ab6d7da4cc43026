"""The registration door: servers enrol and report here, from the management networks only.

What is refused changes nothing, answers with a sentence, and is one audit event per source and minute at most, so that
nobody can drown the trail. A view is a conversation (`inventory/together.py`): what it wants of the database it yields,
and the door's own server (`fabricui/in_groups.py`) answers all that wait together. Under any other server each is
answered at once and alone.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from audit.actions import Action
from audit.once import first_in_a_minute
from audit.record import record
from audit.values import Actor, Subject
from inventory.body_limit import COME_AGAIN, MOST_BYTES, RETRY_AFTER_S, TOO_LARGE
from inventory.errors import CredentialRefused, EnrolmentRefused, HostnameTaken, InvalidReport
from inventory.models import Server
from inventory.operations import enrol_with_others, register_with_others, rotate_credential
from inventory.operations.enrolment import Address, showing
from inventory.races import settle
from inventory.reconcile import Outcome
from inventory.report import parse_enrolment, parse_json, parse_report, parse_rotation
from inventory.subjects import server_actor, server_subject
from inventory.together import Steps, Wish, answer, in_the_name_of_now

REPORTS_A_MINUTE: Final = 12  # by one server; a boot and a few retries, not a way to fill the trail
REFUSALS_A_MINUTE: Final = 60  # to one source that shows no valid credential, before it is told to wait

log = logging.getLogger(__name__)

GROUPED: Final = "inventory.grouped"  # set in the environment of a request that is answered with others

type Conversation = Steps[JsonResponse]
type View = Callable[[HttpRequest], Conversation | JsonResponse]


class Refusal(Exception):
    """An answer that changes nothing: a status, one word for machines and a sentence for people."""

    def __init__(self, status: int, code: str, sentence: str, *, server: Server | None = None) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence, self.server = status, code, sentence, server


class Unfinished(HttpResponse):
    """What a view gives to a server that answers in groups: the headers so far, and `steps` that lead to the answer."""

    def __init__(self, steps: Conversation) -> None:
        super().__init__()
        self.steps = steps

    def finished(self, answer: HttpResponse) -> HttpResponse:
        """`answer` with what the middleware made of this response."""
        for name, value in self.items():
            if name not in ("Content-Type", "Content-Length"):
                answer.headers.setdefault(name, value)
        answer.headers["Content-Length"] = str(len(answer.content))
        return answer


def _door(action: Action) -> Callable[[View], Callable[[HttpRequest], HttpResponse]]:
    """Let only a POST from a management network reach the view; turn its refusals into answers and events."""

    def guard(view: View) -> Callable[[HttpRequest], HttpResponse]:
        @csrf_exempt  # no cookie is read here: a request shows its own secret
        @wraps(view)
        def guarded(request: HttpRequest) -> HttpResponse:
            steps = _guarded(view, request, action)
            return Unfinished(in_the_name_of_now(steps)) if GROUPED in request.META else answer(steps)

        return guarded

    return guard


def _guarded(view: View, request: HttpRequest, action: Action) -> Conversation:
    source = source_of(request)
    try:
        if not _is_management(source):
            raise Refusal(403, "not_a_management_network", "This door answers to the management network only.")
        if request.method != "POST":
            raise Refusal(405, "post_only", "Only POST is answered here.")
        found = view(request)
        return found if isinstance(found, JsonResponse) else (yield from found)
    except Refusal as refusal:
        return _refused(refusal, action, source)


@_door(Action.ENROLMENT_REFUSED)
def enrol(request: HttpRequest) -> Conversation:
    """Enrol the server that shows an enrolment token as its bearer token; 201, now or earlier."""
    body = _body(request)
    token = _bearer(request)
    try:
        wanted = parse_enrolment(parse_json(body))
        server = yield from enrol_with_others(
            token=token,
            hostname=wanted.hostname,
            boot_id=wanted.boot_id,
            credential_digest=wanted.credential_digest,
            source=source_of(request),
        )
    except InvalidReport as error:
        raise Refusal(400, "malformed", str(error)) from error
    except EnrolmentRefused as error:
        raise _throttled(request, Refusal(401, "token_refused", str(error))) from error
    except HostnameTaken as error:
        raise Refusal(409, "hostname_taken", str(error)) from error
    return JsonResponse({"server": server.public_id, "hostname": server.hostname}, status=201)


@_door(Action.SERVER_REPORT_REFUSED)
def reports(request: HttpRequest) -> Conversation:
    """Register what the server says that shows its credential as its bearer token; 200 and an outcome per port."""
    body = _body(request)
    try:
        credential = yield from showing(credential=_bearer(request))
    except CredentialRefused as error:
        raise _throttled(request, Refusal(401, "credential_refused", str(error))) from error
    server = credential.server
    times: int = yield Wish(_counts, f"register:reports:{server.pk}", frozenset())
    if times > REPORTS_A_MINUTE:
        sentence = f"More than {REPORTS_A_MINUTE} reports within a minute. Report again in a minute."
        raise Refusal(429, "too_many_reports", sentence, server=server)
    try:
        report = parse_report(parse_json(body))
    except InvalidReport as error:
        raise Refusal(400, "malformed", str(error), server=server) from error
    receipt = yield from register_with_others(server=server, report=report)
    claimed = [outcome for outcome in receipt.outcomes if outcome.outcome is Outcome.CONFLICT]
    if claimed:  # the trail has one event for each when it is opened; the log has all of them
        log.warning("%s claims %d ports that are not its own; the first: %s", server, len(claimed), claimed[0].sentence)
    told = receipt.to_json()
    # The agent then makes itself a new secret; until that is shown, the old one stays valid.
    is_old = timezone.now() - credential.issued_at > timedelta(days=settings.CREDENTIAL_DAYS)
    told["rotate"] = is_old or credential.is_to_be_renewed
    return JsonResponse(told)


@_door(Action.SERVER_REPORT_REFUSED)
def rotate(request: HttpRequest) -> JsonResponse:
    """Take note of the new credential of the server that shows its old one as its bearer token; 201."""
    body = _body(request)
    try:
        server = rotate_credential(
            credential=_bearer(request), new_digest=parse_rotation(parse_json(body)).credential_digest
        )
    except InvalidReport as error:
        raise Refusal(400, "malformed", str(error)) from error
    except CredentialRefused as error:
        raise _throttled(request, Refusal(401, "credential_refused", str(error))) from error
    return JsonResponse({"server": server.public_id, "hostname": server.hostname}, status=201)


def source_of(request: HttpRequest) -> Address | None:
    """The address at the other end of the connection, or, behind a configured proxy, the one it names in its header.

    None for a Unix socket, and for a proxy that does not say. A header counts only in what the proxy itself sends, and
    of a list only the last entry: the ones before are what the client wrote.
    """
    peer = _address(request.META.get("REMOTE_ADDR", ""))
    if not settings.REGISTER_PROXIES or not _is_in(peer, settings.REGISTER_PROXIES):
        return peer
    return _address(request.headers.get(settings.REGISTER_PROXY_HEADER, "").rpartition(",")[2].strip())


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_management(source: Address | None) -> bool:
    return _is_in(source, settings.MANAGEMENT_NETWORKS)


def _is_in(address: Address | None, texts: list[str]) -> bool:
    if address is None:
        return False
    networks = [ip_network(text, strict=False) for text in texts]
    return any(address.version == network.version and address in network for network in networks)


def _body(request: HttpRequest) -> bytes:
    """The body, of which never more than 1 MiB is held; raise Refusal for a larger one or another type."""
    stated = request.META.get("CONTENT_LENGTH") or "0"
    is_larger = request.META.get(TOO_LARGE, False)  # found by inventory.body_limit
    if is_larger or not stated.isascii() or not stated.isdecimal() or len(stated) > 15 or int(stated) > MOST_BYTES:
        raise Refusal(413, "too_large", f"A body has at most {MOST_BYTES} bytes.")
    if request.content_type != "application/json":
        raise Refusal(415, "not_json", "Send application/json.")
    body = request.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise Refusal(413, "too_large", f"A body has at most {MOST_BYTES} bytes.")
    return body


def _bearer(request: HttpRequest) -> str:
    """The secret in `Authorization: Bearer …`, or the empty text, which nobody's is."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip()[:200] if scheme.lower() == "bearer" else ""


def _throttled(request: HttpRequest, refusal: Refusal) -> Refusal:
    """`refusal`, or the request to wait when its source has been refused too often within a minute.

    Only requests without a valid secret are counted, so a server behind the same address can still report.
    """
    if _count(f"register:refusals:{_bucket(source_of(request))}") <= REFUSALS_A_MINUTE:
        return refusal
    return Refusal(429, "too_many_refusals", "Refused too often. Try again in a minute with a valid secret.")


def _count(key: str) -> int:
    """How often `key` was counted within this minute, this time included; see `_counts`."""
    return _counts([key])[0]


def _counts(keys: Sequence[str]) -> list[int]:
    """How often each of `keys` was counted within this minute, in order, this time included.

    Without a working cache nothing is counted: servers that cannot register are worse than ones that do so too often.
    Two processes that count something for the first time in the same instant may count it once.
    """
    minute = int(timezone.now().timestamp()) // 60
    wanted = Counter(f"{key}:{minute}" for key in keys)
    try:
        known = cache.get_many(wanted)
        cache.set_many({key: times for key, times in wanted.items() if key not in known}, timeout=120)
        so_far = {key: cache.incr(key, wanted[key]) - wanted[key] for key in known}
    except Exception:
        log.exception("the cache does not answer; nothing is throttled")
        return [1] * len(keys)
    counts = Counter(so_far)
    told = []
    for key in keys:
        counts[f"{key}:{minute}"] += 1
        told.append(counts[f"{key}:{minute}"])
    return told


def _bucket(source: Address | None) -> str:
    """What counts as one source: an IPv4 address, or an IPv6 /64, of which a host can use every address."""
    if isinstance(source, IPv6Address):
        return str(ip_network((source, 64), strict=False))
    return "unix" if source is None else str(source)


def _refused(refusal: Refusal, action: Action, source: Address | None) -> JsonResponse:
    """The answer to a refused request; logged always, recorded once per source and minute."""
    bucket = _bucket(source)
    who = refusal.server.hostname if refusal.server is not None else bucket
    log.warning("%s: %s %s: %s", action.value, who, refusal.status, refusal.sentence)
    # Whatever it was refused for: a source that tries both addresses is still one source.
    if first_in_a_minute(action=Action.SERVER_REPORT_REFUSED, source=f"door:{bucket}"):
        _record(refusal, action, bucket)
    told = JsonResponse({"error": refusal.code, "sentence": refusal.sentence}, status=refusal.status)
    if refusal.status == 401:
        told["WWW-Authenticate"] = "Bearer"
    if refusal.status == 405:
        told["Allow"] = "POST"
    if refusal.status == 429:
        told["Retry-After"] = "60"
    return told


def _record(refusal: Refusal, action: Action, bucket: str) -> None:
    server = refusal.server
    actor = Actor.anonymous(bucket) if server is None else server_actor(server)
    subject = Subject(kind="address", key=bucket, label=bucket) if server is None else server_subject(server)
    after = {"status": refusal.status, "error": refusal.code, "source": bucket}
    settle(lambda: record(action=action, actor=actor, subject=subject, after=after, reason=refusal.sentence))


def busy(sentence: str) -> JsonResponse:
    """The answer when the fault is ours and passes: 503, with the time after which the agent asks again."""
    told = JsonResponse({"error": "busy", "sentence": f"{sentence} {COME_AGAIN}"}, status=503)
    told["Retry-After"] = str(RETRY_AFTER_S)
    return told


# Another room's address on this listener is guarded the same way (partitions/cleaned_door.py).
guarded, body_of, bearer_of, throttled = _door, _body, _bearer, _throttled
