"""Home: one glance, honest when it does not know; and the first steps, from an empty database on."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from deploy.drift_models import Drift, Watch
from deploy.models import Fence, HostCheck, HostOutcome, Rollout
from inventory.models import ManagerHost, Port, PortConflict, Server, Subnet
from probes.models import Incident, IsolationCheck
from tests.console.drifted import drifted

HTMX = {"HTTP_HX_REQUEST": "true"}


def text_of(browser, address="/", **headers):
    answer = browser.get(address, **headers)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def watched(site):
    """The watch has just seen both managers as they should be."""
    current = Rollout.objects.latest("pk").revision
    managers = [
        {"host": host.name, "digest": current.digest, "revision": current.number, "role": role, "error": ""}
        for host, role in zip(ManagerHost.objects.order_by("name"), ("MASTER", "STANDBY"), strict=True)
    ]
    Port.objects.update(confirmed_at=timezone.now())
    fields = {"next_at": timezone.now(), "checked_at": timezone.now(), "managers": managers}
    Watch.objects.update_or_create(subnet=site.provider.subnet, defaults=fields)
    return site


def test_a_calm_site_says_so_and_leads_to_the_board(watched, operator):
    text = text_of(operator)
    assert "Nothing waits for you" in text
    page = operator.get("/").content.decode()
    assert "</svg>master</span>" in page
    assert "</svg>standby</span>" in page
    assert text.count("current") >= 2
    assert "nothing differs" in text
    assert "Nothing is staged" in text
    assert "Move servers" in text


def test_what_nobody_looked_at_is_unknown_and_never_good(site, operator):
    Watch.objects.all().delete()
    text = text_of(operator)
    assert "Nothing waits for you" not in text
    assert "unknown" in text
    assert "nothing differs" not in text
    assert "last looked never" in text


def test_a_look_that_is_old_counts_as_none(watched, operator):
    Watch.objects.update(checked_at=timezone.now() - timezone.timedelta(hours=1))
    text = text_of(operator)
    assert "the last look is old" in text
    assert "Drift is not known" in text
    assert "no drift" not in text
    assert "nothing differs" not in text
    assert "</svg>master</span>" not in operator.get("/").content.decode()


def test_staged_changes_are_told_for_me_and_for_all_and_the_plan_comes_first(watched, operator):
    provider = watched.provider
    provider.move(provider.servers[0], watched.training, watched.inference)
    provider.move(provider.servers[2], watched.inference, watched.training, by=provider.otto)
    text = text_of(operator)
    assert "Yours 1 server, 2 ports" in text
    assert "Everybody’s 2 servers, 4 ports by 2 people" in text
    assert 'class="btn btn-primary" href="/plan/"' in operator.get("/").content.decode()


def test_only_others_changes_lead_to_the_plan_of_all(watched, operator):
    provider = watched.provider
    provider.move(provider.servers[2], watched.inference, watched.training, by=provider.otto)
    assert 'class="btn btn-primary" href="/plan/?selection=all"' in operator.get("/").content.decode()


def test_everything_that_waits_for_a_person_is_there_with_its_place(watched, operator):
    drifted(watched)
    PortConflict.objects.create(
        port=Port.objects.filter(hca__server=watched.provider.servers[0]).first(),
        claimed_by=watched.provider.servers[5],
        claim={},
    )
    Port.objects.filter(hca__server=watched.provider.servers[4]).update(confirmed_at=None)
    rollout = Rollout.objects.latest("pk")
    Rollout.objects.filter(pk=rollout.pk).update(state="STUCK", cause="Log in to m1 and look.")
    Fence.objects.update(rollout=rollout)
    page = operator.get("/").content.decode()
    text = text_of(operator)
    assert "1 conflict about ports." in text
    assert "2 ports nobody has confirmed." in text
    assert "Log in to m1 and look." in text
    for address in ("/drift/", "/conflicts/", f"/rollouts/{rollout.public_id}/", "/servers/?q=trust%3Aunconfirmed"):
        assert f'href="{address}"' in page
    count = Drift.objects.filter(closed_at=None).exclude(opened_at=None).values("kind").distinct().count()
    assert f"{count + 3} things wait for a person." in text


def test_leaks_between_tenants_are_told(watched, operator):
    servers, now = watched.provider.servers, timezone.now()
    check = IsolationCheck.objects.create(
        subnet=watched.provider.subnet, plane="DATA", cause="NOW", asked_at=now, sender=servers[0], target=servers[3],
        state="DONE", verdict="LEAK",
    )  # fmt: skip
    Incident.objects.create(leak=check, leak_of="a b", rule="leak", sentence="It answered.", opened_at=now, seen_at=now)
    text = text_of(operator)
    assert "1 leak between tenants." in text
    assert "got worse" not in text


def test_thousands_of_tables_that_differ_are_one_line(watched, operator):
    now = timezone.now()
    fields = {"first_seen_at": now, "opened_at": now, "last_seen_at": now, "kind": "TABLE"}
    Drift.objects.bulk_create(
        Drift(subnet=watched.provider.subnet, key=f"port{number}", details=[f"Port {number} differs."], **fields)
        for number in range(40)
    )
    text = text_of(operator)
    assert "Port 0 differs. And 39 more of this kind." in text
    assert "1 thing waits for a person." in text
    assert "40 differences" in text


def test_a_missing_manager_is_a_need(watched, operator):
    ManagerHost.objects.filter(name=ManagerHost.objects.first().name).update(retired_at=timezone.now())
    assert "1 manager host; it needs a master and a standby." in text_of(operator)


def test_manual_actions_are_counted_from_the_trail(watched, operator):
    """One rollout moved four servers of two ports each, on two hosts; four moves, one plan, one button."""
    HostOutcome.objects.update(placed_at=timezone.now())
    assert Rollout.objects.filter(state="PROVEN").count() == 1
    found = re.search(r'id="spared-count">(\d+)<', operator.get("/").content.decode())
    by_hand = 3 * 8 + 2 + 1
    moves = Event.objects.filter(action="partitions:member:stage").count()
    assert moves == 4
    assert int(found[1]) == by_hand - moves - 2
    # What is not proven spared nobody anything, and its clicks count.
    provider = watched.provider
    provider.move(provider.servers[0], watched.training, watched.inference)
    restored = provider.roll_out(provider.olga)
    Rollout.objects.filter(pk=restored.pk).update(state="RESTORED")
    HostOutcome.objects.update(placed_at=timezone.now())
    again = re.search(r'id="spared-count">(\d+)<', operator.get("/").content.decode())
    assert int(again[1]) == by_hand - moves - 2 - 1 - 2


def test_the_page_costs_the_same_queries_whatever_there_is(watched, operator, django_assert_max_num_queries):
    with django_assert_max_num_queries(24) as small:
        operator.get("/", **HTMX)
    drifted(watched)
    provider = watched.provider
    provider.move(provider.servers[0], watched.training, watched.inference)
    provider.roll_out(provider.olga)
    for number in range(3):
        subnet = Subnet.objects.create(name=f"more{number}")
        ManagerHost.objects.create(
            subnet=subnet, name="sm", address="a", ssh_user="root", host_key="k", wrapper_digest="d",
            reader_digest="d", port_guid=f"0x00000000000a{number:04x}",
        )  # fmt: skip
    with django_assert_max_num_queries(len(small.captured_queries) + 1):  # the alarms, told on every page
        operator.get("/", **HTMX)


def test_an_auditor_sees_it_and_is_offered_nothing_to_do(watched, auditor):
    text = text_of(auditor)
    assert "Go to the board" in text
    assert "Move servers" not in text


class TestFirstSteps:
    ADDRESS = "/first-steps/"

    def test_an_empty_home_leads_there(self, olga, ada, client_of):
        assert f'href="{self.ADDRESS}"' in client_of(olga).get("/").content.decode()
        assert f'href="{self.ADDRESS}"' not in client_of(ada).get("/").content.decode()

    def test_the_subnet_is_made_by_the_form_with_its_event(self, olga, client_of):
        browser = client_of(olga)
        assert "1. Name the subnet next" in text_of(browser, self.ADDRESS)
        answer = browser.post(f"{self.ADDRESS}subnet/", {"name": "hall-1", "prefix": ""}, follow=True)
        assert answer.redirect_chain[-1][0] == self.ADDRESS
        subnet = Subnet.objects.get()
        assert (subnet.name, subnet.mode) == ("hall-1", "OBSERVE")
        event = Event.objects.get(action="inventory:subnet:create")
        assert event.actor_name == "Olga"
        text = text_of(browser, self.ADDRESS)
        assert "2. Enrol two manager hosts next" in text
        assert "enrol_manager_host hall-1 sm-a" in text
        assert "enrol_manager_host hall-1 sm-b" in text

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"name": "two words"}, "cannot name a subnet"),
            ({"name": ""}, "cannot name a subnet"),
            ({"name": "hall", "prefix": "nonsense"}, "nonsense"),
        ],
    )
    def test_what_cannot_be_is_refused_and_what_was_typed_stays(self, olga, client_of, fields, why):
        answer = client_of(olga).post(f"{self.ADDRESS}subnet/", fields)
        assert answer.status_code == 422
        page = answer.content.decode()
        assert why in page
        assert f'value="{fields["name"]}"' in page
        assert not Subnet.objects.exists()

    def test_a_host_is_checked_from_here_and_its_answer_shown(self, site, operator, nudges):
        host = ManagerHost.objects.order_by("name").first()
        answer = operator.post(reverse("console:first_run_check", args=[host.public_id]))
        assert answer.url == self.ADDRESS
        check = HostCheck.objects.get(host=host)
        assert "being checked" in text_of(operator, self.ADDRESS)
        done = {"finished_at": timezone.now(), "state": "DONE"}
        facts = {"pieces": [["python", True, ""], ["umad", False, "Load it."]]}
        HostCheck.objects.filter(pk=check.pk).update(**done, facts=facts)
        assert "1 missing" in text_of(operator, self.ADDRESS)
        HostCheck.objects.filter(pk=check.pk).update(**done, facts={"pieces": [["python", True, ""]]})
        text = text_of(operator, self.ADDRESS)
        assert "all there" in text
        assert "not checked" in text  # the other one
        HostCheck.objects.filter(pk=check.pk).update(state="FAILED", failure="Connection refused.")
        text = text_of(operator, self.ADDRESS)
        assert "not reached" in text
        assert "Connection refused." in text

    def test_when_all_is_done_it_says_so(self, site, operator):
        for host in ManagerHost.objects.all():
            HostCheck.objects.create(
                host=host, requested_by_name="Olga", requested_at=timezone.now(), finished_at=timezone.now(),
                state="DONE", facts={"pieces": []},
            )  # fmt: skip
        assert Server.objects.exists()
        assert "All done" in text_of(operator, self.ADDRESS)

    def test_an_auditor_reads_and_does_nothing(self, ada, client_of):
        page = client_of(ada).get(self.ADDRESS).content.decode()
        assert "An operator creates it." in page
        assert '<form method="post" action="/first-steps' not in page
