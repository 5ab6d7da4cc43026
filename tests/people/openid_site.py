"""The pages of the OpenID provider of the tests; only its own process (openid_provider.py) imports this."""

import json

from django.conf import settings
from django.contrib.auth.views import LoginView
from django.http import HttpResponse, JsonResponse
from django.urls import include, path
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.views import ConnectDiscoveryInfoView, UserInfoView


class Validator(OAuth2Validator):
    """The toolkit's own, with names and groups among the claims."""

    oidc_claim_scope = None

    def get_additional_claims(self, request):
        groups = json.loads((settings.FOLDER / "groups.json").read_text())
        user = request.user
        return {
            "preferred_username": user.username,
            "given_name": user.first_name,
            "family_name": user.last_name,
            "groups": groups.get(user.username, []),
        }


def is_wrong(what):
    path = settings.FOLDER / "broken"
    return path.exists() and path.read_text() == what


def userinfo(request):
    answer = UserInfoView.as_view()(request)
    if is_wrong("another person"):
        return JsonResponse({**json.loads(answer.content), "sub": "999"})
    return HttpResponse("no JSON") if is_wrong("nonsense") else answer


def discovery(request):
    told = json.loads(ConnectDiscoveryInfoView.as_view()(request).content)
    if is_wrong("another issuer"):
        told["issuer"] = "https://elsewhere.example"
    if is_wrong("other keys"):
        told["jwks_uri"] = request.build_absolute_uri("/no-keys")
    return JsonResponse(["no description"] if is_wrong("no description") else told, safe=False)


urlpatterns = [
    path("login/", LoginView.as_view()),
    path("o/.well-known/openid-configuration", discovery),
    path("o/userinfo/", userinfo),
    path("no-keys", lambda request: JsonResponse({"keys": []})),
    path("o/", include("oauth2_provider.urls")),
]
