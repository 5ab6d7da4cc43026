"""Everything that may be done with partitions and staged changes; each records its event in the same transaction."""

from partitions.back_to import WayBack, stage_back, way_back
from partitions.card_moves import move_card
from partitions.cleaning import mark_clean
from partitions.creation import create_partition
from partitions.default_rule import discard_default, stage_default
from partitions.errors import NoRevision
from partitions.going_out import roll_out
from partitions.many_moves import Moved, stage_moves
from partitions.offboarding import finish as finish_offboarding
from partitions.offboarding import stage_everybody_out
from partitions.plans import DrawnPlan, draw_up_plan
from partitions.renaming import rename_partition
from partitions.replacement import replace_hca, undo_replacement
from partitions.retirement import Retirement, retire_partition
from partitions.staging import discard, stage_add, stage_membership, stage_move
from partitions.undoing import Undone, undo

__all__ = [
    "DrawnPlan",
    "Moved",
    "NoRevision",
    "Retirement",
    "Undone",
    "WayBack",
    "create_partition",
    "discard",
    "discard_default",
    "draw_up_plan",
    "finish_offboarding",
    "mark_clean",
    "move_card",
    "rename_partition",
    "replace_hca",
    "retire_partition",
    "roll_out",
    "stage_add",
    "stage_back",
    "stage_default",
    "stage_everybody_out",
    "stage_membership",
    "stage_move",
    "stage_moves",
    "undo",
    "undo_replacement",
    "way_back",
]
