"""The provisioning system's door: `POST /register/v1/cleaned` says that nothing of a tenant is left on a server.

It hangs on the registration door's listener, because provisioning stands on the management network too, and is guarded
like it. The word counts as that of the operator whose token it is; `partitions.cleaning` still asks for the proof.
"""

import re
from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import AuthenticationFailed

from audit.actions import Action
from inventory.errors import InvalidReport
from inventory.models import Server
from inventory.register import Refusal, bearer_of, body_of, guarded, throttled
from inventory.report import parse_json
from partitions.cleaning import mark_clean
from partitions.errors import MoveRefused
from people.authentication import RecordedTokenAuthentication
from people.models import Token

SCOPE: Final = "server:cleaned"
MOST_WORDS: Final = 1000
_UNWRITABLE: Final = re.compile("[\x00\ud800-\udfff]")
_STATUS: Final = {"not_yours": 403}


@guarded(Action.SERVER_CLEAN_REFUSED)
def cleaned(request: HttpRequest) -> JsonResponse:
    """Mark the named server clean; 200 also when it is bound to no tenant already, so that a retry is harmless.

    Body: {"hostname" or "server": text, "how": text}. 401 without a valid token, 403 without its scope or an operator
    behind it, 404 for an unknown server, 409 with the sentence while the removal is not proven.
    """
    body = body_of(request)
    token = _token(request)
    server, how = _wanted(body)
    try:
        rows = mark_clean(server=server, actor=token.user, reason=f"{how} (token “{token.name}”)")
    except MoveRefused as refusal:
        if refusal.rule == "not_bound":
            return JsonResponse({"outcome": "clean", "server": server.public_id, "ports": 0})
        raise Refusal(_STATUS.get(refusal.rule, 409), refusal.rule, str(refusal), server=server) from refusal
    return JsonResponse({"outcome": "cleaned", "server": server.public_id, "ports": len(rows)})


def _token(request: HttpRequest) -> Token:
    text = bearer_of(request)
    try:
        if not text:
            raise AuthenticationFailed
        _, token = RecordedTokenAuthentication().authenticate_credentials(text.encode())
    except AuthenticationFailed as error:
        sentence = "This token is not known, or its time is over. Make one with manage.py cleaning_token."
        raise throttled(request, Refusal(401, "token_refused", sentence)) from error
    found: Token = token
    if SCOPE not in found.scopes:
        raise throttled(request, Refusal(403, "scope_missing", f"This token does not have the scope {SCOPE}."))
    return found


def _wanted(body: bytes) -> tuple[Server, str]:
    """The server and how it was made clean; a name that stands for two servers is no name."""
    try:
        value: Any = parse_json(body)
    except InvalidReport as error:
        raise Refusal(400, "malformed", str(error)) from error
    fields = value if isinstance(value, dict) else {}
    hostname, key, how = (fields.get(name) for name in ("hostname", "server", "how"))
    for text in (hostname, key, how):
        if isinstance(text, str) and _UNWRITABLE.search(text):
            raise Refusal(400, "malformed", "A text holds a NUL or half a character, which no database keeps.")
    if not isinstance(how, str) or not how.strip() or len(how) > MOST_WORDS:
        raise Refusal(400, "malformed", f"“how” says in 1 to {MOST_WORDS} characters how it was made clean.")
    if isinstance(key, str) and key:
        found = list(Server.objects.filter(public_id=key[:20]).select_related("subnet")[:2])
    elif isinstance(hostname, str) and hostname:
        found = list(Server.objects.filter(hostname=hostname[:255]).select_related("subnet")[:2])
    else:
        raise Refusal(400, "malformed", "Name the server: “hostname” as it enrolled, or “server”, its public id.")
    if not found:
        raise Refusal(404, "unknown_server", "No server of that name has enrolled.")
    if len(found) > 1:
        raise Refusal(409, "ambiguous", "Servers in two subnets have that name. Name it by “server”, its public id.")
    return found[0], how.strip()
