"""Problem: the one shape of everything that the API refuses, and the closed list of its codes (RFC 9457).

{"status", "code", "title", "detail", "where", "mend", "errors": [{"where", "detail"}], "request_id"}. `code` is for
programs and never changes its meaning; the sentences are for people. A room adds the codes of its own errors with
`offer` and says with `translate` which of its exceptions has which.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest
from rest_framework import exceptions
from rest_framework.response import Response

from audit.errors import TrailUnavailable
from audit.request_id import current_request_id

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 30
MOST_ERRORS: Final = 50
LONGEST: Final = 300  # characters of what came in that a sentence repeats


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of refusal: its status, what it is called, and how it is mended when nothing better is known."""

    name: str
    status: int
    title: str
    mend: str


CODES: Final[dict[str, Code]] = {}
_OF_ERRORS: Final[dict[type[Exception], str]] = {}


def offer(name: str, status: int, title: str, mend: str) -> None:
    """Add a code; docs/api.md has a row for each (a test sees to it)."""
    CODES[name] = Code(name, status, title, mend)


def translate(errors: Mapping[type[Exception], str]) -> None:
    """Say which code an exception of a room has; one that derives from it has the same unless it says another."""
    _OF_ERRORS.update(errors)


offer("malformed", 400, "The request cannot be read", "Send what docs/api.md describes.")
offer("invalid", 400, "A value is not one that is taken here", "Mend what “errors” names and send it again.")
offer("bad_cursor", 400, "The cursor leads nowhere", "Begin at the first page, with the same filters.")
offer("unauthenticated", 401, "No valid token was sent", "Send “Authorization: Token …” with a token of yours.")
offer("not_for_this_token", 403, "The token is not for that", "Make a token with the scope that docs/api.md names.")
offer("not_found", 404, "There is no such thing", "Look its id up in the list that it stands in.")
offer("method_not_allowed", 405, "That cannot be done there", "Use a method that the header Allow names.")
offer("conflict", 409, "That is not possible as things stand", "Read again what you want to change, then decide.")
offer(
    "precondition_failed", 412, "It has changed since you read it", "Get it again, look at it, and send its new ETag."
)
offer("body_too_large", 413, "The body is too large", "Send at most 1 MiB.")
offer("unsupported_media_type", 415, "The body is no JSON", "Send JSON, with “Content-Type: application/json”.")
offer("key_reused", 422, "The Idempotency-Key stands for another request", "Use a new key for each new request.")
offer("precondition_required", 428, "An edit says what it is an edit of", "Send If-Match with the ETag that you got.")
offer("too_many_requests", 429, "Too much was asked within a minute", "Wait as long as Retry-After says, then go on.")
offer("error", 500, "FabricUI made a mistake", "Try again; if it stays, tell the operator the request_id.")
offer(
    "trail_unavailable", 503, "It could not be recorded, so it was not done", "Try again when the trail takes events."
)


class Problem(exceptions.APIException):
    """A refusal of the API; `code` is one of CODES."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        where: str = "",
        mend: str = "",
        errors: tuple[tuple[str, str], ...] = (),
        retry_after_s: int = 0,
        **more: object,
    ) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
        self.kind = CODES[code]
        self.status_code = self.kind.status
        self.sentence, self.where, self.mend, self.errors, self.more = detail, where, mend, errors, more

    def body(self, request: HttpRequest | Any) -> dict[str, Any]:
        """What is answered; `where` is the method and address when nothing narrower is known."""
        return {
            "status": self.status_code,
            "code": self.kind.name,
            "title": self.kind.title,
            "detail": self.sentence,
            "where": self.where or f"{request.method} {request.path}"[:LONGEST],
            "mend": self.mend or self.kind.mend,
            "errors": [{"where": where, "detail": detail} for where, detail in self.errors[:MOST_ERRORS]],
            "request_id": current_request_id(),
            **self.more,
        }


def answer(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """The answer to an exception of a view: a problem; None for a bug, which is answered by `handler500`."""
    problem = _problem_of(error)
    if problem is None:
        return None
    headers: dict[str, str] = {"Cache-Control": "no-store"}
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    if problem.kind.name in ("trail_unavailable", "too_many_requests"):
        headers["Retry-After"] = str(problem.retry_after_s or RETRY_AFTER_S)
    body = problem.body(context["request"])
    return Response(body, status=problem.status_code, headers=headers, content_type=MEDIA_TYPE)


def _problem_of(error: Exception) -> Problem | None:
    for kind in type(error).__mro__:
        if kind in _OF_ERRORS:
            rule = getattr(error, "rule", "")
            more: dict[str, Any] = {"rule": rule} if rule else {}
            return Problem(_OF_ERRORS[kind], str(error), **more)
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            errors = tuple(_each(error.detail))
            return Problem("invalid", _counted(errors), errors=errors)
        case exceptions.ParseError() | exceptions.NotAcceptable():
            return Problem("malformed", str(error.detail))
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return Problem("unauthenticated", str(error.detail))
        case exceptions.PermissionDenied():
            return Problem("not_for_this_token", str(error.detail))
        case PermissionDenied():
            return Problem("not_for_this_token", "This token may not do that.")
        case exceptions.NotFound() | Http404():
            return Problem("not_found", "There is nothing at this address that you may see.")
        case exceptions.MethodNotAllowed():
            return Problem("method_not_allowed", str(error.detail))
        case exceptions.UnsupportedMediaType():
            return Problem("unsupported_media_type", str(error.detail)[:LONGEST])
        case RequestDataTooBig():
            return Problem("body_too_large", "The body is larger than what is taken here.")
        case SuspiciousOperation():
            return Problem("malformed", "The request holds something that nothing here can hold.")
        case TrailUnavailable():
            return Problem("trail_unavailable", str(error))
    return None


def _each(detail: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """The errors of a serializer or a filter, one by one: a path such as moves[0].server, and a sentence."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            if isinstance(name, int):  # the place in a list
                yield from _each(inner, f"{where}[{name}]")
                continue
            plain = "" if name == "non_field_errors" else str(name)
            yield from _each(inner, f"{where}.{plain}" if where and plain else where or plain)
    elif isinstance(detail, list | tuple):
        for place, inner in enumerate(detail):
            yield from _each(inner, f"{where}[{place}]" if isinstance(inner, Mapping | list) else where)
    else:
        yield where, str(detail)[:LONGEST]


def _counted(errors: tuple[tuple[str, str], ...]) -> str:
    where, sentence = errors[0] if errors else ("", "Something in it is not right.")
    first = f"{where}: {sentence}" if where else sentence
    return first if len(errors) < 2 else f"{first} (and {len(errors) - 1} more)"
