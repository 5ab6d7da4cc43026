"""The two addresses of the registration door, under /register/v1/."""

from django.urls import path

from inventory import register

app_name = "register"
urlpatterns = [
    path("enrol", register.enrol, name="enrol"),
    path("reports", register.reports, name="reports"),
]
