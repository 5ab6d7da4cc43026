"""Opening a page of the list in a browser's tab, on whatever answers at an address."""

from typing import TYPE_CHECKING, Any, Final

from lab.pictures.pages import Page
from lab.pictures.scene import Scene

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

NOWHERE: Final = "/an-answer-of-no-address/"
REQUEST_ID: Final = "4f1c2d7e90ab"


def address_of(page: Page, scene: Scene) -> str:
    """Path and query of `page` among the rows of `scene`."""
    from django.urls import reverse

    if page.template:
        return f"{NOWHERE}{page.name}/"
    places = scene.places.get(page.name, scene.places.get(page.view, []))
    path = page.path or reverse(page.view, args=places)
    return f"{path}?{page.query.format(**scene.words)}" if page.query else path


def visit(tab: "Tab", base: str, page: Page, scene: Scene, *, language: str = "en") -> int:
    """Load `page` and click what it says; return the status of the answer."""
    if page.template:
        body = _rendered(page, scene, language)
        tab.route(
            f"{base}{NOWHERE}**", lambda route: route.fulfill(status=page.status, body=body, content_type="text/html")
        )
    answer = tab.goto(base + address_of(page, scene))
    for selector in filter(None, page.click.split(", ")):
        tab.locator(selector).first.click()
    if page.template:
        tab.unroute(f"{base}{NOWHERE}**")
    return answer.status if answer else 0


def _rendered(page: Page, scene: Scene, language: str) -> str:
    """An answer that no address gives when asked for, with what its view would say."""
    from django.template.loader import render_to_string
    from django.utils import translation

    from people.models import TenantRole
    from portal.door import Seat

    context: dict[str, Any] = {"request_id": REQUEST_ID, "minutes": 15, "with_password": True}
    if page.who == "max":
        role = TenantRole.objects.select_related("tenant").get(user=scene.people["max"])
        context["seat"] = Seat(role.user, role.tenant, TenantRole.Role(role.role))
    context["sentence"] = (
        "Your provider has stopped all changes. Nothing was changed."
        if page.who == "max"
        else "The audit trail cannot be written, so nothing is changed. Tell an operator."
    )
    with translation.override(language):
        return render_to_string(page.template, context)
