"""The ASGI door that uvicorn serves."""

import gc
import os
from typing import cast

import django
from django.core.asgi import get_asgi_application

from inventory.body_limit import App, BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")


def _application() -> App:
    from django.conf import settings

    if settings.LISTENER == "register":
        # Bodies come from machines on which tenants are root, and all of a hall may boot at once.
        django.setup(set_prefix=False)
        from fabricui.in_groups import ByDjango, InGroups

        door = BodyLimit(InGroups(ByDjango(), threads=settings.REGISTER_THREADS))
        # A storm makes thousands of objects a second that no cycle holds: to look through them so often, and through
        # all of Django each time, was a fifteenth of what a registration costs (ADR 49).
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        return door
    pages = cast(App, get_asgi_application())
    from fabricui.api_body import ApiBodyLimit

    return ApiBodyLimit(pages)


application = _application()
