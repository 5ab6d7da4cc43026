"""Which inner networks an endpoint may lead to: those that an administrator allowed, and for tenants none.

The site opens its own network for its own programs (FABRICUI_WEBHOOK_NETWORKS). A tenant that could name an address
there would have the provider's worker ask it.
"""

import ipaddress
from collections.abc import Sequence

from django.conf import settings

from people.models import Tenant


def allowed_for(owner: Tenant | None) -> Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """The inner networks that an endpoint of `owner` may lead to; None is the operators."""
    return settings.WEBHOOK_NETWORKS if owner is None else ()
