"""The figures for Prometheus: who gets them, that they are right, and that the docs know each of them."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from redis.exceptions import ConnectionError as NoConnection

from audit.models import ChainHead
from deploy.models import Rollout
from fabricui import heartbeat
from tests.console.drifted import everything as drifted

TOKEN = "t" * 32
DOC = (Path(__file__).resolve().parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")


@pytest.fixture
def depths(monkeypatch):
    said = dict.fromkeys(heartbeat.QUEUES, 0)
    monkeypatch.setattr(heartbeat, "depths", lambda: said)
    return said


def scraped(client):
    """Every sample by name and labels."""
    text = client.get(reverse("metrics"), headers={"Authorization": f"Bearer {TOKEN}"}).content.decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("token", ["", "wrong"])
def test_it_is_not_there_without_the_token(client, db, settings, token):
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get(reverse("metrics"), headers=headers).status_code == 404
    settings.METRICS_TOKEN = ""
    assert client.get(reverse("metrics"), headers=headers).status_code == 404


def test_rollouts_by_state_and_duration(site, alive, depths, client):
    rollout = Rollout.objects.get()
    Rollout.objects.update(finished_at=rollout.requested_at + timedelta(seconds=12))
    found = scraped(client)
    assert found["fabricui_rollouts", ("state", "proven")] == 1
    assert found["fabricui_rollouts", ("state", "stuck")] == 0
    name, state = "fabricui_rollout_duration_seconds_bucket", ("state", "proven")
    assert found[name, ("le", "10.0"), state] == 0
    assert found[name, ("le", "20.0"), state] == 1
    assert found[name, ("le", "+Inf"), state] == 1
    assert found["fabricui_rollout_duration_seconds_sum", state] == 12
    assert found["fabricui_rollout_duration_seconds_count", state] == 1
    assert found["fabricui_last_proven_timestamp_seconds", ("subnet", "lab")] == pytest.approx(
        timezone.now().timestamp(), abs=60
    )


def test_drift_managers_queues_processes_and_the_trail(site, alive, depths, client):
    drifted(site)
    depths["observe"] = 7
    alive["observe"] = heartbeat.Beat({"deploy.tasks.watch": 3.5, "deploy.tasks.observe": 9.0})
    del alive["probe"]
    found = scraped(client)
    assert found["fabricui_drift_open", ("kind", "rogue_sm"), ("subnet", "lab")] == 1
    assert found["fabricui_drift_open", ("kind", "takeover"), ("subnet", "lab")] >= 0
    assert found["fabricui_manager_up", ("manager", "m1"), ("role", "master"), ("subnet", "lab")] == 1
    assert found["fabricui_queue_depth", ("queue", "observe")] == 7
    assert found["fabricui_worker_busy_seconds", ("queue", "observe")] == 9
    assert found["fabricui_process_up", ("process", "probe")] == 0
    assert found["fabricui_process_up", ("process", "beat")] == 1
    assert found["fabricui_check_ok", ("check", "worker:probe")] == 0
    assert found["fabricui_audit_events_total",] == ChainHead.objects.get().number
    assert found["fabricui_servers",] == 6


def test_what_holds_the_subnet_is_told(site, alive, depths, client):
    held = Rollout.objects.get()
    held.subnet.fence.__class__.objects.update(rollout=held)
    Rollout.objects.update(state=Rollout.State.STUCK)
    found = scraped(client)
    key = ("fabricui_rollout_holds_since_timestamp_seconds", ("state", "stuck"), ("subnet", "lab"))
    assert found[key] == pytest.approx(held.requested_at.timestamp())


def test_without_a_broker_the_rest_is_scraped(site, client, monkeypatch):
    def away(*_):
        raise NoConnection

    monkeypatch.setattr(heartbeat, "heard", away)
    monkeypatch.setattr(heartbeat, "depths", away)
    found = scraped(client)
    assert found["fabricui_check_ok", ("check", "broker")] == 0
    assert not [key for key in found if key[0] == "fabricui_queue_depth"]


@pytest.fixture
def names(site, alive, depths, client):
    text = client.get(reverse("metrics"), headers={"Authorization": f"Bearer {TOKEN}"}).content.decode()
    return {f"{line.split()[2]}" for line in text.splitlines() if line.startswith("# TYPE")}


def test_every_figure_is_documented_and_every_documented_one_is_there(names):
    documented = set(re.findall(r"^\| `(fabricui_\w+)`", DOC, re.MULTILINE))
    probes = {name for name in documented if name.startswith("fabricui_probe_")}  # of /probes/metrics
    assert sorted(names - documented) == []
    assert sorted(documented - probes - names) == []


def test_the_alert_rules_ask_for_figures_that_exist(names):
    rules = DOC.partition("```yaml")[2].partition("```")[0]
    asked = set(re.findall(r"\bfabricui_\w+", rules))
    assert len(asked) > 8
    exist = names | {f"{name}_bucket" for name in names}
    assert sorted(name for name in asked - exist if not name.startswith("fabricui_probe_")) == []


def test_a_scrape_asks_the_same_whatever_the_number_of_managers(
    site,
    alive,
    depths,
    client,
    django_assert_max_num_queries,
):
    with django_assert_max_num_queries(30):
        scraped(client)
