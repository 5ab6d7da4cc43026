"""What operators, auditors and strangers see, and that no page asks the database more for more servers."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.values import SYSTEM
from deploy.models import Rollout
from probes import operations
from probes.models import Incident, ProbeHost, ProbeRun, ProbeScope, RolloutComparison
from probes.series import points_of
from probes.templatetags.probes import about, rate
from probes.terms import Outcome
from tests.probes.site import evidence, lost, ok, probed

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(site):
    """Runs of both kinds, a failure, an incident, a comparison around a rollout."""
    now = timezone.now()
    for number in range(8):
        site.run(ok(390 + number % 2), at=now - timedelta(minutes=50 - number))
    site.run(ok(210, ns=40_000), profile="kv-scatter-16k", at=now)
    site.run(ok(0.004, ns=2_100, samples=12_000), profile="lat", at=now)
    for _ in range(2):
        site.run(lost(), sender=1, target=0, at=now)
    operations.change_settings(
        scope=site.scope,
        settings=settings_with(site.scope, profiles=("link", "kv-scatter-16k", "lat")),
        actor=SYSTEM,
    )
    RolloutComparison.objects.create(
        rollout=Rollout.objects.first(), scope=site.scope, sender=site.hosts[0], target=site.hosts[1], profile="link",
        before=ProbeRun.objects.filter(gbps=390).first(), after=ProbeRun.objects.filter(gbps=391).first(), asked_at=now,
    )  # fmt: skip
    return site


def settings_with(scope, **changed):
    from dataclasses import replace

    from probes.settings_of_scope import ScopeSettings

    return replace(ScopeSettings.of(scope), **changed)


def addresses(site) -> dict[str, str]:
    scope, hosts = site.scope.public_id, [host.public_id for host in site.hosts]
    done, failed = (ProbeRun.objects.filter(state=state).first() for state in ("DONE", "FAILED"))
    return {
        "overview": reverse("probes:overview"),
        "scope": reverse("probes:scope", args=[scope]),
        "latency": reverse("probes:scope", args=[scope]) + "?profile=lat",
        "tcp": reverse("probes:scope", args=[scope]) + "?kind=TCP",
        "server": reverse("probes:server", args=[scope, hosts[0]]),
        "series": reverse("probes:series", args=[scope, hosts[0], hosts[1]]),
        "latency series": reverse("probes:series", args=[scope, hosts[0], hosts[1]]) + "?profile=lat&within=1y",
        "empty series": reverse("probes:series", args=[scope, hosts[2], hosts[3]]),
        "run": reverse("probes:run", args=[done.public_id]),
        "failed run": reverse("probes:run", args=[failed.public_id]),
        "incidents": reverse("probes:incidents"),
        "rollout": reverse("probes:around_rollout", args=[Rollout.objects.first().public_id]),
        "csv": reverse("probes:export", args=[scope, "csv"]),
        "json": reverse("probes:export", args=[scope, "json"]),
    }


def test_reviewers_see_every_page_and_strangers_none(measured, client_of, ada, charlie):
    for name, address in addresses(measured).items():
        for person, status in ((measured.provider.olga, 200), (ada, 200), (charlie, 404)):
            assert client_of(person).get(address).status_code == status, (name, person)
    settings = reverse("probes:settings", args=[measured.scope.public_id])
    assert client_of(measured.provider.olga).get(settings).status_code == 200
    assert client_of(ada).get(settings).status_code == 404


def test_auditors_change_nothing(measured, client_of, ada):
    incident = Incident.objects.first()
    for address in (
        reverse("probes:now", args=[measured.scope.public_id]),
        reverse("probes:settings", args=[measured.scope.public_id]),
        reverse("probes:acknowledge", args=[incident.public_id]),
        reverse("probes:consent", args=[measured.provider.acme.public_id]),
        reverse("probes:begin", args=[measured.partition.public_id]),
    ):
        assert client_of(ada).post(address).status_code == 404


def test_the_heat_map_says_what_the_rows_say(measured, client_of):
    page = client_of(measured.provider.olga).get(addresses(measured)["scope"]).content.decode()
    assert 'class="heat-5"' in page
    assert "srv-001 to srv-002: 97.8 % of the line, 391 Gb/s, 0 min old" in page or "srv-001 to srv-002: 97.8" in page
    assert 'class="heat-failed"' in page
    assert "srv-002 to srv-001: PEER_LOST" in page
    assert page.count('class="heat-none"') == 10 + 1  # ten untested pairs, and the legend
    assert page.count('class="heat-self"') == 4


def test_the_table_of_a_series_equals_the_stored_rows(measured, client_of):
    page = client_of(measured.provider.olga).get(addresses(measured)["series"]).content.decode()
    stored = ProbeRun.objects.filter(profile="link", sender=measured.hosts[0]).order_by("-finished_at")
    assert [line.split('"')[0] for line in page.split('data-gbps="')[1:]] == [str(run.gbps) for run in stored]
    assert [line.split('"')[0] for line in page.split('data-p50="')[1:]] == [str(run.p50_ns) for run in stored]
    assert "54 %" in page  # 210 of 391 Gb/s
    assert "kv-scatter-4k is not measured here" in page


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(94686.9, 1, "94,700"), (18937.4, 0, "18,900"), (104.4, 0, "104"), (87.53, 1, "87.5"), (3.27, 0, "3")],
)
def test_a_cost_has_no_more_digits_than_it_can_stand_by(value, places, text):
    assert about(value, places) == text


def test_the_usual_band_does_not_go_below_zero(site):
    now = timezone.now()
    for number, gbps in enumerate((1, 100, 200, 300, 390, 200)):
        site.run(ok(gbps), at=now - timedelta(minutes=50 - number))
    newest, *_ = points_of(ProbeRun.objects.filter(gbps=390).get().pair, since=now - timedelta(days=1))
    assert newest.low == 0
    assert newest.high > 400


def test_a_cost_is_bytes_over_the_rate_of_its_piece_size(measured, client_of):
    address = addresses(measured)["series"] + "?tokens=32768&ranks=8"
    response = client_of(measured.provider.olga).get(address)
    costs = {cost.model.name: cost for cost in response.context["costs"]}
    deepseek = costs["deepseek-v3"]  # 2.14 GiB in pieces of 18 KiB, at the 210 Gb/s of kv-scatter-16k
    assert deepseek.ms == pytest.approx(70_272 * 32_768 * 8 / 210e9 * 1e3)
    assert deepseek.share == pytest.approx(deepseek.ms / 500 * 100)
    assert costs["llama-3.1-70b"].ms is None


def test_a_failed_run_shows_outcome_advice_and_no_number(measured, client_of):
    page = client_of(measured.provider.olga).get(addresses(measured)["failed run"]).content.decode()
    assert "PEER_LOST at the target: The target&#x27;s program ended mid-run." in page
    assert "Look whether the server was restarted" in page
    assert "% of the negotiated rate" not in page


def test_the_run_page_says_what_root_could_forge(measured, client_of):
    page = client_of(measured.provider.olga).get(addresses(measured)["run"]).content.decode()
    assert "root on both servers could still forge" in page
    assert "0xac41" in page
    assert "ab" * 32 in page


def test_software_is_labelled_wherever_it_is_shown(site, client_of):
    soft = evidence(label="Soft-RoCE")
    soft["sender"] |= {"is_software": True, "device": "rxe0", "link_layer": "Ethernet"}
    run = site.run(ok(5.0, evidence=soft), at=timezone.now())
    browser = client_of(site.provider.olga)
    for address in (
        reverse("probes:scope", args=[site.scope.public_id]),
        reverse("probes:series", args=[site.scope.public_id, site.hosts[0].public_id, site.hosts[1].public_id]),
        reverse("probes:server", args=[site.scope.public_id, site.hosts[0].public_id]),
        reverse("probes:run", args=[run.public_id]),
    ):
        page = browser.get(address).content.decode()
        assert "Soft-RoCE, software: shows the path, not the speed" in page
        assert "P_Key isolation not applicable on Ethernet link layer" in page


def test_a_hosts_answer_is_text_on_the_page(site, client_of):
    nasty = "<script>alert(1)</script>"
    run = site.run(ok(evidence=evidence(note=nasty)), at=timezone.now())
    page = client_of(site.provider.olga).get(reverse("probes:run", args=[run.public_id])).content.decode()
    assert nasty not in page
    assert "&lt;script&gt;" in page


def test_probe_now_by_the_button(measured, client_of):
    browser = client_of(measured.provider.olga)
    one, other = measured.hosts[:2]
    address = reverse("probes:now", args=[measured.scope.public_id])
    response = browser.post(address, {"sender": one.public_id, "target": other.public_id}, follow=True)
    assert response.status_code == 200
    assert ProbeRun.objects.filter(why="NOW", asked_by="Olga").count() == 6
    operations.set_consent(tenant=measured.provider.acme, is_given=False, actor=SYSTEM)
    refused = browser.post(address, follow=True).content.decode()
    assert "has not consented" in refused


def test_settings_are_changed_or_say_what_is_wrong(site, client_of):
    browser = client_of(site.provider.olga)
    address = reverse("probes:settings", args=[site.scope.public_id])
    form = browser.get(address).context["form"]
    values = {name: value for name, value in form.initial.items() if value is not None and value is not False}
    wrong = browser.post(address, values | {"profiles": "nonsense", "interval_s": "60"})
    assert wrong.status_code == 422
    assert "is no profile" in wrong.content.decode()
    assert ProbeScope.objects.get().interval_s == 300
    right = browser.post(address, values | {"profiles": "link lat", "interval_s": "60", "reason": "ticket"})
    assert right.status_code == 302
    scope = ProbeScope.objects.get()
    assert (scope.interval_s, scope.profiles) == (60, ["link", "lat"])


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("windows", "always", "is no window"), ("budget", "0", "is not within"),
     ("mib_per_run", "9999999", "is not within"),
     ("history_bad_pct", "1", "cannot be smaller"), ("tcp_interface", "a b", "no name of a network"),
     ("line_bad_pct", "-4", "from 0 to 1000"), ("interval_s", "x", "whole number")],
)  # fmt: skip
def test_each_wrong_setting_stands_at_its_field(site, client_of, field, value, said):
    browser = client_of(site.provider.olga)
    address = reverse("probes:settings", args=[site.scope.public_id])
    initial = browser.get(address).context["form"].initial
    values = {name: item for name, item in initial.items() if item is not None and item is not False}
    response = browser.post(address, values | {field: value})
    assert response.status_code == 422
    assert said in " ".join(response.context["form"].errors.get(field, []))


def test_an_incident_is_acknowledged_on_its_page(measured, client_of):
    browser = client_of(measured.provider.olga)
    incident = Incident.objects.get()
    address = reverse("probes:acknowledge", args=[incident.public_id])
    assert "Say what you found" in browser.post(address, {"note": ""}, follow=True).content.decode()
    browser.post(address, {"note": "Cable swapped."})
    incident.refresh_from_db()
    assert incident.note == "Cable swapped."
    assert "No open incident" in browser.get(reverse("probes:incidents")).content.decode()
    assert "Cable swapped." in browser.get(reverse("probes:incidents") + "?show=all").content.decode()


def test_consent_and_set_up_by_the_overview(site, client_of):
    browser = client_of(site.provider.olga)
    browser.post(reverse("probes:consent", args=[site.provider.bert.public_id]), {"consents": "1"})
    assert site.provider.bert.probe_consent.is_given
    other = site.provider.partition("inference", site.provider.acme)
    response = browser.post(reverse("probes:begin", args=[other.public_id]))
    assert response.url == reverse("probes:settings", args=[ProbeScope.objects.get(partition=other).public_id])


def test_csv_holds_every_run_and_no_formula(measured, client_of):
    ProbeRun.objects.filter(state="FAILED").update(reason='=HYPERLINK("http://x")', outcome=Outcome.CORRUPT)
    browser = client_of(measured.provider.olga)
    text = b"".join(browser.get(addresses(measured)["csv"]).streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == ProbeRun.objects.count()
    assert {row["reason"] for row in rows if row["state"] == "FAILED"} == {'\'=HYPERLINK("http://x")'}
    assert {row["gbps"] for row in rows if row["state"] == "FAILED"} == {""}
    whole = json.loads(b"".join(browser.get(addresses(measured)["json"]).streaming_content))
    assert [row["public_id"] for row in whole] == [row["public_id"] for row in rows]
    assert whole[-1]["gbps"] == 390.0


def test_metrics_need_the_token(measured, client, settings):
    address = reverse("probes:metrics")
    assert client.get(address).status_code == 404
    settings.METRICS_TOKEN = "s" * 32
    assert client.get(address).status_code == 404
    assert client.get(address, headers={"Authorization": "Bearer wrong"}).status_code == 404
    text = client.get(address, headers={"Authorization": f"Bearer {'s' * 32}"}).content.decode()
    labels = 'scope="training",subnet="lab",kind="rdma",mode="loaded",profile="link"'
    assert f'fabricui_probe_pairs{{{labels},verdict="good"}} 1' in text
    pair = f'{{{labels},sender="srv-001",target="srv-002",rail="0"}}'
    assert f"fabricui_probe_bits_per_second{pair} 391000000000" in text
    assert 'fabricui_probe_incidents_open{scope="training",subnet="lab"} 1' in text
    assert "srv-002" in text
    assert 'sender="srv-002"' not in text  # it failed: no number


BUDGETS = {"overview": 12, "scope": 14, "server": 13, "series": 20, "run": 7, "incidents": 8}


@pytest.mark.parametrize("servers", [3, 7])
def test_pages_ask_the_same_whatever_the_number_of_servers(db, servers, client_of, django_assert_max_num_queries):
    site = probed(servers=servers)
    for sender in range(servers):
        site.run(ok(), sender=sender, target=(sender + 1) % servers, at=timezone.now())
    for _ in range(2):
        site.run(lost(), at=timezone.now())
    browser = client_of(site.provider.olga)
    found = {name: address for name, address in addresses_of(site).items() if name in BUDGETS}
    for name, address in found.items():
        with django_assert_max_num_queries(BUDGETS[name], info=name):
            assert browser.get(address).status_code == 200


def addresses_of(site) -> dict[str, str]:
    scope, hosts = site.scope.public_id, [host.public_id for host in site.hosts]
    return {
        "overview": reverse("probes:overview"),
        "scope": reverse("probes:scope", args=[scope]),
        "server": reverse("probes:server", args=[scope, hosts[0]]),
        "series": reverse("probes:series", args=[scope, hosts[0], hosts[1]]),
        "run": reverse("probes:run", args=[ProbeRun.objects.first().public_id]),
        "incidents": reverse("probes:incidents"),
    }


def test_nothing_yet_says_what_to_do(db, olga, client_of):
    page = client_of(olga).get(reverse("probes:overview")).content.decode()
    assert "Nothing is probed yet" in page
    assert "No tenant yet" in page
    assert not ProbeHost.objects.exists()


@pytest.mark.parametrize(
    ("gbps", "shown"), [(0.000121, "<0.001"), (0, "0"), (0.0578, "0.0578"), (391.4, "391"), (None, "–")]
)
def test_a_rate_is_read_at_a_glance(gbps, shown):
    assert rate(gbps) == shown
