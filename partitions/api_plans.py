"""The API's plans, and the start of a rollout from one: what the plan page shows, and its button."""

from datetime import timedelta
from typing import Any, Final

import django_filters as filters
from django.http import Http404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from deploy import queries
from deploy.api import READ, Rollouts, reviewed, subnet_of
from deploy.api_shown import RolloutWhole
from deploy.models import Observation
from inventory.models import Subnet
from partitions import operations, staleness
from partitions.api import named
from partitions.errors import InvalidSelection
from partitions.plans import DrawnPlan
from partitions.selection import Selection
from people.api import problems
from people.api.bodies import Body, Reason, StrictNumber, StrictText
from people.api.once import once
from people.api.resources import Resource
from people.api.schema import Part, Shown, operation
from subnet.errors import UnsafePlan
from subnet.pkey import entry_text
from subnet.plan import PortChange

MOST_PORTS: Final = 1000  # whose tables an answer shows; the counts are of all
problems.translate({UnsafePlan: "reason_needed"})


class EntryShown(Part):
    """One entry of a P_Key table, and the indexes at which it stands or may come to stand."""

    entry = serializers.CharField(help_text="0x and 4 hex digits, with the membership bit.")
    indexes = serializers.ListField(child=serializers.IntegerField())


class PortPlan(Part):
    """A port's table as read and as predicted; null where it was not read."""

    guid = serializers.CharField()
    before = EntryShown(many=True, allow_null=True)
    after = EntryShown(many=True, allow_null=True)


class ViolationShown(Part):
    """A rule that the plan breaks; with severity “refuse” it cannot be rolled out."""

    rule = serializers.CharField()
    severity = serializers.CharField()
    where = serializers.CharField()
    sentence = serializers.CharField()


class HazardShown(Part):
    """Something to know before the change goes out. It refuses nothing by itself."""

    kind = serializers.CharField(help_text="Of docs/indexes.md.")
    sentence = serializers.CharField()
    needs_takeover = serializers.BooleanField(help_text="It only happens if the subnet manager changes meanwhile.")
    ports = serializers.ListField(child=serializers.CharField())


class EffectShown(Part):
    """A consequence that no port's table shows."""

    kind = serializers.CharField()
    sentence = serializers.CharField()
    ports = serializers.IntegerField(allow_null=True, help_text="How many it concerns; null: all.")


class FileShown(Part):
    """What becomes of the file of one manager host."""

    host = serializers.CharField()
    diff = serializers.CharField()
    note = serializers.CharField()


class PlanShown(Shown):
    """What a selection of staged changes does to the current revision. It is drawn anew for each reader."""

    selection = serializers.CharField()
    subnet = serializers.CharField()
    digest = serializers.CharField(help_text="Names exactly what this is; a rollout is started with it.")
    look = serializers.CharField(allow_null=True, help_text="The look at the fabric that it stands on.")
    is_fresh = serializers.BooleanField(help_text="A rollout may stand on that look; else ask for a new one.")
    is_empty = serializers.BooleanField(help_text="No port's table would change.")
    parent = serializers.CharField(help_text="The current revision.")  # type: ignore[assignment]
    sentence = serializers.CharField()
    servers = serializers.ListField(child=serializers.CharField(), help_text="That move.")
    waiting = serializers.ListField(child=serializers.CharField(), help_text="Servers that must be clean first.")
    violations = ViolationShown(many=True)
    hazards = HazardShown(many=True)
    effects = EffectShown(many=True)
    needs_reason = serializers.CharField(allow_null=True, help_text="Why it needs one; null: it does not.")
    affected_ports = serializers.IntegerField()
    ports = PortPlan(many=True, help_text=f"At most {MOST_PORTS}.")
    files = FileShown(many=True)
    by_hand = serializers.IntegerField(help_text="Manual actions that the same would cost without FabricUI.")


class RolloutBody(Body):
    """The plan to roll out, as it was looked at."""

    selection = StrictText(max_length=40, default="mine", required=False, help_text="mine, all or tenant:ID.")
    plan_digest = StrictText(max_length=200)
    look = StrictText(max_length=20)
    subnet = StrictText(required=False, max_length=20)
    reason = Reason()
    confirm_within_s = StrictNumber(
        required=False, min_value=1, max_value=7 * 24 * 3600, help_text="Taken back unless confirmed in this time."
    )
    without = serializers.ListField(
        child=StrictText(max_length=40), default=list, required=False, max_length=8,
        help_text="Names of standbys that may be missing; needs a reason.",
    )  # fmt: skip


class PlanFilters(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    """Which plan."""

    subnet = filters.CharFilter(help_text="A subnet's id; may be left out where there is only one.")


class Plans(Resource):
    """Plans, by selection."""

    read_scope = READ
    parameters_of_one = frozenset({"subnet"})

    @operation(
        summary="Draw the plan of a selection", shows=PlanShown, refuses=("refused", "no_revision"), filters=PlanFilters
    )
    def retrieve(self, request: Request, id: str) -> Response:
        """The plan of *mine*, *all* or *tenant:ID* on the newest look."""
        subnet = subnet_of(request, request.query_params.get("subnet"))
        drawn = operations.draw_up_plan(subnet=subnet, selection=_selection(id), user=self.person)
        return self.told(PlanShown(_plan(drawn)).data)


class RolloutsFromPlans(Rollouts):
    """Rollouts, and how one is started."""

    @operation(
        summary="Start the rollout of a plan", shows=RolloutWhole, takes=RolloutBody, status=202,
        refuses=(
            "refused", "stale_plan", "stale", "nothing_to_do", "subnet_busy", "subnet_closed", "refused_by_rule",
            "reason_needed",
        ),
        once=True,
    )  # fmt: skip
    @once
    def create(self, request: Request) -> Response:
        """Start it if the plan is still the one that was looked at; get the rollout to see how it goes."""
        asked = RolloutBody.read(request)
        subnet = subnet_of(request, asked.get("subnet"))
        look = named(reviewed(Observation.objects.filter(subnet=subnet), request), asked["look"], where="look")
        try:
            selection = Selection.parse(asked["selection"])
        except InvalidSelection as error:
            raise problems.Problem("invalid", str(error), where="selection") from error
        within = asked.get("confirm_within_s")
        rollout = operations.roll_out(
            subnet=subnet, selection=selection, actor=self.actor, plan_digest=asked["plan_digest"], observation=look,
            reason=asked["reason"], confirm_within=None if within is None else timedelta(seconds=within),
            without=asked["without"],
        )  # fmt: skip
        return self.told(
            RolloutWhole(rollout).data, status=202, headers={"Location": f"/api/v1/rollouts/{rollout.public_id}"}
        )


def _selection(text: str) -> Selection:
    try:
        return Selection.parse(text)
    except InvalidSelection as error:
        raise Http404 from error


def _plan(drawn: DrawnPlan) -> dict[str, Any]:
    look = drawn.observation
    return {
        "selection": str(drawn.selection),
        "subnet": drawn.subnet.public_id,
        "digest": drawn.digest,
        "look": None if look is None else look.public_id,
        "is_fresh": look is not None and _is_fresh(look, drawn.subnet),
        "is_empty": drawn.is_empty,
        "parent": drawn.parent.public_id,
        "sentence": drawn.sentence,
        "servers": [server.public_id for server in drawn.servers],
        "waiting": sorted({waiting.server.public_id for waiting in drawn.waiting}),
        "violations": [
            {"rule": one.rule, "severity": one.severity, "where": str(one.where), "sentence": one.sentence}
            for one in drawn.violations
        ],
        "hazards": [
            {
                "kind": hazard.kind,
                "sentence": hazard.sentence,
                "needs_takeover": hazard.needs_takeover,
                "ports": [str(guid) for guid in guids],
            }
            for hazard, guids in drawn.plan.hazards_told
        ],
        "effects": [{"kind": e.kind, "sentence": e.sentence, "ports": e.ports} for e in drawn.plan.effects],
        "needs_reason": " ".join(drawn.plan.unsafe) or None,
        "affected_ports": len(drawn.plan.affected),
        "ports": [_port(port) for port in drawn.plan.ports[:MOST_PORTS]],
        "files": [{"host": one.host, "diff": one.diff, "note": one.note} for one in drawn.files],
        "by_hand": drawn.by_hand,
    }


def _is_fresh(look: Observation, subnet: Subnet) -> bool:
    """Whether a rollout may stand on it: young enough, and read after the last rollout had ended."""
    since = queries.tables_were_true_since(subnet)
    if look.read_at is None or (since is not None and look.read_at < since):
        return False
    return staleness.is_fresh(look, timezone.now())


def _port(port: PortChange) -> dict[str, Any]:
    before = after = None
    if port.before is not None:
        before = [{"entry": entry_text(number), "indexes": [index]} for index, number in sorted(port.before.items())]
    if port.prediction is not None:
        kept = [(number, [index]) for index, number in sorted(port.prediction.survivors.items())]
        new = [(number, sorted(indexes)) for number, indexes in sorted(port.prediction.new.items())]
        after = [{"entry": entry_text(number), "indexes": indexes} for number, indexes in (*kept, *new)]
    return {"guid": str(port.guid), "before": before, "after": after}
