"""The account pages: of allauth's only those we need, under allauth's names, because its views look them up."""

from allauth.account import views as allauth_views
from django.urls import path

from people import views

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", allauth_views.logout, name="account_logout"),
    path("inactive/", allauth_views.account_inactive, name="account_inactive"),
    path("password/", allauth_views.password_change, name="account_change_password"),
    path("theme/", views.theme, name="set_theme"),
]
