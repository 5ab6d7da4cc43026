"""A real Celery worker of the queue `rollout` that stops at named moments. Started by `lab.faults.crew` only."""

import ast
import sys
from multiprocessing.connection import Connection

from lab.faults.points import Point
from lab.faults.stops import Stops


def main(descriptor: str, points: str, hosts: str) -> None:
    """Install the stops and hand over to Celery."""
    import django

    django.setup()
    stops = Stops(
        Connection(int(descriptor)), [Point(**point) for point in ast.literal_eval(points)], ast.literal_eval(hosts)
    )
    stops.install()
    from fabricui.celery import app

    app.worker_main(
        ["worker", "--without-gossip", "--without-mingle", "--loglevel", "WARNING", "--pool", "solo",
         "-Q", "rollout", "-n", "rollout@faults"]
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
