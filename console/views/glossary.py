"""The glossary as a page: every word that FabricUI uses, and what it means."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.glossary import words
from people.permissions import reviewer_required


@require_safe
@reviewer_required
def glossary(request: HttpRequest) -> HttpResponse:
    """The words of docs/glossary.md."""
    return render(request, "console/glossary.html", {"words": words()})
