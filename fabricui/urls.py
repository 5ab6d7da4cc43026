"""The site map: one include per room."""

from django.urls import include, path

from fabricui import health, metrics
from portal.views import landing

handler400 = "fabricui.api_errors.bad_request"
handler404 = "fabricui.api_errors.not_found"
handler500 = "fabricui.api_errors.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("account/", include("people.urls")),
    path("api/v1/", include("fabricui.api")),
    path("live/", include("live.urls")),
    path("webhooks/", include("webhooks.urls")),
    path("probes/", include("probes.urls")),
    path("", landing.home, name="landing"),  # whose first page it is depends on who asks
    path("", include("portal.urls")),
    path("", include("console.urls")),
]
