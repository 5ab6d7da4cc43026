"""The site map: one include per room."""

from django.urls import include, path

from portal.views import landing

handler500 = "fabricui.page.server_error"

urlpatterns = [
    path("account/", include("people.urls")),
    path("live/", include("live.urls")),
    path("probes/", include("probes.urls")),
    path("", landing.home, name="landing"),  # whose first page it is depends on who asks
    path("", include("portal.urls")),
    path("", include("console.urls")),
]
