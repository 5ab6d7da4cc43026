"""Real RDMA between the two guests, all the way: tick, worker, evidence, row, page."""

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.values import SYSTEM
from inventory.models import Server
from probes import hosts, operations, planning, running
from probes.models import ProbePair, ProbeRun, ProbeScope
from probes.settings_of_scope import MIB, ScopeSettings
from tests.partitions.site import build

pytestmark = [pytest.mark.rdma, pytest.mark.django_db]


@pytest.fixture
def scope(db, guests, settings):
    """Both guests as probe hosts of a probe set, registered with what their installer printed."""
    provider = build()
    settings.PROBE_KEY_FILE = str(guests.guests[0].probe_key)
    scope = operations.create_probe_set(
        subnet=provider.subnet, name="RDMA guests", actor=SYSTEM,
        settings=ScopeSettings(
            is_enabled=True, profiles=("link", "kv-pull", "lat"), bytes_per_run=8 * MIB, budget=2, is_patient=True
        ),
    )  # fmt: skip
    for guest in guests.guests:
        server = Server.objects.create(subnet=provider.subnet, hostname=guest.name)
        host = operations.add_probe_host(
            server=server, address=guest.address, ssh_port=guest.ssh_port, ssh_user=guest.user, host_key=guest.host_key,
            program_digest=guest.program_digest, wrapper_digest=guest.wrapper_digest, actor=SYSTEM,
        )  # fmt: skip
        operations.add_to_probe_set(scope=scope, host=host, actor=SYSTEM)
    return ProbeScope.objects.named().get(pk=scope.pk)


def test_write_read_and_latency_are_measured_stored_and_shown(scope, olga_of, client_of):
    planning.tick(now=timezone.now())
    ProbeRun.objects.update(due_at=timezone.now())
    one = ProbeRun.objects.order_by("pk").first()
    runs = ProbeRun.objects.filter(sender=one.sender).order_by("pk")
    assert sorted(runs.values_list("profile", flat=True)) == ["kv-pull", "lat", "link"]
    for run in runs:
        ProbeRun.objects.filter(pk=run.pk).update(state="CLAIMED")
        assert running.run(run_id=run.pk, measure=hosts.measure) == "DONE", ProbeRun.objects.get(pk=run.pk).reason
    for run in ProbeRun.objects.filter(state="DONE"):
        assert (run.outcome, run.is_software, run.link_layer, run.pct_line) == ("OK", True, "Ethernet", None)
        assert run.gbps > 0
        assert run.p50_ns > 1000
        assert run.evidence["checksum"]["sent"] == run.evidence["checksum"]["held"]
        assert run.evidence["sender"]["node_guid"] != run.evidence["target"]["node_guid"]
    assert ProbeRun.objects.get(profile="lat", state="DONE").samples == 1000
    pair = ProbePair.objects.get(profile="link")
    address = reverse("probes:series", args=[scope.public_id, pair.sender.public_id, pair.target.public_id])
    page = client_of(olga_of).get(address).content.decode()
    assert f'data-gbps="{pair.gbps}"' in page
    assert "Soft-RoCE, software: shows the path, not the speed" in page


def test_a_host_with_another_program_is_a_named_failure(scope):
    planning.tick(now=timezone.now())
    run = ProbeRun.objects.filter(profile="link").first()
    operations.change_probe_host(host=run.target, program_digest="f" * 64, actor=SYSTEM, reason="test")
    ProbeRun.objects.filter(pk=run.pk).update(state="CLAIMED")
    assert running.run(run_id=run.pk, measure=hosts.measure) == "FAILED"
    run.refresh_from_db()
    assert (run.outcome, run.failed_at_end, run.gbps) == ("PROGRAM_MISMATCH", "target", None)
    assert run.advice


@pytest.fixture
def olga_of(scope):
    """The operator of the provider."""
    from people.models import User

    return User.objects.get(username="olga")
