"""A site map with the account pages and one page behind each decorator, for the tests of this room."""

from django.http import HttpResponse
from django.urls import include, path

from people.permissions import operator_required, person_required, reviewer_required


def page(request):
    return HttpResponse("inside")


async def async_page(request):
    return HttpResponse("inside")


urlpatterns = [
    path("account/", include("people.urls")),
    path("operators/", operator_required(page)),
    path("reviewers/", reviewer_required(page)),
    path("people/", person_required(page)),
    path("operators/async/", operator_required(async_page)),
    path("reviewers/async/", reviewer_required(async_page)),
    path("people/async/", person_required(async_page)),
    path("", page),
]
