"""Labels of servers as files: out as CSV or JSON, in with a preview first. All of a file or nothing of it."""

from typing import Final

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console import inventory_filter, inventory_rows
from console.frame import the_subnet
from console.requests import filter_text
from console.views.home import no_subnet
from inventory import labels as files
from inventory import operations
from inventory.errors import InventoryError
from inventory.models import Server, Subnet
from people.actor import actor_of
from people.permissions import is_operator, operator_required, reviewer_required

_SHOWN: Final = 200  # changes spelled out on the preview


@require_http_methods(["GET", "HEAD", "POST"])
@reviewer_required
def labels(request: HttpRequest) -> HttpResponse:
    """The form; POST shows what a file would change, and POST with its digest writes exactly that."""
    subnet = the_subnet(request)
    if subnet is None:
        return no_subnet(request)
    return _take(request, subnet) if request.method == "POST" else _page(request, subnet)


@require_safe
@reviewer_required
def export(request: HttpRequest, form: str) -> HttpResponse:
    """The labels of all servers, or of those that the list's filter lets through, as `csv` or `json`."""
    subnet = the_subnet(request)
    if subnet is None or form not in ("csv", "json"):
        raise Http404
    found = inventory_filter.parse(filter_text(request, "q"), now=timezone.now())
    servers = Server.objects.visible_to(request.user).filter(subnet=subnet).select_related("tenant")
    rows = (
        {
            "hostname": server.hostname,
            "rack": server.rack,
            "unit": server.unit,
            "serial": server.serial,
            "tenant": "" if server.tenant is None else server.tenant.slug,
        }
        for server in inventory_filter.filtered(servers, found).order_by("hostname")
    )
    text = files.write_csv(rows) if form == "csv" else files.write_json(rows)
    kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
    answer = HttpResponse(text.encode(), content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="fabricui-labels.{form}"'
    return answer


@operator_required
def _take(request: HttpRequest, subnet: Subnet) -> HttpResponse:
    upload = request.FILES.get("file")
    # A browser gives line ends back as CRLF; for a CSV and for JSON that is the same text.
    data = upload.read(files.MOST_BYTES + 1) if isinstance(upload, UploadedFile) else _typed(request)
    if not data.strip():
        return _page(request, subnet, status=422, problem="Choose a file, or paste its text.")
    file = files.read(data)
    digest = request.POST.get("digest", "")
    if digest:
        try:
            count = operations.label_servers(subnet=subnet, file=file, digest=digest, actor=actor_of(request.user))
        except InventoryError as refusal:
            return _page(request, subnet, status=409, problem=str(refusal), data=data, file=file)
        messages.success(request, f"{count} server{'' if count == 1 else 's'} labelled.")
        return redirect("console:labels")
    return _page(request, subnet, data=data, file=file)


def _typed(request: HttpRequest) -> bytes:
    return request.POST.get("text", "").encode("utf-8", "replace")


def _readable(data: bytes) -> str:
    """What was sent, to be mended on the page; nothing of a file that is no text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""


def _page(
    request: HttpRequest,
    subnet: Subnet,
    *,
    status: int = 200,
    problem: str = "",
    data: bytes = b"",
    file: files.LabelFile | None = None,
) -> HttpResponse:
    preview = None if file is None else operations.preview_labels(subnet=subnet, file=file)
    shown = {
        "may_act": is_operator(request.user),
        "problem": problem,
        "preview": preview,
        "changes": () if preview is None else preview.changes[:_SHOWN],
        "more": 0 if preview is None else max(0, len(preview.changes) - _SHOWN),
        "text": _readable(data),
        "columns": files.COLUMNS,
        "totals": inventory_rows.totals(subnet),
    }
    if preview is not None and preview.errors and status == 200:
        status = 422
    return render(request, "console/labels.html", shown, status=status)
