"""The addresses of the registration door, under /register/v1/."""

from django.urls import path

from inventory import register

app_name = "register"
urlpatterns = [
    path("enrol", register.enrol, name="enrol"),
    path("rotate", register.rotate, name="rotate"),
    path("reports", register.reports, name="reports"),
]
