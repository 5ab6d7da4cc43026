"""How the API writes down what this room has: subnets and how they stand, looks, revisions, rollouts, drift."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from deploy.decisions import in_the_way, name_of
from deploy.drift_models import Drift
from deploy.models import Observation, Revision, Rollout
from inventory.models import Subnet
from people.api.schema import Part, Shown


class SubnetShown(Shown):
    """A subnet and how it stands."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    mode = serializers.ChoiceField(Subnet.Mode.choices)
    is_frozen = serializers.SerializerMethodField()
    frozen_reason = serializers.CharField()
    current_revision = serializers.CharField(
        source="fence.current.public_id", default=None, allow_null=True, help_text="The last one that was proven."
    )
    rollout = serializers.CharField(
        source="fence.rollout.public_id", default=None, allow_null=True, help_text="The one that holds the subnet."
    )
    open_drift = serializers.IntegerField(help_text="Differences from the current revision.")
    looked_at = serializers.DateTimeField(allow_null=True)

    def get_is_frozen(self, subnet: Subnet) -> bool:
        """Whether a person has stopped all rollouts."""
        return subnet.frozen_at is not None


class LookShown(Shown):
    """A look at the managers and the fabric."""

    id = serializers.CharField(source="public_id")
    subnet = serializers.CharField(source="subnet.public_id")
    state = serializers.ChoiceField(Observation.State.choices, help_text="DONE or FAILED at the end.")
    why = serializers.CharField()
    requested_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    failure = serializers.CharField()


class RevisionShown(Shown):
    """A partition table that somebody proposed; it never changes."""

    id = serializers.CharField(source="public_id")
    subnet = serializers.CharField(source="subnet.public_id")
    number = serializers.IntegerField()
    parent = serializers.CharField(source="parent.public_id", default=None, allow_null=True)  # type: ignore[assignment]
    digest = serializers.CharField(help_text="SHA-256 of the file, hex.")
    table_digest = serializers.CharField(help_text="SHA-256 of what reaches a port, hex.")
    author = serializers.CharField(source="author_name")
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()


class RevisionWhole(RevisionShown):
    """A revision with its file."""

    file = serializers.SerializerMethodField(help_text="What stands in partitions.conf on each manager host.")

    def get_file(self, revision: Revision) -> str:
        """The rendered bytes, which are ASCII."""
        return bytes(revision.data).decode("ascii", errors="backslashreplace")


class RolloutShown(Shown):
    """A run that makes a revision true. It is over when `is_over` is; STUCK waits for a person."""

    id = serializers.CharField(source="public_id")
    subnet = serializers.CharField(source="subnet.public_id")
    revision = serializers.CharField(source="revision.public_id")
    revision_number = serializers.IntegerField(source="revision.number")
    state = serializers.ChoiceField(Rollout.State.choices)
    is_running = serializers.SerializerMethodField(help_text="A worker is on it, or should be.")
    is_over = serializers.SerializerMethodField(help_text="It has let go of the subnet.")
    started_by = serializers.CharField(source="started_by_name")
    reason = serializers.CharField()
    cause = serializers.CharField(help_text="Why it ended as it did: what, where, what to do.")
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    confirm_by = serializers.DateTimeField(allow_null=True, help_text="Taken back unless confirmed by then.")
    confirmed_at = serializers.DateTimeField(allow_null=True)

    def get_is_running(self, rollout: Rollout) -> bool:
        """Whether a worker is on it."""
        return Rollout.State(rollout.state).is_running

    def get_is_over(self, rollout: Rollout) -> bool:
        """Whether nothing more becomes of it by itself."""
        return Rollout.State(rollout.state).is_over or rollout.released_at is not None


class StepShown(Part):
    """One line of a rollout's story."""

    at = serializers.DateTimeField()
    state = serializers.ChoiceField(Rollout.State.choices)
    host = serializers.CharField()
    text = serializers.CharField()


class HostShown(Part):
    """How far a rollout came on one manager host."""

    host = serializers.CharField(source="host.name")
    role_at_start = serializers.CharField()
    role_at_proof = serializers.CharField()
    placed_at = serializers.DateTimeField(allow_null=True)
    digest = serializers.CharField()
    failure = serializers.CharField()


class CountsShown(Part):
    """What the read-back counted; all null before there is one."""

    ports = serializers.IntegerField(default=None, allow_null=True)
    proven = serializers.IntegerField(default=None, allow_null=True)
    absent = serializers.IntegerField(default=None, allow_null=True)
    unreadable = serializers.IntegerField(default=None, allow_null=True)
    discrepant = serializers.IntegerField(default=None, allow_null=True)


class MovedShown(Part):
    """A port beside the change that has another LID or state than before."""

    guid = serializers.CharField()
    lid = serializers.IntegerField(allow_null=True)
    state = serializers.CharField()


class AcceptableShown(Part):
    """What keeps a rollout unproven and may be accepted; `seen` names exactly these ports."""

    seen = serializers.CharField()
    moved = MovedShown(many=True)
    absent = serializers.ListField(child=serializers.CharField(), help_text="GUIDs of ports that are not there.")


class RolloutWhole(RolloutShown):
    """A rollout with its story, its hosts and what the read-back found."""

    steps = serializers.SerializerMethodField()
    hosts = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    discrepancies = serializers.SerializerMethodField(help_text="Sentences, at most 100.")
    acceptable = serializers.SerializerMethodField(help_text="null: there is nothing that a person may accept.")

    @extend_schema_field(StepShown(many=True))
    def get_steps(self, rollout: Rollout) -> Any:
        """The story."""
        return StepShown(rollout.steps.order_by("at", "pk"), many=True).data

    @extend_schema_field(HostShown(many=True))
    def get_hosts(self, rollout: Rollout) -> Any:
        """The manager hosts."""
        outcomes = rollout.outcomes.select_related("host").order_by("host__name")
        return HostShown(outcomes, many=True).data

    @extend_schema_field(CountsShown)
    def get_counts(self, rollout: Rollout) -> Any:
        """The counts."""
        return CountsShown((rollout.read_back or {}).get("counts", {})).data

    def get_discrepancies(self, rollout: Rollout) -> list[str]:
        """What is not as planned."""
        return list((rollout.read_back or {}).get("discrepancies", []))

    @extend_schema_field(AcceptableShown(allow_null=True))
    def get_acceptable(self, rollout: Rollout) -> Any:
        """What a person may accept."""
        moved, absent = in_the_way(rollout)
        if rollout.state != Rollout.State.UNPROVEN or not (moved or absent):
            return None
        ports = [{"guid": guid, "lid": lid, "state": state} for guid, (lid, state) in sorted(moved.items())]
        return {"seen": name_of(moved, absent), "moved": ports, "absent": sorted(absent)}


class DriftShown(Shown):
    """One difference from the current revision."""

    id = serializers.CharField(source="public_id")
    subnet = serializers.CharField(source="subnet.public_id")
    kind = serializers.ChoiceField(Drift.Kind.choices)
    key = serializers.CharField(help_text="Of what: a manager host, a port GUID, an option.")
    is_alarm = serializers.BooleanField(help_text="It stops rollouts.")
    details = serializers.ListField(child=serializers.CharField())
    cause = serializers.CharField()
    opened_at = serializers.DateTimeField(allow_null=True)
    last_seen_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    closing = serializers.CharField()
