"""Which request an event belongs to: one random id per request, in a context variable and in the answer's header.

Beside it, the address that the request came from.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Final, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER: Final = "X-Request-ID"

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_address: ContextVar[str] = ContextVar("address", default="")

type View = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


def current_request_id() -> str:
    """Give the id of the request being answered, or "" outside one (tasks, commands)."""
    return _request_id.get()


def current_address() -> str:
    """Give the address that the request being answered came from; "" outside one, and for a Unix socket."""
    return _address.get()


@contextmanager
def acting_from(address: str) -> Iterator[None]:
    """Let everything inside be done from `address`, as text; what is none counts as none."""
    try:
        known = str(ip_address(address.partition("%")[0]))
    except ValueError:
        known = ""
    token = _address.set(known)
    try:
        yield
    finally:
        _address.reset(token)


@contextmanager
def request_id(value: str) -> Iterator[None]:
    """Let everything inside belong to the request `value`: for a task that finishes what a request began."""
    token = _request_id.set(value)
    try:
        yield
    finally:
        _request_id.reset(token)


@contextmanager
def acting_for(request: str, address: str) -> Iterator[None]:
    """Let everything inside belong to a request and its address, as `current_…` gave them while it was answered."""
    tokens = _request_id.set(request), _address.set(address)
    try:
        yield
    finally:
        _address.reset(tokens[1])
        _request_id.reset(tokens[0])


class RequestIdMiddleware:
    """Give each request an id of our own.

    An id that came with the request is not used: whoever sent it could make events look like somebody else's.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer `request` under a fresh id."""
        if self.is_async:
            return self._answer_async(request)
        with request_id(secrets.token_hex(8)), acting_from(_address_of(request)):
            response = cast(HttpResponseBase, self.get_response(request))
            response[HEADER] = current_request_id()
            return response

    async def _answer_async(self, request: HttpRequest) -> HttpResponseBase:
        with request_id(secrets.token_hex(8)), acting_from(_address_of(request)):
            response = await cast(Awaitable[HttpResponseBase], self.get_response(request))
            response[HEADER] = current_request_id()
            return response


def _address_of(request: HttpRequest) -> str:
    # The end of the connection, or what the server made of the headers of a proxy that it trusts (docs/settings.md).
    return str(request.META.get("REMOTE_ADDR", ""))
