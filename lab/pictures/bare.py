"""A subnet with its two manager hosts and nothing in it: no server, partition or rollout. Every page's empty state."""

from lab.pictures.provider import Provider
from lab.pictures.scene import Scene


def fill(provider: Provider) -> Scene:
    """Make nothing more than stands there."""
    return Scene(
        {"olga": provider.olga},
        {f"console:{name}": [provider.subnet.public_id] for name in ("qualification", "adoption")},
    )
