"""In which language and in whose time a page is: the person's own choice, else their browser's, else the site's.

Only pages speak to people. What machines read (the API, the streams of hints, health) is English, and so is
everything that is kept: the trail, revisions, files (ADR 48).
"""

from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from people.models import User

# Addresses that programs read; a browser's Accept-Language changes nothing there.
FOR_MACHINES: Final = ("/api/", "/live/", "/static/", "/healthz", "/readyz", "/metrics")


class LanguageMiddleware(MiddlewareMixin):
    """Answer each request in its reader's language, with times in their zone. No query of its own."""

    def process_request(self, request: HttpRequest) -> None:
        """Switch both for this request."""
        translation.activate(language_of(request))
        request.LANGUAGE_CODE = translation.get_language()  # as Django's own does
        timezone.activate(zone_of(request))

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Say the language, and that it depends on what the browser asked for; the next request begins afresh."""
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Language", translation.get_language() or settings.LANGUAGE_CODE)
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        translation.deactivate()
        timezone.deactivate()
        return response


def language_of(request: HttpRequest) -> str:
    """The code of the reader's language: theirs, else the first of their browser's that FabricUI speaks."""
    if request.path_info.startswith(FOR_MACHINES):
        return settings.LANGUAGE_CODE
    user = getattr(request, "user", None)
    if isinstance(user, User) and user.language:
        return user.language
    return translation.get_language_from_request(request)


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The reader's time zone: theirs, else the site's; UTC for programs."""
    if request.path_info.startswith(FOR_MACHINES):
        return ZoneInfo("UTC")
    user = getattr(request, "user", None)
    name = user.time_zone if isinstance(user, User) else ""
    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):  # a zone that this machine's data no longer has
            pass
    return ZoneInfo(settings.SITE_TIME_ZONE)


def zones() -> list[str]:
    """The names of all time zones that people live in, in order."""
    outside = ("Etc/", "SystemV/", "posix", "right/")
    return ["UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith(outside))]
