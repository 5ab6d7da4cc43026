"""What workers do with a rollout or an observation: fetch it, call, done. Every task is safe to run twice."""

from celery import shared_task
from django.utils import timezone

from audit import nudge
from deploy import confirmation, queries
from deploy import observe as look
from deploy.hosts import connected
from deploy.models import Observation, Rollout
from deploy.rollout import run


@shared_task
def run_rollout(*, rollout_id: int) -> None:
    """Bring one rollout as far as it can go now."""
    rollout = Rollout.objects.select_related("subnet").get(pk=rollout_id)
    with connected(rollout.subnet) as hosts:
        run(rollout=rollout, hosts=hosts)


@shared_task
def observe(*, observation_id: int) -> None:
    """Take one look at the managers and the fabric."""
    observation = Observation.objects.select_related("subnet").get(pk=observation_id)
    with connected(observation.subnet) as hosts:
        look.observe(observation=observation, hosts=hosts)


@shared_task
def tick() -> None:
    """Hand to the queues whatever was lost there, left by a dead worker, or is due to be looked at again."""
    now = timezone.now()
    confirmation.roll_back_due(now=now)
    for rollout_id in queries.rollouts_to_resume(now=now):
        nudge.task("deploy.tasks.run_rollout", {"rollout_id": rollout_id})
    for observation_id in queries.observations_to_resume(now=now):
        nudge.task("deploy.tasks.observe", {"observation_id": observation_id})
