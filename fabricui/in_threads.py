"""InThreads: the registration door's ASGI application, which answers in a few threads that stay.

Django's own ASGI handler gives each request a thread of its own, and with it a new connection to the database: a boot
storm then spends its time opening connections, and PostgreSQL runs out of them. Here the threads stay, and so do their
connections; a storm waits in line instead.
"""

import asyncio
import io
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from inventory.body_limit import TOO_LARGE, Message, Receive, Scope, Send

type Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
type WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class InThreads:
    """Answer each request of `app`, a WSGI application, in one of `threads` threads. Bodies are bounded before."""

    def __init__(self, app: WSGI, *, threads: int) -> None:
        self.app = app
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="door")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the whole body, answer in a thread, send the answer."""
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
        loop = asyncio.get_running_loop()
        status, headers, content = await loop.run_in_executor(self.pool, self._answer, environ_of(scope, body))
        start: Message = {"type": "http.response.start", "status": status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": content})

    def _answer(self, environ: dict[str, Any]) -> Answer:
        began: list[tuple[int, list[tuple[bytes, bytes]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> None:
            pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            began.append((int(status.split(" ", 1)[0]), pairs))

        chunks = self.app(environ, start_response)
        try:
            content = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()  # Django ends the request here, and looks after its connections
        status, pairs = began[-1]
        return status, pairs, content


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
