"""What is so wrong that every page says it: leaks between tenants that nobody has acknowledged yet."""

from django.db.models import QuerySet

from probes.models import Incident


def open_leaks() -> QuerySet[Incident]:
    """The unacknowledged leaks, in no order."""
    return Incident.objects.filter(leak__isnull=False, acknowledged_at=None)
