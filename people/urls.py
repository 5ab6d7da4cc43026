"""The account pages: of allauth's only those we need, under allauth's names, because its views look them up."""

from allauth.account import views as allauth_views
from django.urls import path

from people import language_views, mfa_views, token_views, views

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("login/code/", mfa_views.authenticate, name="mfa_authenticate"),
    path("sso/<slug:provider_id>/login/", views.sso, name="openid_connect_login"),
    path("sso/<slug:provider_id>/callback/", views.sso_callback, name="openid_connect_callback"),
    path("logout/", allauth_views.logout, name="account_logout"),
    path("inactive/", allauth_views.account_inactive, name="account_inactive"),
    path("password/", views.password_change, name="account_change_password"),
    path("second-factor/", mfa_views.index, name="mfa_index"),
    path("second-factor/set-up/", mfa_views.activate, name="mfa_activate_totp"),
    path("second-factor/remove/", mfa_views.deactivate, name="mfa_deactivate_totp"),
    path("second-factor/codes/", mfa_views.view_codes, name="mfa_view_recovery_codes"),
    path("second-factor/codes/new/", mfa_views.generate_codes, name="mfa_generate_recovery_codes"),
    path("tokens/", token_views.tokens, name="tokens"),
    path("tokens/<str:key>/revoke/", token_views.revoke, name="token_revoke"),
    path("theme/", views.theme, name="set_theme"),
    path("language/", language_views.language, name="set_language"),
    path("time-zone/", language_views.time_zone, name="time_zone"),
]
