"""Activity: what happened to what is the tenant's, by the filters in the address; and the same as a file."""

from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_safe

from console.requests import filter_text
from people.said import said
from portal.activity import files, found
from portal.activity.filters import WORDS, filters
from portal.activity.told import told
from portal.door import Seat, tenant_page
from portal.frame import frame

FORMS: Final = (("csv", "CSV"), ("json", "JSON"))
OTHERS: Final = ((found.PROVIDER, gettext_lazy("your provider")), (found.FABRICUI, "FabricUI"))


@require_safe
@never_cache
@tenant_page
def activity(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The newest events that match, or those behind one that was shown."""
    people = found.people_of(seat.tenant)
    asked = filters(request, people=people)
    behind, problems = filter_text(request, "behind"), list(asked.problems)
    try:
        page = found.page(seat.tenant, seat.person, asked.asked, people=people, behind=behind)
    except found.BadPlace as error:
        problems.append(str(error))
        page = found.page(seat.tenant, seat.person, asked.asked, people=people)
    shown = {
        **frame(seat, "activity"),
        "lines": told(seat.tenant, page.events, people=people),
        "page": page,
        "behind": behind,
        "problems": problems,
        "filters": asked,
        "asked": asked.texts,
        "kinds": [(kind.value, words) for kind, words in WORDS.items()],
        "whos": [*people.items(), *OTHERS],
        "forms": FORMS,
        "most": files.MOST,
    }
    name = "portal/activity.html#live" if request.htmx else "portal/activity.html"  # type: ignore[attr-defined]
    return render(request, name, shown)


@require_GET
@never_cache
@tenant_page
def export(request: HttpRequest, seat: Seat, form: str) -> HttpResponse:
    """What the filters show, as a file; that it was taken is told in the tenant's activity."""
    if form not in files.FORMS:
        raise Http404
    asked = filters(request, people=found.people_of(seat.tenant))
    if asked.problems:
        sentences = "\n".join(str(said(problem)) for problem in asked.problems)
        return HttpResponse(sentences, status=400, content_type="text/plain; charset=utf-8")
    text, is_cut = files.write(seat=seat, filters=asked, form=form)
    answer = HttpResponse(text, content_type=files.FORMS[form])
    part = f"newest-{files.MOST}" if is_cut else ""
    name = "-".join(word for word in ("activity", seat.tenant.slug, part) if word)
    answer["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return answer
