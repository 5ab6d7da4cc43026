"""What of tenants waits for an operator, for the console's Home: unanswered requests, and moves left to a person."""

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from console.from_above import Need
from console.lamps import Colour, Lamp
from portal.left_to_operators import LeftMoves, left_moves
from portal.models import TenantRequest


def needs() -> list[Need]:
    """Two queries while no tenant has staged anything, five whatever there is."""
    moves = Lamp(Colour.WARN, "user", gettext("moves of a tenant"))
    found = [Need(moves, sentence(left), left.plan) for left in left_moves()]
    count = TenantRequest.objects.unanswered().count()
    if count:
        said = ngettext(
            "%(count)d request of a tenant waits for an answer.",
            "%(count)d requests of tenants wait for an answer.",
            count,
        ) % {"count": count}
        address = reverse("portal:operator_requests")
        found.append(Need(Lamp(Colour.WARN, "list-check", gettext("request")), said, address))
    return found


def sentence(left: LeftMoves) -> str:
    """“Acme has staged moves of 2 servers that wait for an operator. …”, with why."""
    said = ngettext(
        "%(tenant)s has staged moves of %(count)d server that wait for an operator.",
        "%(tenant)s has staged moves of %(count)d servers that wait for an operator.",
        left.servers,
    ) % {"tenant": left.tenant, "count": left.servers}
    return f"{said} {left.why}"
