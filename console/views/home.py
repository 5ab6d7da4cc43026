"""The first page: the board, or what to do when there is no subnet yet."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from console.frame import the_subnet
from people.permissions import reviewer_required


@require_safe
@reviewer_required
def home(request: HttpRequest) -> HttpResponse:
    """Lead to the board once there is a subnet."""
    if the_subnet(request) is None:
        return no_subnet(request)
    return redirect("console:board")


def no_subnet(request: HttpRequest) -> HttpResponse:
    """What every page shows while there is no subnet: why it is empty and what to do."""
    return render(request, "console/no_subnet.html")
