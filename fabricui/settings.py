"""All settings, in one file. Every FABRICUI_ variable is described in docs/settings.md (a test sees to it)."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from fabricui import environment
from remote import syslog

BASE_DIR = Path(__file__).resolve().parent.parent

# --- where things lie ---------------------------------------------------------------------------------------
DATA_DIR = Path(environment.text("FABRICUI_DATA_DIR", str(BASE_DIR / ".fabricui")))
DEMO = environment.flag("FABRICUI_DEMO", False)  # the database belongs to a demo; `./run up` refuses it

# --- security -----------------------------------------------------------------------------------------------
DEBUG = environment.flag("FABRICUI_DEBUG", False)
SECRET_KEY = environment.text("FABRICUI_SECRET_KEY", "")
if not SECRET_KEY:
    raise environment.BadEnvironment(
        "FABRICUI_SECRET_KEY is empty. Put 50 random characters into a file and name it in FABRICUI_SECRET_KEY_FILE "
        "(./run does so by itself for demo and test)."
    )
ALLOWED_HOSTS = environment.words("FABRICUI_HOSTS", "127.0.0.1,localhost")
CSRF_TRUSTED_ORIGINS = environment.words("FABRICUI_ORIGINS", "")
BEHIND_TLS = environment.flag("FABRICUI_TLS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
# Both ends of a session are kept by people.sessions; the cookie only outlives neither.
SESSION_HOURS = environment.number("FABRICUI_SESSION_HOURS", 12, least=1)
SESSION_IDLE_MIN = environment.number("FABRICUI_SESSION_IDLE_MIN", 60, least=5)
SESSION_COOKIE_AGE = SESSION_HOURS * 3600
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:"],  # Tabler's CSS embeds its icons as data:
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}

# --- which door this process is -----------------------------------------------------------------------------
# The registration door has its own address and its own, much smaller site map.
LISTENER = environment.choice("FABRICUI_LISTENER", "web", ("web", "register", "metrics"))
ROOT_URLCONF = {
    "web": "fabricui.urls",
    "register": "fabricui.register_urls",
    "metrics": "fabricui.metrics_urls",
}[LISTENER]
ASGI_APPLICATION = "fabricui.asgi.application"

INSTALLED_APPS = [
    "fabricui",
    "portal",
    "console",
    "probes",
    "partitions",
    "deploy",
    "inventory",
    "live",
    "webhooks",
    "people",
    "audit",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "rules",
    "knox",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "fabricui.health.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "fabricui.no_nul.NoNulMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "people.languages.LanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "audit.request_id.RequestIdMiddleware",
    "audit.unavailable.TrailUnavailableMiddleware",
    "people.signed_in.SignedInMiddleware",
]
if LISTENER == "register":  # it knows no people: no sessions, no forms, no pages
    MIDDLEWARE = [
        "fabricui.health.HealthMiddleware",
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "fabricui.no_nul.NoNulMiddleware",
        "allauth.account.middleware.AccountMiddleware",  # allauth does not start without
        "audit.request_id.RequestIdMiddleware",
    ]
if LISTENER == "metrics":  # health and figures, for monitoring alone
    MIDDLEWARE = [
        "fabricui.health.HealthMiddleware",
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "allauth.account.middleware.AccountMiddleware",  # allauth does not start without
        "audit.request_id.RequestIdMiddleware",
    ]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "fabricui.page.context",
            ],
        },
    },
]
AUTH_USER_MODEL = "people.User"
AUTHENTICATION_BACKENDS = [
    "rules.permissions.ObjectPermissionBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "people.adapter.ClosedAdapter"  # accounts are made by an administrator, never by signing up
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "10/m/ip,5/5m/key"}
# Operators and administrators need a second factor; "off" is for the demo and for tests, and `./run up` refuses it.
MFA = environment.choice("FABRICUI_MFA", "required", ("required", "off"))
MFA_ADAPTER = "people.second_factor.SecondFactorAdapter"
MFA_TOTP_ISSUER = "FabricUI"
MFA_TOTP_TOLERANCE = 1  # telephones' clocks are half a minute off
MFA_RECOVERY_CODES_SHOW_ONCE = True
# First encrypts, all decrypt; empty: derived from SECRET_KEY.
MFA_KEYS = environment.words("FABRICUI_MFA_KEYS", "")
# How long ago a person may have shown who they are for a rollout; 0 never asks, and `./run up` refuses it.
FRESH_LOGIN_MIN = environment.number("FABRICUI_FRESH_LOGIN_MIN", 15)
# One OpenID provider, beside local accounts; without an issuer there is none (docs/people.md).
OIDC_ISSUER = environment.text("FABRICUI_OIDC_ISSUER", "").rstrip("/")
OIDC_NAME = environment.text("FABRICUI_OIDC_NAME", "single sign-on")
OIDC_ROLE_CLAIM = environment.text("FABRICUI_OIDC_ROLE_CLAIM", "")
OIDC_ROLES = environment.pairs("FABRICUI_OIDC_ROLES", "", allowed=("admin", "operator", "auditor"))
if OIDC_ISSUER and not OIDC_ISSUER.startswith(("https://", "http://127.0.0.1:")):
    raise environment.BadEnvironment(f"FABRICUI_OIDC_ISSUER={OIDC_ISSUER} does not begin with https://.")
OIDC_CLIENT_ID = environment.text("FABRICUI_OIDC_CLIENT_ID", "")
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    raise environment.BadEnvironment(
        "FABRICUI_OIDC_ISSUER needs FABRICUI_OIDC_CLIENT_ID, by which the provider knows us."
    )
if bool(OIDC_ROLE_CLAIM) != bool(OIDC_ROLES):
    raise environment.BadEnvironment(
        "FABRICUI_OIDC_ROLE_CLAIM and FABRICUI_OIDC_ROLES go together: the claim that holds groups, and which of them "
        "gives which role. Set both or neither."
    )


def openid_providers(issuer: str, client_id: str, secret: str, name: str) -> dict[str, Any]:
    """What allauth is told of the provider; nothing without an issuer."""
    app = {"provider_id": "sso", "name": name, "client_id": client_id, "secret": secret}
    apps = [{**app, "settings": {"server_url": issuer}}] if issuer else []
    return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": apps}}


SOCIALACCOUNT_PROVIDERS = openid_providers(
    OIDC_ISSUER,
    OIDC_CLIENT_ID,
    environment.text("FABRICUI_OIDC_SECRET", ""),
    OIDC_NAME,
)
SOCIALACCOUNT_ADAPTER = "people.openid.OpenIDAdapter"
# A form that ends at the provider would need every address of its own chain of logins in the CSP; a link does not.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
KNOX_TOKEN_MODEL = "people.Token"  # noqa: S105  a model, no secret
# knox's own migrations would make a table for the token model that ours replaces, with a foreign key to people.
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {"TOKEN_PREFIX": "fui_"}
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["people.api.json_body.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["people.authentication.RecordedTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "people.authentication.HasScope",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "people.api.problems.answer",
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
_ENUMS = {  # what the API's description calls them, where several fields have one name
    "RolloutState": "deploy.models.Rollout.State", "LookState": "deploy.models.Observation.State",
    "MembershipKind": "partitions.models.MembershipKind", "DriftKind": "deploy.models.Drift.Kind",
    "ProbeRunState": "probes.models.ProbeRun.State", "IsolationCheckState": "probes.models.IsolationCheck.State",
    "RequestState": "portal.models.TenantRequest.State", "RequestKind": "portal.models.TenantRequest.Kind",
}  # fmt: skip
SPECTACULAR_SETTINGS = {
    "TITLE": "FabricUI",
    "VERSION": "1",
    "DESCRIPTION": "docs/api.md says how to use it, with examples.",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_PATCH": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "people.api.schema.provider_only_is_optional",
    ],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": _ENUMS,
}

# --- database -----------------------------------------------------------------------------------------------


def _database(url: str) -> dict[str, Any]:
    """The database that `url` names; SQLite with the options under which concurrent writers never fail."""
    parts = urlparse(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": parts.path,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if parts.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            # ?host=/run/postgresql names the folder of a Unix socket, as libpq does
            "HOST": parts.hostname or parse_qs(parts.query).get("host", [""])[0],
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 60,
            "OPTIONS": {"connect_timeout": 10},  # a host that is gone answers nothing, and libpq would wait for minutes
            "CONN_HEALTH_CHECKS": True,  # a restarted server is met by a new connection, not by an error
        }
    raise environment.BadEnvironment(f"DATABASE_URL={url} is neither sqlite:///path nor postgresql://…")


DATABASES = {"default": _database(environment.text("DATABASE_URL", f"sqlite://{DATA_DIR / 'fabricui.sqlite3'}"))}
if LISTENER == "register":  # its threads stay (fabricui/in_groups.py), so their connections may as well
    DATABASES["default"]["CONN_MAX_AGE"] = 60
    # An agent waits for 20 s. Whatever holds a lock for longer must not keep every server that reports waiting as well.
    if "postgresql" in DATABASES["default"]["ENGINE"]:
        DATABASES["default"]["OPTIONS"]["options"] = "-c lock_timeout=10s -c statement_timeout=20s"
    else:
        DATABASES["default"]["OPTIONS"]["timeout"] = 10
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- broker, cache ------------------------------------------------------------------------------------------
# redis-py says unix:///path, Celery says redis+socket:///path: both are derived from the one setting.
REDIS_URL = environment.text("REDIS_URL", "")
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1) if REDIS_URL else "memory://"
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# --- managers and the fabric --------------------------------------------------------------------------------
# Only the rollout worker's account can read this key; the web process is not given it.
MANAGER_KEY_FILE = environment.text("FABRICUI_MANAGER_KEY_FILE", "")
READ_SMPS_PER_S = environment.number("FABRICUI_READ_SMPS_PER_S", 0)  # 0: unpaced; the pace of routine scans is theirs
PROOF_DEADLINE_S = environment.number("FABRICUI_PROOF_DEADLINE_S", 60, least=5)
WATCH_INTERVAL_S = environment.number("FABRICUI_WATCH_INTERVAL_S", 30, least=5)
WATCH_SMPS_PER_S = environment.number("FABRICUI_WATCH_SMPS_PER_S", 2000)  # the pace of routine scans; 0: unpaced
WATCH_PORTS = environment.number("FABRICUI_WATCH_PORTS", 1000, least=1)  # HCA ports whose tables one look reads
OBSERVATION_FRESH_S = environment.number("FABRICUI_OBSERVATION_FRESH_S", 300, least=10)

# --- partitions ---------------------------------------------------------------------------------------------
# Low keys are what hand-written files use, and 0x7fff is Default: new ones are drawn from in between.
PKEY_POOL = environment.spans("FABRICUI_PKEY_POOL", "0x0100-0x7dff", least=0x0001, most=0x7FFE)
PKEY_COOL_DOWN_DAYS = environment.number("FABRICUI_PKEY_COOL_DOWN_DAYS", 30)

# --- tenants ------------------------------------------------------------------------------------------------
# Seconds at least between a revision and a tenant's own next one; and twice what the last sweep took, whatever this is.
TENANT_ROLLOUTS_APART_S = environment.number("FABRICUI_TENANT_ROLLOUTS_APART_S", 60)

# --- the audit trail ----------------------------------------------------------------------------------------
# Left empty, both keys are made by themselves in the data folder: for demos and development. docs/audit.md, "Keys".
AUDIT_KEY_FILE = environment.text("FABRICUI_AUDIT_KEY_FILE", "")
AUDIT_SIGNING_KEY_FILE = environment.text("FABRICUI_AUDIT_SIGNING_KEY_FILE", "")  # only the housekeeping worker signs
AUDIT_PUBLIC_KEY_FILE = environment.text("FABRICUI_AUDIT_PUBLIC_KEY_FILE", "")  # empty: the signing key's name + .pub
AUDIT_ANCHOR_FILE = environment.text("FABRICUI_AUDIT_ANCHOR_FILE", str(DATA_DIR / "audit" / "anchors.jsonl"))
AUDIT_SYSLOG = environment.text("FABRICUI_AUDIT_SYSLOG", "")  # /dev/log, or host:port for UDP; empty: none
AUDIT_SPOOL_FILE = environment.text("FABRICUI_AUDIT_SPOOL_FILE", str(DATA_DIR / "audit" / "spool.jsonl"))

# --- registration -------------------------------------------------------------------------------------------
REGISTER_WORKERS = environment.number(
    "FABRICUI_REGISTER_WORKERS",
    environment.REGISTER_WORKERS[DATABASES["default"]["ENGINE"].rpartition(".")[2].rstrip("3")],
    least=1,
)
# Groups of requests that each of them works on at once, every one with a connection to the database of its own.
REGISTER_THREADS = environment.number("FABRICUI_REGISTER_THREADS", 1, least=1)
MANAGEMENT_NETWORKS = environment.words("FABRICUI_MANAGEMENT_NETWORKS", "127.0.0.0/8,::1/128")
# Behind a proxy: which addresses are the proxy's, and the header in which it names its client. Elsewhere it is noise.
REGISTER_PROXIES = environment.words("FABRICUI_REGISTER_PROXIES", "")
REGISTER_PROXY_HEADER = environment.text("FABRICUI_REGISTER_PROXY_HEADER", "")
if bool(REGISTER_PROXIES) != bool(REGISTER_PROXY_HEADER):
    raise environment.BadEnvironment(
        "FABRICUI_REGISTER_PROXIES and FABRICUI_REGISTER_PROXY_HEADER go together: the addresses of the proxy in front "
        "of the registration door, and the header in which it names its client. Set both or neither."
    )
CREDENTIAL_DAYS = environment.number("FABRICUI_CREDENTIAL_DAYS", 30, least=1)
CLEAN_BY_LINK_LOSS = environment.flag("FABRICUI_CLEAN_BY_LINK_LOSS", True)
REGISTRATION_TRUST = environment.choice("FABRICUI_REGISTRATION_TRUST", "person", ("person", "witnessed", "enrolled"))
REGISTER_URL = environment.text("FABRICUI_REGISTER_URL", "")  # how servers reach the door, for the install line

# --- probes -------------------------------------------------------------------------------------------------
# Only the probe worker's account can read this key; it is not the managers' one.
PROBE_KEY_FILE = environment.text("FABRICUI_PROBE_KEY_FILE", "")
PROBES_AT_ONCE = environment.number("FABRICUI_PROBES_AT_ONCE", 8, least=1)
PROBE_PAIRS_PER_TICK = environment.number("FABRICUI_PROBE_PAIRS_PER_TICK", 64, least=1)
PROBE_RUNS_KEPT_DAYS = environment.number("FABRICUI_PROBE_RUNS_KEPT_DAYS", 30, least=1)
PROBE_DAYS_KEPT_DAYS = environment.number("FABRICUI_PROBE_DAYS_KEPT_DAYS", 730, least=1)
PROBE_ISOLATION_INTERVAL_S = environment.number("FABRICUI_PROBE_ISOLATION_INTERVAL_S", 3600, least=60)
PROBE_ISOLATION_PAIRS = environment.number("FABRICUI_PROBE_ISOLATION_PAIRS", 8, least=1)
# For tests only: attempts on Ethernet are real, although no P_Key keeps anybody apart there.
PROBE_ISOLATION_ON_ETHERNET = environment.flag("FABRICUI_PROBE_ISOLATION_ON_ETHERNET", False)

# --- messages to programs outside ----------------------------------------------------------------------------
# Inner networks that endpoints of webhooks may be in; none by default: whoever may name a URL could ask them.
WEBHOOK_NETWORKS = environment.networks("FABRICUI_WEBHOOK_NETWORKS", "")
WEBHOOK_CA_FILE = environment.text("FABRICUI_WEBHOOK_CA_FILE", "")  # empty: the machine's own authorities
SYSLOG = environment.text("FABRICUI_SYSLOG", "")  # /dev/log, udp://host:514, tcp://host:601, tls://host:6514
SYSLOG_CA_FILE = environment.text("FABRICUI_SYSLOG_CA_FILE", "")
if SYSLOG:
    try:
        syslog.parse(SYSLOG)
    except ValueError as error:
        raise environment.BadEnvironment(f"FABRICUI_SYSLOG: {error}") from error

# --- monitoring -----------------------------------------------------------------------------------------------
METRICS_TOKEN = environment.text("FABRICUI_METRICS_TOKEN", "")  # empty: no metrics

# --- language, time, files ----------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("ru", "Русский")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = (
    "fabricui.formats"  # numbers keep their point in every language, as OpenSM and the tools print them
)
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"  # of logs, workers and all that is kept
SITE_TIME_ZONE = environment.time_zone("FABRICUI_TIME_ZONE", "UTC")  # of pages, for people who chose none
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
FORM_RENDERER = "django.forms.renderers.DjangoTemplates"

LOG_FORMAT = environment.choice("FABRICUI_LOG_FORMAT", "text", ("text", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        "json": {"()": "fabricui.json_lines.JSONLines"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "loggers": {
        "paramiko": {"level": "WARNING"},  # one line a connection says nothing that the story does not
        # uvicorn has handlers of its own, whose lines are no JSON
        **({"uvicorn": {"handlers": ["stderr"], "propagate": False}} if LOG_FORMAT == "json" else {}),
    },
    "root": {"handlers": ["stderr"], "level": environment.text("FABRICUI_LOG_LEVEL", "INFO")},
}
if LOG_FORMAT == "json" and LISTENER == "web":  # the door is asked thousands of times in a boot storm
    MIDDLEWARE.insert(0, "fabricui.logs.RequestLineMiddleware")
