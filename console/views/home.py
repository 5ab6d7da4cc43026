"""The first page: one glance at everything, or the way to begin when there is no subnet yet."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.frame import the_subnet
from console.overview import overview
from console.requests import person
from people.permissions import is_operator, reviewer_required


@require_safe
@never_cache
@reviewer_required
def home(request: HttpRequest) -> HttpResponse:
    """How the site stands, what waits for a person, and what was spared; asks again when something changed."""
    if the_subnet(request) is None:
        return no_subnet(request)
    name = "console/home.html#body" if request.htmx else "console/home.html"  # type: ignore[attr-defined]
    return render(request, name, {**overview(person(request)), "may_act": is_operator(request.user)})


def no_subnet(request: HttpRequest) -> HttpResponse:
    """What every page shows while there is no subnet: why it is empty and what to do."""
    return render(request, "console/no_subnet.html", {"may_act": is_operator(request.user)})
