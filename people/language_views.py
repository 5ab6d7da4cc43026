"""The person's language and time zone: a switch in the menu, a page for the zone."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from people import operations
from people.actor import actor_of
from people.errors import NoSuchLanguage, NoSuchTimeZone
from people.languages import zones
from people.models import User
from people.permissions import person_required


@require_POST
@person_required
def language(request: HttpRequest) -> HttpResponse:
    """Switch the language and go back to where the person was."""
    assert isinstance(request.user, User)  # noqa: S101  person_required saw to it
    try:
        operations.set_language(
            person=request.user, language=request.POST.get("language", ""), actor=actor_of(request.user)
        )
    except NoSuchLanguage as error:
        return HttpResponseBadRequest(str(error), content_type="text/plain; charset=utf-8")
    return HttpResponseRedirect(back(request, "/"))


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def time_zone(request: HttpRequest) -> HttpResponse:
    """Choose the time zone, on a page of its own or by taking what the browser says."""
    assert isinstance(request.user, User)  # noqa: S101  as above
    if request.method == "POST":
        try:
            operations.set_time_zone(
                person=request.user, time_zone=request.POST.get("time_zone", ""), actor=actor_of(request.user)
            )
        except NoSuchTimeZone as error:
            messages.error(request, str(error))
        else:
            messages.success(request, "Times are shown in your time zone.")
        return HttpResponseRedirect(back(request, request.path))
    return render(request, "account/time_zone.html", {"zones": zones(), "chosen": request.user.time_zone})


def back(request: HttpRequest, otherwise: str) -> str:
    """Where the form says the person was, if that is here."""
    wanted = request.POST.get("next", "")
    is_here = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_here else otherwise
