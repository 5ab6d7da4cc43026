"""`/metrics`: figures for Prometheus, counted in the database and the broker at each scrape.

Several processes answer and none of them counts anything, so it does not matter which one is asked, and a restart
loses nothing. Behind the token of monitoring; without one there is no such page. Probes have figures of their own
(`probes/views/metrics.py`): a site with thousands of pairs scrapes them less often. docs/monitoring.md says what each
is for.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import Count, DurationField, ExpressionWrapper, F, Max, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from redis.exceptions import RedisError

from audit import follow
from audit.models import ChainHead, FollowerCursor
from deploy.drift_models import Drift, Watch
from deploy.last_proven import last_proven_at
from deploy.models import Rollout
from fabricui import heartbeat
from fabricui.checks_of_health import every_check
from fabricui.health import shows_token
from inventory.models import ManagerHost, Port, PortConflict, Server, Subnet
from partitions.models import StagedChange
from probes.models import Incident
from webhooks.models import Endpoint

BUCKETS_S: Final = (5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)

log = logging.getLogger(__name__)

type Figures = Callable[[], Iterator[Metric]]


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The text that Prometheus reads. 404 without the token, so that nobody learns that it exists."""
    if not shows_token(request):
        raise Http404
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_AtScrape())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class _AtScrape(Collector):
    """Everything, counted when it is asked for."""

    def collect(self) -> Iterable[Metric]:
        """Each figure with its words."""
        for figures in FIGURES:
            try:
                yield from list(figures())
            except DatabaseError:  # fabricui_check_ok{check="database"} is among those that are told all the same
                log.warning("figures of %s are left out: the database does not answer", figures.__name__)


def _checks() -> Iterator[Metric]:
    family = GaugeMetricFamily("fabricui_check_ok", "1 while the check of /readyz is well.", labels=["check"])
    for check in every_check():
        family.add_metric([check.name], float(check.is_well))
    yield family


def _rollouts() -> Iterator[Metric]:
    counts = dict(Rollout.objects.values_list("state").annotate(Count("pk")).order_by())
    family = GaugeMetricFamily("fabricui_rollouts", "Rollouts by the state they are in.", labels=["state"])
    for state in Rollout.State:
        family.add_metric([state.value.lower()], counts.get(state.value, 0))
    yield family
    held = Rollout.objects.filter(subnet__fence__rollout=F("pk")).values_list("subnet__name", "state", "requested_at")
    family = GaugeMetricFamily(
        "fabricui_rollout_holds_since_timestamp_seconds",
        "When the rollout that holds the subnet was asked for.",
        labels=["subnet", "state"],
    )
    for subnet, name, at in held.order_by("subnet__name"):
        family.add_metric([subnet, name.lower()], at.timestamp())
    yield family
    yield _durations()


def _durations() -> Metric:
    """From the button to the end, of rollouts that are over. Rows are never removed, so it only grows."""
    taken = ExpressionWrapper(F("finished_at") - F("requested_at"), output_field=DurationField())
    bounds = {f"within_{bound}": Count("pk", filter=Q(taken__lte=timedelta(seconds=bound))) for bound in BUCKETS_S}
    rows: Iterable[Any] = (
        Rollout.objects.exclude(finished_at=None)
        .annotate(taken=taken)
        .values("state")
        .annotate(count=Count("pk"), total=Sum("taken"), **bounds)
        .order_by("state")
    )
    family = HistogramMetricFamily(
        "fabricui_rollout_duration_seconds", "From the button to the end, by how it ended.", labels=["state"]
    )
    for row in rows:
        buckets = [(str(float(bound)), row[f"within_{bound}"]) for bound in BUCKETS_S]
        family.add_metric([row["state"].lower()], [*buckets, ("+Inf", row["count"])], row["total"].total_seconds())
    return family


def _fabric() -> Iterator[Metric]:
    drift = GaugeMetricFamily("fabricui_drift_open", "Open differences by kind.", labels=["subnet", "kind"])
    told = Drift.objects.filter(closed_at=None).exclude(opened_at=None)
    counts = {(pk, kind): count for pk, kind, count in told.values_list("subnet", "kind").annotate(Count("pk"))}
    proven = _moment("fabricui_last_proven", "When the fabric was last known to hold the current revision.", ["subnet"])
    covered = _moment("fabricui_tables_covered", "When the last whole round of tables began.", ["subnet"])
    looked = _moment("fabricui_managers_looked", "When files and SMs were looked at last.", ["subnet"])
    up = GaugeMetricFamily(
        "fabricui_manager_up", "1 if the host answered the last look.", labels=["subnet", "manager", "role"]
    )
    hosts = set(ManagerHost.objects.values_list("subnet", "name"))
    watches = {watch.subnet_id: watch for watch in Watch.objects.all()}
    for subnet in Subnet.objects.order_by("name"):
        for kind in Drift.Kind:
            drift.add_metric([subnet.name, kind.value.lower()], counts.get((subnet.pk, kind.value), 0))
        watch = watches.get(subnet.pk)
        _tell(proven, subnet.name, last_proven_at(subnet))
        _tell(covered, subnet.name, watch.covered_at if watch is not None else None)
        _tell(looked, subnet.name, watch.checked_at if watch is not None else None)
        for said in watch.managers if watch is not None else []:
            if (subnet.pk, said["host"]) in hosts:
                role = str(said.get("role") or "").lower()
                up.add_metric([subnet.name, said["host"], role], float(not said.get("error")))
    yield from (drift, proven, covered, looked, up)


def _moment(name: str, words: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{name}_timestamp_seconds", words, labels=labels)


def _tell(family: GaugeMetricFamily, subnet: str, at: datetime | None) -> None:
    if at is not None:
        family.add_metric([subnet], at.timestamp())


def _work() -> Iterator[Metric]:
    """What waits for a person, and how large the site is."""
    leaks = Q(leak__isnull=False)
    open_ones = Incident.objects.filter(acknowledged_at=None).aggregate(
        leaks=Count("pk", filter=leaks), probes=Count("pk", filter=~leaks)
    )
    family = GaugeMetricFamily(
        "fabricui_incidents_open", "Incidents of probes that nobody has acknowledged.", labels=["kind"]
    )
    for kind in ("leak", "probe"):
        family.add_metric([kind], open_ones[f"{kind}s"])
    yield family
    staged = StagedChange.objects.aggregate(ports=Count("port", distinct=True))
    yield GaugeMetricFamily("fabricui_staged_ports", "Ports with a staged change.", staged["ports"])
    conflicts = PortConflict.objects.filter(closed_at=None).count()
    yield GaugeMetricFamily("fabricui_port_conflicts_open", "Ports that two servers claim.", conflicts)
    silent = Endpoint.objects.given_up().count()
    yield GaugeMetricFamily("fabricui_webhooks_given_up", "Operators' webhooks that took nothing.", silent)
    yield GaugeMetricFamily("fabricui_servers", "Registered servers.", Server.objects.count())
    yield GaugeMetricFamily("fabricui_ports", "Ports that are known.", Port.objects.count())


def _processes() -> Iterator[Metric]:
    up = GaugeMetricFamily("fabricui_process_up", "1 while its heartbeat is heard.", labels=["process"])
    busy = GaugeMetricFamily(
        "fabricui_worker_busy_seconds", "How long the longest task of the worker has taken so far.", labels=["queue"]
    )
    depth = GaugeMetricFamily("fabricui_queue_depth", "Messages that wait in the queue.", labels=["queue"])
    try:
        alive = heartbeat.heard((*heartbeat.QUEUES, heartbeat.BEAT))
        depths = heartbeat.depths()
    except (RedisError, OSError):  # nobody is heard: an alert that asks for 0 must see one
        alive, depths = {}, {}
    for name in (*heartbeat.QUEUES, heartbeat.BEAT):
        up.add_metric([name], float(name in alive))
    for queue, waiting in depths.items():
        depth.add_metric([queue], waiting)
        if queue in alive:
            busy.add_metric([queue], max(alive[queue].busy.values(), default=0.0))
    yield from (up, busy, depth)


def _trail() -> Iterator[Metric]:
    head = ChainHead.objects.first()
    number = head.number if head is not None else 0
    yield CounterMetricFamily("fabricui_audit_events", "Events appended to the trail.", number)
    appended = GaugeMetricFamily("fabricui_audit_appended_timestamp_seconds", "When the newest event was appended.")
    if head is not None and head.at is not None:
        appended.add_metric([], head.at.timestamp())
    yield appended
    lag = GaugeMetricFamily("fabricui_follower_lag", "Events that a follower has not seen.", labels=["follower"])
    cursors = FollowerCursor.objects.filter(name__in=follow.names()).order_by("name")  # not of what was switched off
    for name, at in cursors.values_list("name").annotate(Max("number")):
        lag.add_metric([name], max(0, number - at))
    yield lag


FIGURES: Final[tuple[Figures, ...]] = (_checks, _rollouts, _fabric, _work, _processes, _trail)
