"""What every page knows: the version, whether this is a demo, the navigation that higher rooms have filled."""

from django.conf import settings
from django.http import HttpRequest


def context(request: HttpRequest) -> dict[str, object]:
    """The context processor of base.html."""
    return {"is_demo": settings.DEMO}
