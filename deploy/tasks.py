"""What workers do with a rollout or an observation: fetch it, call, done. Every task is safe to run twice."""

from celery import shared_task
from django.utils import timezone

from audit import nudge
from deploy import confirmation, host_check, qualification, qualifying, queries, watching
from deploy import observe as look
from deploy.hosts import connected
from deploy.models import HostCheck, Observation, Qualification, Rollout
from deploy.rollout import run
from inventory.models import Subnet


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
def watch(*, subnet_id: int) -> None:
    """Look once at what stands between rollouts, if it is time."""
    subnet = Subnet.objects.get(pk=subnet_id)
    with connected(subnet) as hosts:
        watching.watch(subnet=subnet, hosts=hosts)


@shared_task
def watch_tick() -> None:
    """Hand to the queue the subnets that are due to be watched."""
    for subnet_id in watching.due(now=timezone.now()):
        nudge.task("deploy.tasks.watch", {"subnet_id": subnet_id})


@shared_task
def qualify(*, qualification_id: int) -> None:
    """Measure one subnet and leave the report."""
    request = Qualification.objects.select_related("subnet").get(pk=qualification_id)
    with connected(request.subnet) as hosts:
        qualifying.qualify(request=request, hosts=hosts)


@shared_task
def check_host(*, check_id: int) -> None:
    """Ask one manager host what is missing there."""
    check = HostCheck.objects.select_related("host__subnet").get(pk=check_id)
    with connected(check.host.subnet) as hosts:
        host_check.run(check=check, hosts=hosts)


@shared_task
def tick() -> None:
    """Hand to the queues whatever was lost there, left by a dead worker, or is due to be looked at again."""
    now = timezone.now()
    confirmation.roll_back_due(now=now)
    for rollout_id in queries.rollouts_to_resume(now=now):
        nudge.task("deploy.tasks.run_rollout", {"rollout_id": rollout_id})
    for observation_id in queries.observations_to_resume(now=now):
        nudge.task("deploy.tasks.observe", {"observation_id": observation_id})
    for qualification_id in queries.requests_to_resume(Qualification, now=now):
        nudge.task(qualification.TASK, {"qualification_id": qualification_id})
    for check_id in queries.requests_to_resume(HostCheck, now=now):
        nudge.task(host_check.TASK, {"check_id": check_id})
