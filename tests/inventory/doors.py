"""A registration door that answers what a test says, on loopback."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OK = {"server": "abc", "hostname": "srv-001", "ports": []}


class Door:
    """Answers each request with the next of `answers`, the last one again and again; keeps what came."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Any:
        self.requests.append({"path": path, "headers": headers, "body": json.loads(body)})
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.contextmanager
def opened(*answers: Any, context: ssl.SSLContext | None = None) -> Iterator[Door]:
    """Open a door. An answer is (status, JSON), (status, headers, JSON), or "cut" for a connection that just ends."""
    door = Door(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found = door.answer(self.path, dict(self.headers), body)
            if found == "cut":
                self.close_connection = True
                return
            status, headers, value = found if len(found) == 3 else (found[0], {}, found[1])
            payload = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    door.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield door
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
