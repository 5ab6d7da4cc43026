"""What the views read from a request: who asks, and in which form the answer is wanted."""

from django.http import HttpRequest

from people.models import User


def person(request: HttpRequest) -> User:
    """Who asks. Only behind `operator_required` and `reviewer_required`, which let nobody anonymous in."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101  the decorators say so
    return user


def wants_json(request: HttpRequest) -> bool:
    """Whether the page's own script asks, which moves one card and not the page."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"
