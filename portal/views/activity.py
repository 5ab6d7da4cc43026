"""Activity: what happened to what is the tenant's, from the audit trail."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.requests import filter_text
from portal.activity import found
from portal.activity.told import told
from portal.door import Seat, tenant_page
from portal.frame import frame


@require_safe
@never_cache
@tenant_page
def activity(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The newest events, or those behind one that was shown."""
    people = found.people_of(seat.tenant)
    behind, problems = filter_text(request, "behind"), []
    asked = found.Asked()
    try:
        page = found.page(seat.tenant, seat.person, asked, people=people, behind=behind)
    except found.BadPlace as error:
        problems.append(str(error))
        page = found.page(seat.tenant, seat.person, asked, people=people)
    shown = {
        **frame(seat, "activity"),
        "lines": told(seat.tenant, page.events, people=people),
        "page": page,
        "behind": behind,
        "problems": problems,
    }
    name = "portal/activity.html#live" if request.htmx else "portal/activity.html"  # type: ignore[attr-defined]
    return render(request, name, shown)
