"""InGroups: the registration door's ASGI application, which answers all requests that wait as one group.

A boot storm spends its time on statements, commits and changes of threads. Here few threads stay, with a connection to
the database each; whichever is free takes all that wait, and they share what they want of the database
(`inventory/together.py`). Nobody waits on purpose: a request that is alone is answered at once.
"""

import asyncio
import io
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import InterfaceError, OperationalError, close_old_connections
from django.http import HttpResponse, JsonResponse

from audit.errors import TrailUnavailable
from inventory.body_limit import TOO_LARGE, Message, Receive, Scope, Send
from inventory.register import GROUPED, Unfinished, busy
from inventory.together import MOST, answer_all

log = logging.getLogger(__name__)

type Environ = dict[str, Any]
type Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class InGroups:
    """Answer each request by `answers`, in one of `threads` threads, with all that wait. Bodies are bounded before."""

    def __init__(self, answers: Callable[[Sequence[Environ]], Sequence[Answer]], *, threads: int) -> None:
        self.answers = answers
        self.threads = threads
        self._waiting: list[tuple[Environ, asyncio.Future[Answer]]] = []
        self._changed = threading.Condition()
        self._is_started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the whole body, wait for the answer, send it."""
        if scope["type"] != "http":
            raise ValueError(f"The registration door speaks HTTP only, not {scope['type']}.")
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        status, headers, content = await self._answer_to(environ_of(scope, body))
        start: Message = {"type": "http.response.start", "status": status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": content})

    def _answer_to(self, environ: Environ) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        with self._changed:
            self._waiting.append((environ, future))
            if not self._is_started:  # not before: a process that forks afterwards would have no threads
                self._is_started = True
                for number in range(self.threads):
                    threading.Thread(target=self._work, name=f"door-{number}", daemon=True).start()
            self._changed.notify()
        return future

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            try:
                told: Sequence[Answer] = self.answers([environ for environ, _ in group])
                if len(told) != len(group):
                    raise RuntimeError(f"{len(told)} answers for a group of {len(group)}")
            except Exception:
                log.exception("a group of %d requests could not be answered", len(group))
                told = [_answer(_failed())] * len(group)
            futures = [future for _, future in group]
            try:
                futures[0].get_loop().call_soon_threadsafe(_tell, futures, told)
            except RuntimeError:
                return  # the loop is closed: the process ends


def _tell(futures: Sequence[asyncio.Future[Answer]], told: Sequence[Answer]) -> None:
    for future, answer in zip(futures, told, strict=True):
        if not future.done():  # whoever asked may be gone
            future.set_result(answer)


class ByDjango:
    """Answer requests as Django does, with its middleware, but their conversations in step with each other."""

    def __init__(self) -> None:
        self.handler = WSGIHandler()

    def __call__(self, environs: Sequence[Environ]) -> Sequence[Answer]:
        """An answer for each of `environs`, in order."""
        close_old_connections()
        responses = [self._begun(environ) for environ in environs]
        unfinished = [response for response in responses if isinstance(response, Unfinished)]
        told = iter(answer_all(response.steps for response in unfinished))
        answers = [_answer(_end(one, told) if isinstance(one, Unfinished) else one) for one in responses]
        for response in responses:
            response.close()
        close_old_connections()
        return answers

    def _begun(self, environ: Environ) -> HttpResponse:
        response = self.handler.get_response(WSGIRequest(environ | {GROUPED: True}))
        assert isinstance(response, HttpResponse)  # noqa: S101  nothing here streams
        return response


def _end(response: Unfinished, told: Any) -> HttpResponse:
    found = next(told)
    if isinstance(found, HttpResponse):
        return response.finished(found)
    if isinstance(found, (OperationalError, InterfaceError, TrailUnavailable)):
        log.warning("a server is told to come again: %s", str(found).strip())
        return response.finished(busy("FabricUI cannot write to its database at the moment."))
    log.error("a request of the registration door could not be answered", exc_info=found)
    return response.finished(_failed())


def _failed() -> HttpResponse:
    sentence = (
        "FabricUI could not answer; its log says why. The agent tries again by itself, and what was taken already is "
        "not taken twice."
    )
    return JsonResponse({"error": "failed", "sentence": sentence}, status=500)


def _answer(response: HttpResponse) -> Answer:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    return response.status_code, headers, response.content


def environ_of(scope: Scope, body: bytes) -> dict[str, Any]:
    """The WSGI environment of one request (PEP 3333); a header with an underscore names nothing."""
    client, server = scope.get("client") or ("", 0), scope.get("server") or ("unknown", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"].upper(),
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8", "surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope.get("query_string", b"").decode("latin-1"),
        "SERVER_NAME": str(server[0]),
        "SERVER_PORT": str(server[1] or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope.get('http_version', '1.1')}",
        "REMOTE_ADDR": str(client[0]),
        "REMOTE_PORT": str(client[1]),
        TOO_LARGE: bool(scope.get(TOO_LARGE)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope.get("headers", []):
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if "_" in name:
            continue  # X_Forwarded_For must not pass for X-Forwarded-For
        key = "HTTP_" + name.upper().replace("-", "_")
        if key in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
            key = key.removeprefix("HTTP_")
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    if body or not scope.get(TOO_LARGE):
        environ["CONTENT_LENGTH"] = str(len(body))
    return environ
