"""Everything that may be done with partitions and staged changes; each records its event in the same transaction."""

from partitions.creation import create_partition
from partitions.default_rule import discard_default, stage_default
from partitions.errors import NoRevision
from partitions.going_out import roll_out
from partitions.plans import DrawnPlan, draw_up_plan
from partitions.staging import discard, stage_add, stage_move

__all__ = [
    "DrawnPlan",
    "NoRevision",
    "create_partition",
    "discard",
    "discard_default",
    "draw_up_plan",
    "roll_out",
    "stage_add",
    "stage_default",
    "stage_move",
]
