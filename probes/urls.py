"""The room's pages."""

from django.urls import URLPattern

app_name = "probes"
urlpatterns: list[URLPattern] = []
