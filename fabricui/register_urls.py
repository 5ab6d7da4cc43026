"""The site map of the registration door, which has its own address and only these."""

from django.urls import include, path

from fabricui import health

urlpatterns = [
    path("healthz", health.healthz),  # whether it is ready is no business of whoever reaches this door
    path("register/v1/", include("inventory.register_urls")),
    path("register/v1/", include("partitions.register_urls")),
]
