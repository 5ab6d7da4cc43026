"""The site map: one include per room."""

from django.urls import include, path

urlpatterns = [
    path("account/", include("people.urls")),
    path("", include("console.urls")),
]
