"""What the views read from a request: who asks, and in which form the answer is wanted."""

from typing import Final

from django.http import HttpRequest, JsonResponse

from people.models import User
from people.said import said

LONGEST_FILTER: Final = 300  # characters; no name, GUID or sentence that is looked for is longer


def person(request: HttpRequest) -> User:
    """Who asks. Only behind `operator_required` and `reviewer_required`, which let nobody anonymous in."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101  the decorators say so
    return user


def wants_json(request: HttpRequest) -> bool:
    """Whether the page's own script asks, which moves one card and not the page."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def told_as_json(sentence: str, *, status: int = 200, **more: object) -> JsonResponse:
    """The sentence in the reader's language, to the page's own script, which shows and announces it."""
    return JsonResponse({"sentence": said(sentence), **more}, status=status)


def filter_text(request: HttpRequest, name: str) -> str:
    """What the address says to filter by, such that every database takes it: no NUL, and not without end."""
    return request.GET.get(name, "").replace("\0", "").strip()[:LONGEST_FILTER]
