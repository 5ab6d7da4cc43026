"""A real OpenID provider on loopback for the tests: django-oauth-toolkit in a process of its own, with its own people.

`python -m tests.people.openid_provider FOLDER REDIRECT_URI` prints its port and serves until its standard input ends.
What FOLDER/groups.json says of a person, {"ona": ["fabric-ops"]}, is the claim `groups`; FOLDER/broken names what it
does wrong at the moment (tests/people/openid_site.py).
"""

import sys
import threading
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings

CLIENT_ID, SECRET, PASSWORD = "fabricui", "a secret of the client", "the password at the provider"
PEOPLE = {"ona": ("Ona", "Petrauskaitė"), "olga": ("Olga", "Elsewhere")}
LOGIN = """<form method="post">{% csrf_token %}{{ form }}<input type="hidden" name="next" value="{{ next }}"></form>"""


class Quiet(WSGIRequestHandler):
    def log_message(self, format, *args):
        """Say nothing: the tests look at answers."""


def configure(folder):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    settings.configure(
        SECRET_KEY="only for tests",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="tests.people.openid_site",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "provider.sqlite3")}},
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": [("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN})],
                    "context_processors": ["django.template.context_processors.request"],
                },
            }
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGIN_URL="/login/",
        USE_TZ=True,
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "OAUTH2_VALIDATOR_CLASS": "tests.people.openid_site.Validator",
            "SCOPES": {"openid": "who you are", "profile": "your name", "email": "your address"},
        },
        FOLDER=folder,
    )  # fmt: skip
    django.setup()


def serve(redirect_uri):
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    for username, (first, last) in PEOPLE.items():
        User.objects.create_user(username, f"{username}@example.com", PASSWORD, first_name=first, last_name=last)
    Application.objects.create(
        client_id=CLIENT_ID, client_secret=SECRET, name="FabricUI", redirect_uris=redirect_uri,
        client_type=Application.CLIENT_CONFIDENTIAL, authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        algorithm=Application.RS256_ALGORITHM, skip_authorization=True,
    )  # fmt: skip
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
    print(server.server_port, flush=True)  # noqa: T201
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    configure(Path(sys.argv[1]))
    serve(sys.argv[2])
