"""The ASGI door that uvicorn serves."""

import os
from typing import cast

from django.core.asgi import get_asgi_application

from inventory.body_limit import App, BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")


def _application() -> App:
    from django.conf import settings

    pages = cast(App, get_asgi_application())
    # The registration door takes bodies from machines on which tenants are root; the pages take people's forms.
    return BodyLimit(pages) if settings.LISTENER == "register" else pages


application = _application()
