"""Attempts between servers as rows: which ports, P_Keys and controls they get, and when none is made."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.utils import timezone

from audit.values import SYSTEM
from deploy.models import Fence
from probes import attempts, isolation, operations
from probes.attempt import Checked
from probes.models import Incident, IsolationCheck, ProbeHost
from probes.verdict import Isolation, Judged
from tests.partitions.site import build
from tests.probes.site import add_host

pytestmark = pytest.mark.django_db

FINE = Checked(Judged(Isolation.ISOLATED, True, "Dropped."), {"attempt": {"outcome": "OK", "status": 12}})


class Site:
    def __init__(self, provider):
        self.provider, self.asked = provider, []

    def ask(self):
        pairs, tenancy = isolation.sample(self.provider.subnet, most=1)
        isolation.ask(self.provider.subnet, pairs, tenancy=tenancy, cause="NOW", now=timezone.now())
        return list(IsolationCheck.objects.filter(plane="DATA"))

    def run(self, row, found=FINE):
        @contextmanager
        def connect(host):
            yield host

        def examine(what):
            self.asked.append(what)
            return found

        attempts.run(check_id=row.pk, connect=connect, examine=examine)
        row.refresh_from_db()
        return row


@pytest.fixture
def site(db):
    """Two servers of each of two tenants, all probe hosts, both tenants consent."""
    provider = build()
    training = provider.partition("training", provider.acme, 0x2C41)
    berts = provider.partition("berts", provider.bert, 0x2C42)
    for number, target in ((1, training), (2, training), (3, berts), (4, berts)):
        provider.move(provider.server(number, ports=1), None, target)
    provider.settle(provider.roll_out(provider.olga, reason="first"))
    for server in provider.servers:
        add_host(server, provider)
    for tenant in (provider.acme, provider.bert):
        operations.set_consent(tenant=tenant, is_given=True, actor=SYSTEM)
    IsolationCheck.objects.all().delete()
    return Site(provider)


def test_each_end_has_its_own_key_and_each_control_a_peer_of_its_own(site):
    row = site.run(site.ask()[0])
    assert (row.state, row.verdict, row.is_confirmed) == ("DONE", "ISOLATED", True)
    [what] = site.asked
    assert {what.sender.pkey, what.target.pkey} == {0x2C41, 0x2C42}
    assert what.sender.port.port_guid == row.sender_guid
    assert what.target.port.port_guid == row.target_guid
    assert [(one.port, one.pkey) for one, _ in what.controls] == [
        (what.sender.port, what.sender.pkey), (what.target.port, what.target.pkey),
    ]  # fmt: skip
    hosts = {end.shell.server.hostname for pair in what.controls for end in pair}
    assert hosts == {"srv-001", "srv-002", "srv-003", "srv-004"}
    assert all(one.pkey == other.pkey for one, other in what.controls)
    assert what.is_ethernet_allowed is False


def test_both_directions_are_asked_for(site):
    pairs = {(row.sender_guid, row.target_guid) for row in site.ask()}
    assert len(pairs) == 2
    assert {(two, one) for one, two in pairs} == pairs


def test_without_consent_only_the_control_plane_is_asked(site):
    operations.set_consent(tenant=site.provider.bert, is_given=False, actor=SYSTEM)
    assert site.ask() == []
    assert IsolationCheck.objects.filter(plane="CONTROL").count() == 2


def test_a_consent_withdrawn_meanwhile_stops_the_attempt(site):
    row = site.ask()[0]
    operations.set_consent(tenant=site.provider.bert, is_given=False, actor=SYSTEM)
    site.run(row)
    assert (row.state, row.verdict, site.asked) == ("DROPPED", "", [])
    assert "consented" in row.sentence


def test_without_a_peer_that_is_a_probe_host_no_attempt_is_asked_for(site):
    ProbeHost.objects.filter(server__hostname="srv-004").update(withdrawn_at=timezone.now())
    rows = site.ask()
    assert rows == []


def test_nothing_is_sent_while_a_rollout_runs(site):
    row = site.ask()[0]
    fence = Fence.objects.select_related("current").get()
    rollout = fence.subnet.rollouts.latest("pk")
    rollout.state = "PLACING"
    rollout.save()
    Fence.objects.update(rollout=rollout)
    site.run(row)
    assert (row.state, site.asked) == ("QUEUED", [])


def test_a_busy_port_is_no_finding(site):
    busy = Checked(
        Judged(Isolation.INCONCLUSIVE, False, "Busy."), {"controls_before": [{"outcome": "BUSY", "status": None}]}
    )
    row = site.run(site.ask()[0], busy)
    assert (row.state, row.verdict) == ("QUEUED", "")


def test_a_leak_between_servers_alarms(site):
    row = site.run(site.ask()[0], Checked(Judged(Isolation.LEAK, False, "It completed."), {"attempt": {"status": 0}}))
    assert Incident.objects.get().leak == row


def test_two_workers_make_one_check_once(site):
    row = site.ask()[0]
    site.run(row)
    site.run(row)
    assert len(site.asked) == 1


def test_the_schedule_begins_few_attempts_at_once(site, monkeypatch):
    for _ in range(3):
        site.ask()
    nudged = []
    monkeypatch.setattr("audit.nudge.task", lambda name, kwargs: nudged.append(name))
    isolation.tick(now=timezone.now() + timedelta(seconds=1))
    assert nudged.count("probes.tasks.attempt") == isolation.ATTEMPTS_AT_ONCE
