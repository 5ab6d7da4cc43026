"""How old a look may be before a page asks for another one."""

from django.utils import timezone

from deploy import queries
from deploy.models import Observation
from inventory.models import Subnet
from partitions import staleness


def is_fresh(observation: Observation, subnet: Subnet) -> bool:
    """Whether a rollout may stand on it: young enough, and read after the last rollout had ended."""
    since = queries.tables_were_true_since(subnet)
    if observation.read_at is None or (since is not None and observation.read_at < since):
        return False
    return staleness.is_fresh(observation, timezone.now())
