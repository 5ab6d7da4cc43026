"""What people may do with hosts, sets and settings, and what they may not."""

from dataclasses import replace

import pytest

from audit.models import Event
from audit.values import SYSTEM
from probes import operations
from probes.errors import InvalidSettings, ProbeRefused
from probes.judgement import Thresholds
from probes.members import natural, roll_of
from probes.models import ProbeHost, ProbeRun, ProbeScope
from probes.planning import tick
from probes.settings_of_scope import ScopeSettings
from tests.probes.site import HOST_KEY, START

pytestmark = pytest.mark.django_db


def pinned(**changed):
    return {
        "address": "10.0.0.1", "ssh_user": "fabricui-probe", "host_key": HOST_KEY, "program_digest": "2" * 64,
        "wrapper_digest": "3" * 64,
    } | changed  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [{"address": "a b"}, {"address": "-oProxyCommand=x;"}, {"ssh_user": "Root"}, {"host_key": "ssh-rsa AAAA"},
     {"program_digest": "2" * 63}, {"ssh_port": 0}, {"ssh_port": 65_536}, {"wrapper_digest": "x"}],
)  # fmt: skip
def test_a_host_is_pinned_or_refused(site, changed):
    server = site.provider.server(8)
    with pytest.raises(ProbeRefused):
        operations.add_probe_host(server=server, actor=SYSTEM, **pinned(**changed))
    assert not ProbeHost.objects.filter(server=server).exists()


def test_a_host_is_added_once_changed_withdrawn_and_comes_back(site):
    server = site.provider.server(8)
    host = operations.add_probe_host(server=server, actor=SYSTEM, **pinned())
    with pytest.raises(ProbeRefused, match="already"):
        operations.add_probe_host(server=server, actor=SYSTEM, **pinned())
    operations.change_probe_host(host=host, actor=SYSTEM, program_digest="3" * 64, reason="upgraded")
    events = Event.objects.count()
    operations.change_probe_host(host=host, actor=SYSTEM, program_digest="3" * 64, reason="upgraded")
    assert Event.objects.count() == events  # nothing changed, nothing is told
    operations.withdraw_probe_host(host=host, actor=SYSTEM, reason="sold")
    again = operations.add_probe_host(server=server, actor=SYSTEM, **pinned(address="10.0.0.2"))
    assert (again.pk, again.withdrawn_at, again.address) == (host.pk, None, "10.0.0.2")
    told = list(Event.objects.filter(subject_key=host.public_id).order_by("number").values_list("action", flat=True))
    assert told == ["probes:host:add", "probes:host:change", "probes:host:withdraw", "probes:host:add"]


def test_what_waits_for_a_withdrawn_host_is_dropped(site):
    tick(now=START)
    operations.withdraw_probe_host(host=site.hosts[0], actor=SYSTEM)
    for run in ProbeRun.objects.all():
        touched = site.hosts[0] in (run.sender, run.target)
        assert run.state == ("DROPPED" if touched else "QUEUED")


def test_a_probe_set_names_ports_and_needs_no_partition(site):
    scope = operations.create_probe_set(
        subnet=site.provider.subnet, name="RDMA guests", note="Soft-RoCE", actor=SYSTEM,
        settings=ScopeSettings(is_enabled=True),
    )  # fmt: skip
    operations.add_to_probe_set(scope=scope, host=site.hosts[0], device="rxe0", port=1, interface="eth1", actor=SYSTEM)
    operations.add_to_probe_set(scope=scope, host=site.hosts[1], device="mlx5_0", port=1, actor=SYSTEM)
    soft, hard = (member.rails[0] for member in roll_of(scope).members)
    assert (soft.choice.device, soft.choice.interface, soft.choice.node_guid, soft.is_ethernet) == (
        "rxe0", "eth1", "", True,
    )  # fmt: skip
    assert hard.choice.node_guid
    assert not hard.is_ethernet
    with pytest.raises(ProbeRefused, match="already"):
        operations.add_to_probe_set(scope=scope, host=site.hosts[0], actor=SYSTEM)
    with pytest.raises(ProbeRefused, match="board"):
        operations.add_to_probe_set(scope=site.scope, host=site.hosts[0], actor=SYSTEM)
    with pytest.raises(ProbeRefused, match="already has"):
        operations.create_probe_set(subnet=site.provider.subnet, name="rdma GUESTS", actor=SYSTEM)


@pytest.mark.parametrize("unseen", ["RDMA\nguests", "RDMA\u200b guests", "\u202eguests"])
def test_a_probe_set_has_a_name_that_is_seen(site, unseen):
    with pytest.raises(ProbeRefused, match="nobody sees"):
        operations.create_probe_set(subnet=site.provider.subnet, name=unseen, actor=SYSTEM)


@pytest.mark.parametrize(
    ("field", "value"),
    [("profiles", ()), ("profiles", ("nonsense",)), ("profiles", tuple(f"model:qwen3-8b@{n}" for n in range(1, 15))),
     ("interval_s", 9), ("budget", 0), ("budget", 1025), ("bytes_per_run", 1), ("bytes_per_run", 5 << 30),
     ("windows", "always"), ("windows", "00:00-24:00"), ("ttft_budget_ms", 0), ("tcp_interface", "eth0; reboot"),
     ("service_level", 16)],
)  # fmt: skip
def test_settings_that_cannot_be_used_name_their_field(field, value):
    with pytest.raises(InvalidSettings) as refused:
        ScopeSettings(**{field: value})
    assert refused.value.field == field
    assert str(refused.value).endswith(".")


def test_settings_are_stored_told_and_read_back(site):
    wanted = ScopeSettings(
        is_enabled=True, profiles=("lat", "model:llama-3.1-70b@8192"), interval_s=60, windows="Mon-Fri 09:00-17:00",
        thresholds=Thresholds(line_bad_pct=80),
    )  # fmt: skip
    tick(now=START)
    operations.change_settings(scope=site.scope, settings=wanted, actor=SYSTEM, reason="ticket 9")
    scope = ProbeScope.objects.get(pk=site.scope.pk)
    assert ScopeSettings.of(scope) == wanted
    assert not ProbeRun.objects.filter(state="QUEUED").exists()  # link is no longer asked for
    event = Event.objects.order_by("number").last()
    assert (event.action, event.reason) == ("probes:scope:settings", "ticket 9")
    assert event.after["thresholds"]["line_bad_pct"] == 80
    assert event.before["interval_s"] == 300
    events = Event.objects.count()
    operations.change_settings(scope=scope, settings=wanted, actor=SYSTEM)
    assert Event.objects.count() == events
    assert replace(wanted, is_enabled=False) != wanted


def test_consent_is_told_once(site):
    events = Event.objects.count()
    operations.set_consent(tenant=site.provider.acme, is_given=True, actor=SYSTEM)
    assert Event.objects.count() == events
    operations.set_consent(tenant=site.provider.acme, is_given=False, actor=SYSTEM, reason="mail of 1 December")
    event = Event.objects.order_by("number").last()
    assert (event.before, event.after) == ({"consents": True}, {"consents": False})
    assert event.tenant_key == site.provider.acme.public_id


def test_a_scope_of_a_partition_is_made_once_and_switched_off(site):
    other = site.provider.partition("inference", site.provider.acme)
    scope = operations.scope_of_partition(partition=other, actor=SYSTEM)
    assert not scope.is_enabled
    assert operations.scope_of_partition(partition=other, actor=SYSTEM) == scope


def test_devices_sort_as_people_count():
    assert sorted(["mlx5_10", "mlx5_2", "ibs1", "mlx5_0"], key=natural) == ["ibs1", "mlx5_0", "mlx5_2", "mlx5_10"]
