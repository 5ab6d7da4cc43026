"""What every page knows: whether this is a demo, and what the rooms add to it (navigation, the state of the subnet).

A room adds to the page by giving its AppConfig a method `page_context(request)`; so no room below needs to know this
module, and this module knows no room by name.
"""

from django.apps import apps
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from audit.request_id import current_request_id


def context(request: HttpRequest) -> dict[str, object]:
    """The context processor of base.html."""
    known: dict[str, object] = {"is_demo": settings.DEMO}
    for config in apps.get_app_configs():
        page_context = getattr(config, "page_context", None)
        if page_context is not None:
            known.update(page_context(request))
    return known


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an error of ours, with the request id to look up in the log.

    It touches neither the session nor the database: either may be what failed.
    """
    page = render_to_string("500.html", {"request_id": current_request_id()})
    return HttpResponse(page, status=500, headers={"Cache-Control": "no-store"})
