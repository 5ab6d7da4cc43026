"""The pages of the OpenID provider of the tests; only its own process (openid_provider.py) imports this."""

import base64
import hashlib
import hmac
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

    def get_id_token_dictionary(self, token, token_handler, request):
        claims, until = super().get_id_token_dictionary(token, token_handler, request)
        claims |= next((more for what, more in WRONG_CLAIMS.items() if is_wrong(what)), {})
        if is_wrong("no end"):
            del claims["exp"]
        return claims, until

    def finalize_id_token(self, id_token, token, token_handler, request):
        if is_wrong("no nonce"):
            request.nonce = None
            id_token.pop("nonce", None)
        text = super().finalize_id_token(id_token, token, token_handler, request)
        if is_wrong("unsigned"):
            return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{text.split('.')[1]}."
        if is_wrong("a secret as its key"):  # whoever knows the public key could sign
            kid = json.loads(base64.urlsafe_b64decode(text.split(".")[0] + "=="))["kid"]
            signed = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{text.split('.')[1]}"
            return f"{signed}.{plain(hmac.digest(b'public', signed.encode(), hashlib.sha256))}"
        return text


WRONG_CLAIMS = {
    "another nonce": {"nonce": "0" * 64},
    "another audience": {"aud": "another client"},
    "several audiences": {"aud": ["fabricui", "another client"]},
    "another party": {"aud": ["fabricui", "another client"], "azp": "another client"},
    "identity of another issuer": {"iss": "https://elsewhere.example"},
    "identity that is over": {"exp": 1_000_000_000},
}


def plain(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encoded(header):
    return plain(json.dumps(header).encode())


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
