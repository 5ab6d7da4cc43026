"""The ASGI door that uvicorn serves."""

import os
from typing import cast

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from fabricui.in_threads import InThreads
from inventory.body_limit import App, BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")


def _application() -> App:
    from django.conf import settings

    if settings.LISTENER == "register":
        # Bodies come from machines on which tenants are root, and all of a hall may boot at once.
        return BodyLimit(InThreads(get_wsgi_application(), threads=settings.REGISTER_THREADS))
    return cast(App, get_asgi_application())


application = _application()
