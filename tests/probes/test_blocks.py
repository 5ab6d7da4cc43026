"""The map of a large scope is counted from one plain query, and says what all pairs say."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit.values import SYSTEM
from inventory.models import Server
from probes import heat, operations
from probes.blocks import counted
from probes.models import ProbeHost, ProbePair
from probes.settings_of_scope import ScopeSettings
from probes.views.matrix import _newest
from tests.partitions.site import build
from tests.probes.site import HOST_KEY

pytestmark = pytest.mark.django_db


@pytest.fixture
def hall(db):
    """70 servers, some pairs of which were measured, failed, or are old; the last host has left the set."""
    provider = build()
    scope = operations.create_probe_set(
        subnet=provider.subnet, name="hall", actor=SYSTEM,
        settings=ScopeSettings(is_enabled=True, profiles=("link", "lat")),
    )  # fmt: skip
    servers = Server.objects.bulk_create(
        Server(subnet=provider.subnet, hostname=f"srv-{number:03}") for number in range(71)
    )
    hosts = ProbeHost.objects.bulk_create(
        ProbeHost(
            server=server, address="x", ssh_user="p", host_key=HOST_KEY, program_digest="1" * 64,
            wrapper_digest="2" * 64,
        )
        for server in servers
    )  # fmt: skip
    for host in hosts[:-1]:
        scope.probe_set.members.create(host=host)
    now, pairs = timezone.now(), []
    for one in range(0, 71, 5):
        for other in range(1, 71, 3):
            if one == other:
                continue
            for profile in ("link", "lat"):
                failed = (one * other) % 19 == 3
                value = 390.0 - (one * other) % 200
                pairs.append(
                    ProbePair(
                        scope=scope, sender=hosts[one], target=hosts[other], profile=profile, kind="RDMA",
                        mode=scope.mode, newest_at=now - timedelta(hours=1 + (one + other) % 30),
                        outcome="PEER_LOST" if failed else "OK", verdict="BAD" if failed or value < 250 else "GOOD",
                        gbps=None if failed or profile == "lat" else value, pct_line=None if failed else value / 4,
                        p50_ns=None if failed or profile == "link" else 1000 + value,
                    )
                )  # fmt: skip
    ProbePair.objects.bulk_create(pairs, batch_size=200)
    return provider, scope, hosts


@pytest.mark.parametrize("profile", ["link", "lat"])
def test_what_is_counted_is_what_all_pairs_say(hall, profile):
    _, scope, hosts = hall
    nodes = [(host.pk, heat.Node(host.public_id, str(host))) for host in hosts[:-1]]
    named, now, latency = [node for _, node in nodes], timezone.now(), profile == "lat"
    quick = heat.draw_blocks(
        named, counted(scope, nodes, profile=profile, kind="RDMA", is_latency=latency), is_latency=latency, now=now
    )
    slow = heat.draw(named, _newest(scope, profile, "RDMA", [pk for pk, _ in nodes]), is_latency=latency, now=now)
    assert (quick.scale, quick.tested, quick.failed, quick.pairs) == (
        slow.scale, slow.tested, slow.failed, slow.pairs,
    )  # fmt: skip
    assert quick.tested > 300
    for mine, theirs in zip(quick.rows, slow.rows, strict=True):
        assert [(cell.classes, cell.text) for cell in mine.cells] == [
            (cell.classes, cell.text) for cell in theirs.cells
        ]


def test_the_page_of_a_large_scope_reads_no_pair_by_itself(hall, client_of):
    provider, scope, _ = hall
    with CaptureQueriesContext(connection) as queries:
        page = client_of(provider.olga).get(reverse("probes:scope", args=[scope.public_id])).content.decode()
    assert "each cell is the worst pair of its block" in page
    pairs = [query["sql"] for query in queries if ProbePair._meta.db_table in query["sql"]]
    assert len(pairs) == 1
