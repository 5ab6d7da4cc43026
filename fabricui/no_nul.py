"""No NUL in any address or form field: PostgreSQL takes none in a text, and would end the request as a crash."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse


class NoNulMiddleware:
    """Answer 400 to a request with a NUL in its path, its query or a form field; no person types one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on: the look is taken once the view is known."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: object) -> None:
        """Look at every text that the view may hand to the database.

        Doors for machines, exempt from the form's token, read their bodies by themselves, and no form.
        """
        forms = [request.GET] if getattr(view, "csrf_exempt", False) else [request.GET, request.POST]
        if any("\0" in text for text in (request.path_info, *_texts(forms))):
            raise SuspiciousOperation("The request has a NUL in its address or in a field.")


def _texts(forms: Iterable[Any]) -> Iterator[str]:
    for form in forms:
        for name, values in form.lists():
            yield name
            yield from map(str, values)
