"""The site map: one include per room."""

from django.urls import include, path

handler500 = "fabricui.page.server_error"

urlpatterns = [
    path("account/", include("people.urls")),
    path("live/", include("live.urls")),
    path("probes/", include("probes.urls")),
    path("", include("console.urls")),
]
