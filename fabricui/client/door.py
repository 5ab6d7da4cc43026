"""The door to the API: one request at a time, by the standard library.

What is tried again: whatever can be, because reading changes nothing and each POST has an Idempotency-Key. A 429 or 503
is tried again when its Retry-After is over, a connection that was cut after a moment; both within PATIENCE_S.
"""

import json
import secrets
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlencode

from fabricui.client.configuration import Configuration
from fabricui.client.failures import Exit, Failure

PATIENCE_S: Final = 60.0  # how long one request is tried again
LARGEST: Final = 64 * 1024 * 1024  # bytes of an answer
PAGE: Final = 200
TRIES: Final = 5
AGAIN: Final = (429, 502, 503, 504)
PROBLEM: Final = "application/problem+json"


@dataclass(frozen=True)
class Answer:
    """What was answered, and whether it stood there already: the first answer to the same key."""

    status: int
    body: Any
    is_replayed: bool
    etag: str


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token elsewhere: it is an answer like any other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """No."""
        return


def new_key() -> str:
    """An Idempotency-Key that nobody has used."""
    return secrets.token_urlsafe(18)


class Door:
    """Asks one FabricUI, with one token. `sleep` and `clock` are there for tests."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        tell: Callable[[str], None] = lambda sentence: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.configuration, self.tell, self.sleep, self.clock = configuration, tell, sleep, clock
        handlers: list[Any] = [_NoRedirect(), urllib.request.HTTPSHandler(context=_context(configuration.ca_file))]
        if configuration.is_loopback:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, *path: str, **query: str) -> Any:
        """What stands at an address of /api/v1/. Raises Failure."""
        return self.ask("GET", path, query=query).body

    def items(self, *path: str, most: int | None = None, **query: str) -> Iterator[dict[str, Any]]:
        """What a list holds, page after page, up to `most`. Raises Failure."""
        cursor, given = "", 0
        while True:
            limit = PAGE if most is None else min(PAGE, most - given)
            asked = {**query, "limit": str(limit), **({"cursor": cursor} if cursor else {})}
            page = self.get(*path, **asked)
            if not isinstance(page, dict) or not isinstance(page.get("items"), list):
                self._strange()
            yield from page["items"]
            given += len(page["items"])
            cursor = page.get("next_cursor") or ""
            if not cursor or (most is not None and given >= most):
                return

    def post(self, *path: str, body: Mapping[str, Any], key: str = "") -> Answer:
        """Do something once: sent again after a cut connection, it is the same request. Raises Failure."""
        return self.ask("POST", path, body=body, key=key or new_key())

    def ask(
        self, verb: str, path: tuple[str, ...], *, query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None, key: str = "",
    ) -> Answer:  # fmt: skip
        """One request, tried again as long as that may help. Raises Failure."""
        request = self._request(verb, path, query or {}, body, key)
        until = self.clock() + PATIENCE_S
        for attempt in range(TRIES):
            failure, wait_s = self._once(request, attempt)
            if isinstance(failure, Answer):
                return failure
            if attempt == TRIES - 1 or self.clock() + wait_s > until:
                raise failure
            self.tell(f"{failure.sentence} Trying again in {wait_s:.0f} s.")
            self.sleep(wait_s)
        raise AssertionError("the last attempt ends it")

    def _request(
        self, verb: str, path: tuple[str, ...], query: Mapping[str, str], body: Mapping[str, Any] | None, key: str
    ) -> urllib.request.Request:
        address = "/".join(quote(part, safe="") for part in path)
        asked = f"?{urlencode(query)}" if query else ""
        headers = {
            "Authorization": f"Token {self.configuration.token}", "Accept": "application/json",
            "User-Agent": "fabricui-client",
        }  # fmt: skip
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        return urllib.request.Request(  # noqa: S310  configuration.py has judged the scheme
            f"{self.configuration.url}/api/v1/{address}{asked}", data=data, headers=headers, method=verb
        )

    def _once(self, request: urllib.request.Request, attempt: int) -> "tuple[Answer | Failure, float]":
        """The answer; or why there was none, and after how many seconds to try again."""
        try:
            with self._opener.open(request, timeout=self.configuration.timeout_s) as response:
                return self._read(response.status, response.headers, response.read(LARGEST + 1)), 0
        except urllib.error.HTTPError as error:
            with error:
                failure = self._refusal(error.code, error.headers, error.read(LARGEST))
                if error.code not in AGAIN:
                    raise failure from None
                return failure, _retry_after(error.headers.get("Retry-After"), 0.5 * 2**attempt)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise _untrusted(self.configuration, reason) from None
            sentence = f"FabricUI at {self.configuration.url} cannot be reached: {_why(reason)}."
            return Failure(
                Exit.UNREACHABLE, sentence, code="unreachable", where=self.configuration.url
            ), 0.5 * 2**attempt

    def _read(self, status: int, headers: Any, data: bytes) -> Answer:
        if len(data) > LARGEST:
            raise Failure(Exit.FAULT, f"The answer has more than {LARGEST} bytes. Ask for less.", code="too_large")
        try:
            body = json.loads(data)
        except ValueError:
            self._strange()
        return Answer(status, body, headers.get("Idempotency-Replayed") == "true", headers.get("ETag") or "")

    def _refusal(self, status: int, headers: Any, data: bytes) -> Failure:
        if 300 <= status < 400:
            return Failure(
                Exit.USAGE, f"{self.configuration.url} sends elsewhere, where the token is not taken.",
                mend="Name the address at which FabricUI itself answers.", code="redirected",
            )  # fmt: skip
        try:
            problem = json.loads(data) if headers.get_content_type() == PROBLEM else None
        except ValueError:
            problem = None
        if isinstance(problem, dict):
            return Failure.of_problem({**problem, "status": status})
        if status in AGAIN:
            return Failure(
                Exit.UNREACHABLE, f"FabricUI at {self.configuration.url} is not there for now (status {status}).",
                code="unreachable",
            )  # fmt: skip
        return self._stranger(f"status {status}")

    def _stranger(self, what: str) -> Failure:
        return Failure(
            Exit.FAULT, f"What answers at {self.configuration.url} is no FabricUI that this program knows ({what}).",
            mend="See that FABRICUI_URL names FabricUI's web door.", code="strange_answer",
        )  # fmt: skip

    def _strange(self) -> NoReturn:
        raise self._stranger("no JSON of the API")


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror if not isinstance(error, ssl.SSLError) and error.strerror else "it holds no certificates"
        raise Failure(
            Exit.USAGE, f"The file of certificates {ca_file} cannot be used: {why}.",
            mend="Name a PEM file with the authority that signed FabricUI's certificate.", code="configuration",
        ) from error  # fmt: skip


def _untrusted(configuration: Configuration, error: ssl.SSLCertVerificationError) -> Failure:
    return Failure(
        Exit.UNREACHABLE, f"The certificate of {configuration.url} is not trusted: {error.verify_message}.",
        mend="Name the authority that signed it with --ca-file or FABRICUI_CA_FILE. Nothing was sent.",
        code="untrusted_certificate",
    )  # fmt: skip


def _retry_after(said: str | None, otherwise_s: float) -> float:
    """Seconds: a number or a date, as RFC 9110 has it; what is neither says nothing."""
    if not said:
        return otherwise_s
    if said.strip().isascii() and said.strip().isdecimal():
        return float(said.strip()[:9])
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return otherwise_s
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(tz=UTC)).total_seconds())


def _why(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "it did not answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__
