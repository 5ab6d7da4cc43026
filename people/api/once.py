"""Idempotency-Key: a request that is sent twice, because its answer was lost, is done once.

The key, what was done and the answer are one transaction: whoever comes second waits for it, and gets the same answer.
What was refused leaves no key behind, because nothing happened.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, Final, cast

from django.db import transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from people.api.problems import Problem
from people.models import IdempotencyKey, User

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
LASTS: Final = timedelta(hours=24)
LONGEST: Final = 200
_KEPT: Final = ("Location", "ETag")

type Answer[View, **P] = Callable[Concatenate[View, Request, P], Response]


def once[View, **P](post: Answer[View, P]) -> Answer[View, P]:
    """Do what a POST does once for each Idempotency-Key; without that header, each time, in one transaction as well.

    Raises Problem for a key that stands for another request.
    """

    @wraps(post)
    def kept(view: View, request: Request, *args: P.args, **kwargs: P.kwargs) -> Response:
        with transaction.atomic():
            key = _key(request)
            if key is None:
                return post(view, request, *args, **kwargs)
            digest = _digest(request)
            now, person = timezone.now(), _person(request)
            IdempotencyKey.objects.filter(user=person, created_at__lt=now - LASTS).delete()
            row, is_new = IdempotencyKey.objects.get_or_create(
                user=person, key=key, defaults={"digest": digest, "created_at": now}
            )
            if not is_new:
                return _again(row, digest)
            response = post(view, request, *args, **kwargs)
            row.status, row.body = response.status_code, json.loads(JSONRenderer().render(response.data) or b"null")
            row.headers = {name: response[name] for name in _KEPT if response.has_header(name)}
            row.save(update_fields=["status", "body", "headers"])
            return response

    return cast("Answer[View, P]", kept)


def _person(request: Request) -> User:
    assert isinstance(request.user, User)  # noqa: S101  a permission of every view
    return request.user


def _key(request: Request) -> str | None:
    key: str | None = request.headers.get(HEADER)
    if key is None:
        return None
    if not 1 <= len(key) <= LONGEST or not all("!" <= letter <= "~" for letter in key):
        raise Problem("invalid", f"The key has 1 to {LONGEST} visible ASCII characters.", where=HEADER)
    only = _person(request).narrowed_to
    if only is None:
        return key
    # A token of one tenant repeats nothing that its person did otherwise: the answer may tell of another one.
    return f"{only.public_id} {hashlib.sha256(key.encode()).hexdigest()}"


def _digest(request: Request) -> str:
    said: list[Any] = [request.method, request.path, request.data]
    return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _again(row: IdempotencyKey, digest: str) -> Response:
    if row.digest != digest:
        raise Problem("key_reused", "Another request was sent with this key in the last 24 hours.", where=HEADER)
    return Response(row.body, status=row.status, headers={**row.headers, REPLAYED: "true"})
