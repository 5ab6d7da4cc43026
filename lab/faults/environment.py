"""What Django's settings read while faults are played: a database of its own, a private broker, a short deadline."""

import secrets
from pathlib import Path

from fabricui.broker import choose
from lab.postgresql import Cluster
from lab.site import Site

PROOF_DEADLINE_S = 15  # a sweep of the small fabric takes 20 ms


def environment(folder: Path, site: Site, cluster: Cluster) -> dict[str, str]:
    """What Django's settings read, in this process and in every worker."""
    return {
        "DJANGO_SETTINGS_MODULE": "fabricui.settings",
        "FABRICUI_DEMO": "1",
        "FABRICUI_MFA": "off",
        "FABRICUI_FRESH_LOGIN_MIN": "0",  # its clients are signed in without a login
        "FABRICUI_DATA_DIR": str(folder),
        "DATABASE_URL": cluster.url,
        "REDIS_URL": choose(redis_url="", directory=folder).url,
        "FABRICUI_SECRET_KEY": secrets.token_urlsafe(40),
        "FABRICUI_MANAGER_KEY_FILE": str(site.manager_key),
        "FABRICUI_REGISTRATION_TRUST": "enrolled",
        "FABRICUI_PROOF_DEADLINE_S": str(PROOF_DEADLINE_S),
        "FABRICUI_HOSTS": "testserver",
        "FABRICUI_LOG_LEVEL": "ERROR",
    }
