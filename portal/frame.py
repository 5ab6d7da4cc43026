"""What stands around each of the tenant's pages: whose portal it is, its pages, and which one this is."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from people.models import TenantRole
from portal.door import Seat

# Title, url name, icon.
PAGES: Final = (
    (gettext_lazy("My servers"), "servers", "server-2"),
    (gettext_lazy("My partitions"), "partitions", "affiliate"),
    (gettext_lazy("Requests"), "requests", "list-check"),
    (gettext_lazy("Evidence"), "evidence", "shield-check"),
    (gettext_lazy("Activity"), "activity", "history"),
    (gettext_lazy("Settings"), "settings", "settings"),
)


@dataclass(frozen=True, slots=True)
class Item:
    """One page of the navigation."""

    title: str
    address: str
    icon: str
    is_current: bool


def frame(seat: Seat, here: str) -> dict[str, object]:
    """What `portal/base.html` needs; `here` is the url name of the page in the navigation."""
    items = [
        Item(str(title), reverse(f"portal:{name}", args=[seat.tenant.public_id]), icon, name == here)
        for title, name, icon in PAGES
    ]
    role = {
        TenantRole.Role.VIEWER: gettext("viewer"),
        TenantRole.Role.MEMBER: gettext("member"),
        TenantRole.Role.ADMIN: gettext("administrator"),
    }[seat.role]
    return {"seat": seat, "portal_pages": items, "role_words": role, "may_act": seat.may_act}
