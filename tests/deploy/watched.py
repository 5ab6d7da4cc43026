"""A scene that is watched: look after look on its fake hosts, with the rows that come of it."""

from deploy import drifting, watching
from deploy.drift_models import Drift, Watch
from tests.deploy.conftest import Scene


def look(scene: Scene, *, after_s: float = 31) -> list[Drift]:
    """Let time pass, take one look, and return what is told and open."""
    scene.clock.forward(after_s)
    watching.due(now=scene.clock())
    watching.watch(subnet=scene.subnet, hosts=scene.site.hosts, clock=scene.clock)
    return drifting.open_drift(scene.subnet)


def kinds(rows: list[Drift]) -> list[tuple[str, str]]:
    return [(row.kind, row.key) for row in rows]


def row(scene: Scene) -> Watch:
    return Watch.objects.get(subnet=scene.subnet)
