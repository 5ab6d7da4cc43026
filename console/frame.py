"""What stands around each of the operator's pages: the navigation and the state of the subnet."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from console import from_above, lamps
from console.chain_status import trail_chip, trail_standing
from deploy import drifting
from deploy.drift_models import Drift
from deploy.models import Fence, Rollout
from inventory.models import Subnet
from people.permissions import is_admin, is_auditor, may_review
from probes.alarms import open_leaks
from probes.models import Incident

# Title, url name, icon, and the key after “g” that leads there.
PAGES = (
    ("Board", "console:board", "layout-kanban", "b"),
    ("Rollouts", "console:rollouts", "rocket", "r"),
    ("Servers", "console:servers", "server-2", "s"),
    ("Managers", "console:managers", "crown", "m"),
    ("Drift", "console:drift", "file-diff", "d"),
    ("Partitions", "console:partitions", "affiliate", "p"),
    ("Probes", "probes:overview", "activity", "o"),
    ("Audit", "console:audit", "history", "a"),
)
# Only for those who look after people, or after those who do.
PEOPLE = ("People", "console:people", "user", "u")
# Pages beside the list of servers: the same place in the navigation.
INVENTORY = ("console:conflicts", "console:leaves", "console:strays", "console:labels", "console:enrolment")


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One page of the navigation."""

    title: str
    address: str
    icon: str
    key: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class SubnetChip:
    """The subnet's name and its one lamp; `address` is where to look or to act, `sentence` says why."""

    name: str
    lamp: lamps.Lamp
    sentence: str
    address: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm of the fabric and where to look."""

    drift: Drift
    address: str

    @property
    def title(self) -> str:
        """“Isolation lost”."""
        return self.drift.title

    @property
    def sentence(self) -> str:
        """What was found."""
        return str(self.drift.details[0]) if self.drift.details else str(self.drift)


def frame(request: HttpRequest) -> dict[str, object]:
    """Navigation and chip, worked out only when a template asks; nothing for strangers."""
    user = getattr(request, "user", None)
    return {
        "navigation": SimpleLazyObject(lambda: _navigation(request) if may_review(user) else []),
        "subnet_chip": SimpleLazyObject(lambda: _chip(request) if may_review(user) else None),
        "fabric_alarms": SimpleLazyObject(lambda: _alarms(request) if may_review(user) else []),
        "open_leaks": SimpleLazyObject(lambda: _leaks(request) if may_review(user) else []),
        "trail_chip": SimpleLazyObject(lambda: trail_chip(request) if may_review(user) else None),
        "trail_alarms": SimpleLazyObject(lambda: trail_standing(request).alarms if may_review(user) else ()),
    }


def the_subnet(request: HttpRequest) -> Subnet | None:
    """The subnet that this request is about, with its fence and the rollout that holds it. One query a request.

    It says by the way whether there is anything to raise an alarm about, so that a calm page asks no more for that.
    """
    if not hasattr(request, "_console_subnet"):
        remember_subnet(request, asked_subnets().order_by("pk").first())
    found: Subnet | None = request._console_subnet  # type: ignore[attr-defined]
    return found


def asked_subnets() -> QuerySet[Subnet]:
    """Subnets with what `the_subnet` promises; a page that needs more of it asks this for more, in the same query."""
    known = Subnet.objects.select_related("fence__current", "fence__rollout")
    return known.annotate(has_alarm=Exists(drifting.alarming(OuterRef("pk"))), has_leak=Exists(open_leaks()))


def remember_subnet(request: HttpRequest, subnet: Subnet | None) -> None:
    """Let everything else on the page take this one, from `asked_subnets`, instead of asking again."""
    known_alarms = (False, False) if subnet is None else (subnet.has_alarm, subnet.has_leak)  # type: ignore[attr-defined]
    request._console_known_alarms = known_alarms  # type: ignore[attr-defined]
    request._console_subnet = subnet  # type: ignore[attr-defined]


def holding_rollout(subnet: Subnet) -> Rollout | None:
    """The rollout that holds the subnet. No query when the subnet comes from `the_subnet`."""
    fence = fence_of(subnet)
    return fence.rollout if fence is not None else None


def fence_of(subnet: Subnet) -> Fence | None:
    """The subnet's fence, or None before its first revision. No query when the subnet comes from `the_subnet`."""
    try:
        fence: Fence = subnet.fence
    except Fence.DoesNotExist:
        return None
    return fence


def obstacle(subnet: Subnet) -> str:
    """Why nothing may be rolled out on the subnet whatever the plan, in a sentence; empty when something may."""
    if subnet.frozen_at is not None:
        return f"Frozen: {subnet.frozen_reason or 'no reason given'}. No rollout starts until it is unfrozen."
    return {
        Subnet.Mode.OBSERVE: "This subnet is in mode observe: FabricUI only looks and places nothing.",
        Subnet.Mode.PROPOSE: "This subnet is in mode propose: FabricUI plans and places nothing.",
        Subnet.Mode.WRITE: "",
    }[Subnet.Mode(subnet.mode)]


def _alarms(request: HttpRequest) -> list[Alarm]:
    """What is so wrong with the fabric that every page says it. No query while nothing is."""
    if not hasattr(request, "_console_alarms"):
        subnet = the_subnet(request)
        address = reverse("console:drift")
        rows = drifting.alarms(subnet.pk) if subnet is not None and _has_alarm_and_leak(request)[0] else []
        request._console_alarms = [Alarm(row, address) for row in rows]  # type: ignore[attr-defined]
    found: list[Alarm] = request._console_alarms  # type: ignore[attr-defined]
    return found


def _has_alarm_and_leak(request: HttpRequest) -> tuple[bool, bool]:
    the_subnet(request)
    known: tuple[bool, bool] = request._console_known_alarms  # type: ignore[attr-defined]
    return known


def _leaks(request: HttpRequest) -> list[Incident]:
    """The leaks that nobody has acknowledged, newest first. No query while there is none."""
    if not _has_alarm_and_leak(request)[1]:
        return []
    return list(
        open_leaks().select_related("leak__sender", "leak__target", "leak__rollout").order_by("-opened_at")[:20]
    )


def _navigation(request: HttpRequest) -> list[NavigationItem]:
    items = []
    pages = [*PAGES, *from_above.pages()]
    if is_admin(request.user) or is_auditor(request.user):
        pages.append(PEOPLE)
    for title, name, icon, key in pages:
        address = reverse(name)
        places = (address, *(reverse(page) for page in INVENTORY)) if name == "console:servers" else (address,)
        places = (address, reverse("console:tenants")) if name == "console:people" else places
        items.append(NavigationItem(str(title), address, icon, key, is_current=request.path.startswith(places)))
    return items


def _chip(request: HttpRequest) -> SubnetChip | None:
    subnet = the_subnet(request)
    if subnet is None:
        return None
    alarms = _alarms(request)
    if alarms:
        return SubnetChip(subnet.name, lamps.ALARM, f"{alarms[0].title}. No rollout starts.", alarms[0].address)
    rollout = holding_rollout(subnet)
    lamp = lamps.subnet(
        mode=subnet.mode, is_frozen=subnet.frozen_at is not None, rollout_state=rollout.state if rollout else None
    )
    if rollout is not None:
        sentence = f"Rollout {rollout.public_id} holds the subnet: {lamps.rollout(rollout.state).word}."
        return SubnetChip(subnet.name, lamp, sentence, reverse("console:rollout", args=[rollout.public_id]))
    sentence = obstacle(subnet) or "FabricUI may roll out on this subnet, and no rollout is running."
    return SubnetChip(subnet.name, lamp, sentence, reverse("console:managers"))
