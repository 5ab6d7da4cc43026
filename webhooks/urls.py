"""The room's pages."""

from django.urls import path

from webhooks import views

app_name = "webhooks"
urlpatterns = [
    path("", views.endpoints, name="endpoints"),
    path("<str:public_id>/", views.endpoint, name="endpoint"),
    path("<str:public_id>/test/", views.test, name="test"),
    path("<str:public_id>/on/", views.on, name="on"),
    path("<str:public_id>/off/", views.off, name="off"),
    path("<str:public_id>/secret/", views.secret, name="secret"),
    path("<str:public_id>/remove/", views.remove, name="remove"),
]
