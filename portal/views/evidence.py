"""Evidence: what the tenant can hand to an auditor, as it is now, as it was signed, and what it is checked with."""

import json
from pathlib import Path

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from audit import signing, verifier
from audit.canonical import plain
from audit.errors import SigningUnavailable
from portal.door import Seat, acting, tenant_page
from portal.errors import Refused
from portal.evidence import asking
from portal.evidence.contents import gather
from portal.evidence.shown import shown
from portal.frame import frame
from portal.models import SignedEvidence


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@tenant_page
def evidence(request: HttpRequest, seat: Seat) -> HttpResponse:
    """How things stand now, and what was signed; POST asks for another signed document."""
    return _ask(request, seat) if request.method == "POST" else _page(request, seat)


@acting
def _ask(request: HttpRequest, seat: Seat) -> HttpResponse:
    try:
        asking.ask(seat=seat)
    except Refused as refused:
        return _page(request, seat, error=str(refused), status=409)
    messages.success(request, gettext("It is being signed, and shows here in a moment."))
    return redirect("portal:evidence", seat.tenant.public_id)


def _page(request: HttpRequest, seat: Seat, *, error: str = "", status: int = 200) -> HttpResponse:
    rows = SignedEvidence.objects.visible_to(seat.person).filter(tenant=seat.tenant).defer("data")
    signed = list(rows.select_related("asked_by").order_by("-pk"))
    page = {**frame(seat, "evidence"), "signed": signed, "error": error}
    if request.htmx:  # type: ignore[attr-defined]  # the list of documents alone asks again
        return render(request, "portal/evidence.html#signed", page, status=status)
    page["facts"] = shown(_plain(gather(seat, now=timezone.now())))
    page["key"] = _key()
    return render(request, "portal/evidence.html", page, status=status)


@require_safe
@never_cache
@tenant_page
def document(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """A signed document to read and to print: what its file says, and nothing else."""
    row = _found(seat, public_id)
    written = json.loads(bytes(row.data or b""))
    page = {"row": row, "key": written["key"], "content": written["content"], "facts": shown(written["content"])}
    return render(request, "portal/evidence_document.html", {**frame(seat, "evidence"), **page})


@require_safe
@never_cache
@tenant_page
def download(request: HttpRequest, seat: Seat, public_id: str) -> HttpResponse:
    """The file that is checked, byte for byte."""
    row = _found(seat, public_id)
    assert row.signed_at is not None  # noqa: S101  _found gives no others
    name = f"evidence-{row.signed_at:%Y%m%d-%H%M%S}-{row.digest[:12]}.json"
    return _file(bytes(row.data or b""), name, "application/json")


@require_safe
@never_cache
@tenant_page
def public_key(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The public key that the signatures are checked with."""
    try:
        return _file(f"{signing.public_key().hex()}\n".encode(), "evidence-key.pub", "text/plain; charset=utf-8")
    except SigningUnavailable as error:
        raise Http404 from error


@require_safe
@never_cache
@tenant_page
def check(request: HttpRequest, seat: Seat) -> HttpResponse:
    """The program that checks them offline: one file of Python's standard library."""
    return _file(Path(verifier.__file__).read_bytes(), "verifier.py", "text/x-python; charset=utf-8")


def _found(seat: Seat, public_id: str) -> SignedEvidence:
    """One of the tenant's that is signed; Http404 for any other."""
    rows = SignedEvidence.objects.visible_to(seat.person).filter(tenant=seat.tenant).exclude(signed_at=None)
    found = rows.select_related("asked_by").filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def _file(data: bytes, name: str, kind: str) -> HttpResponse:
    return HttpResponse(data, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _key() -> str:
    """The fingerprint of the public key; “” while there is none."""
    try:
        return verifier.fingerprint(signing.public_key())
    except SigningUnavailable:
        return ""


def _plain(facts: dict[str, object]) -> dict[str, object]:
    value = plain(facts, where="evidence")
    assert isinstance(value, dict)  # noqa: S101  a mapping stays one
    return {**value}
