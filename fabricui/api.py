"""The API's site map: every resource of every room under /api/v1/. What all of them share is in `people/api`."""

from typing import Any, Final

from django.urls import URLPattern, path

from console.api import AuditEvents
from deploy.api import Drifts, Looks, Revisions, Subnets
from inventory.api import Ports, Servers
from partitions.api import Memberships
from partitions.api_plans import Plans, RolloutsFromPlans
from people.api.resources import Resource
from portal.api import Requests, StorageOffers
from portal.api_activity import Activity
from portal.api_moves import PartitionsOfAll, StagedChangesOfAll, Turns
from portal.api_tenants import Tenants
from probes.api import IsolationChecks, ProbeRuns, ProbeScopes

app_name = "api"

# Resources with their addresses; which verbs there are is said by their methods.
RESOURCES: Final[dict[str, type[Resource]]] = {
    "servers": Servers,
    "ports": Ports,
    "partitions": PartitionsOfAll,
    "memberships": Memberships,
    "staged-changes": StagedChangesOfAll,
    "turns": Turns,
    "plans": Plans,
    "looks": Looks,
    "subnets": Subnets,
    "revisions": Revisions,
    "rollouts": RolloutsFromPlans,
    "drift": Drifts,
    "probes/scopes": ProbeScopes,
    "probes/runs": ProbeRuns,
    "probes/isolation": IsolationChecks,
    "requests": Requests,
    "storage-offers": StorageOffers,
    "tenants": Tenants,
    "activity": Activity,
    "audit/events": AuditEvents,
}
_AT_LIST: Final = {"get": "list", "post": "create"}
_AT_ONE: Final = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}


def _patterns() -> list[URLPattern]:
    found = []
    for address, resource in RESOURCES.items():
        name = address.replace("/", "_").replace("-", "_")
        for verbs, route, suffix in ((_AT_LIST, "", ""), (_AT_ONE, "/<str:id>", "_one")):
            there: dict[str, Any] = {verb: action for verb, action in verbs.items() if hasattr(resource, action)}
            if there:
                found.append(path(f"{address}{route}", resource.as_view(there), name=f"{name}{suffix}"))
    return found


urlpatterns = [
    path("staged-changes/discard", StagedChangesOfAll.as_view({"post": "discard"}), name="staged_changes_discard"),
    *(
        path(f"rollouts/<str:id>/{act}", RolloutsFromPlans.as_view({"post": act}), name=f"rollouts_{act}")
        for act in ("cancel", "confirm", "accept", "check", "release")
    ),
    path("requests/<str:id>/comments", Requests.as_view({"post": "comment"}), name="requests_comment"),
    *_patterns(),
]
