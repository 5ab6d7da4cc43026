"""The site map of the registration door, which has its own address and only these."""

from django.urls import include, path

urlpatterns = [
    path("register/v1/", include("inventory.register_urls")),
    path("register/v1/", include("partitions.register_urls")),
]
