"""The web door takes in at most 1 MiB of what is sent to the API; pages go on as they were."""

from typing import Final

from fabricui.api_errors import PREFIX, problem_bytes
from inventory.body_limit import TOO_LARGE, App, BodyLimit, Receive, Scope, Send
from people.api.problems import MEDIA_TYPE, Problem

_SENTENCE: Final = "The body has more than 1 MiB; it was not read."


class ApiBodyLimit:
    """Hand requests to the API on with their body, or answer 413 without having read it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.limited = BodyLimit(self._unless_larger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Only the API's addresses are looked at."""
        is_ours = scope["type"] == "http" and str(scope["path"]).startswith(PREFIX)
        await (self.limited if is_ours else self.app)(scope, receive, send)

    async def _unless_larger(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get(TOO_LARGE):
            await self.app(scope, receive, send)
            return
        body = Problem("body_too_large", _SENTENCE, where="body").body(None)
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": problem_bytes(body)})
