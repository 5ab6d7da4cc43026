"""The site map: one include per room."""

from django.urls import include, path

handler400 = "fabricui.api_errors.bad_request"
handler404 = "fabricui.api_errors.not_found"
handler500 = "fabricui.api_errors.server_error"

urlpatterns = [
    path("account/", include("people.urls")),
    path("api/v1/", include("fabricui.api")),
    path("live/", include("live.urls")),
    path("probes/", include("probes.urls")),
    path("", include("console.urls")),
]
