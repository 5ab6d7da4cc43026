"""What is so wrong that every page says it: leaks between tenants that nobody has acknowledged yet."""

from django.http import HttpRequest

from people.permissions import may_review
from probes.models import Incident


def open_leaks(request: HttpRequest) -> list[Incident]:
    """The unacknowledged leaks, newest first; none for strangers. One query."""
    if not may_review(getattr(request, "user", None)):
        return []
    found = Incident.objects.filter(leak__isnull=False, acknowledged_at=None)
    return list(found.select_related("leak__sender", "leak__target", "leak__rollout").order_by("-opened_at")[:20])
