"""The site map of the listener for monitoring, which has its own address and only these (FABRICUI_LISTENER=metrics)."""

from django.urls import path

from fabricui import health, metrics

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
]
