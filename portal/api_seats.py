"""Seats of programs: for which tenant of theirs a person acts by the API, with the refusals of the portal's door."""

from django.http import Http404

from partitions.api import named_wrong
from people.api.problems import Problem
from people.models import TenantRole, User
from portal.door import Seat, seat_of, viewer_sentence


def reading_seat(person: User, tenant: str | None, *, where: str = "tenant") -> Seat:
    """The seat of `person` at the tenant with this public id; None: at their only one.

    Raises Problem for a tenant of which they have no role, and where they have to name one; Http404 for somebody who is
    nobody's.
    """
    if tenant is None:
        own = list(TenantRole.objects.of_person(person).values_list("tenant__public_id", flat=True)[:2])
        if not own:
            raise Http404
        if len(own) > 1:
            raise named_wrong(where, "You have several tenants. Name one.")
        tenant = own[0]
    try:
        return seat_of(person, tenant)
    except Http404:
        raise named_wrong(where, "You have no role for a tenant of this id.") from None


def acting_seat(person: User, tenant: str | None, *, where: str = "tenant") -> Seat:
    """The same of somebody who may change something there. Raises Problem for a viewer's too."""
    seat = reading_seat(person, tenant, where=where)
    if not seat.may_act:
        raise Problem("refused", viewer_sentence(seat), mend="Ask an administrator of the tenant.")
    return seat
