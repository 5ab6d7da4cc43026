"""The pages of a manager host and of the qualification: who may do what, empty, with data, refusing, untrusted text."""

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from deploy.models import HostCheck, Qualification
from inventory.models import ManagerHost, Subnet
from subnet.qualification import CHECKLIST
from tests.qualified import qualify

FACTS = {
    "account": "fabricui", "forced_command": "", "opensm_version": "3.3.23", "opensm_exe": "/usr/sbin/opensm",
    "opensm_unit": "opensm@0x0002c903000a0001.service", "config_file": "", "options": {"sm_priority": "5"},
    "options_digest": "", "is_pinned": True,
    "pieces": [["python", True, "/usr/bin/python3 3.11"], ["umad", False, "Load the module: <b>modprobe ib_umad</b>."]],
}  # fmt: skip


@pytest.fixture
def host(site) -> ManagerHost:
    return ManagerHost.objects.get(name="m1")


@pytest.fixture
def subnet(site) -> Subnet:
    return site.provider.subnet


def manager(host, name="manager"):
    return reverse(f"console:{name}", args=[host.public_id])


def page(subnet, name=""):
    return reverse(f"console:qualification{'_' + name if name else ''}", args=[subnet.public_id])


def test_strangers_see_neither_and_auditors_may_only_look(site, host, subnet, charlie, auditor, client_of):
    stranger = client_of(charlie)
    for address in (manager(host), page(subnet)):
        assert stranger.get(address).status_code == 404
        shown = auditor.get(address)
        assert shown.status_code == 200
        assert 'method="post" action="/managers' not in shown.content.decode()
        assert 'method="post" action="/subnets' not in shown.content.decode()
    posts = [manager(host, "manager_check"), manager(host, "manager_retire")]
    posts += [page(subnet, name) for name in ("run", "sign", "mode")]
    for address in posts:
        assert stranger.post(address).status_code == 404
        assert auditor.post(address).status_code == 404
    assert not HostCheck.objects.exists()
    assert ManagerHost.objects.count() == 2


def test_a_check_is_asked_for_once_shown_live_and_told(site, host, operator):
    assert "Not checked yet" in operator.get(manager(host)).content.decode()
    operator.post(manager(host, "manager_check"))
    operator.post(manager(host, "manager_check"))
    check = HostCheck.objects.get()
    assert Event.objects.filter(action="deploy:host-check:request").count() == 1
    assert 'hx-trigger="every 1s, refresh"' in operator.get(manager(host)).content.decode()
    HostCheck.objects.update(state="DONE", finished_at=timezone.now(), facts=FACTS)
    text = operator.get(manager(host)).content.decode()
    assert 'hx-trigger="every 30s, refresh"' in text
    assert "opensm@0x0002c903000a0001.service" in text
    assert text.count(">missing</span>") == 1
    assert "&lt;b&gt;modprobe" in text
    check.refresh_from_db()
    HostCheck.objects.update(state="FAILED", facts=None, failure="Manager host m1: no connection.")
    assert "Manager host m1: no connection." in operator.get(manager(host)).content.decode()


def test_the_fingerprint_is_shown_as_ssh_keygen_prints_it(site, host, operator):
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    ManagerHost.objects.filter(pk=host.pk).update(host_key=key)
    assert "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU" in operator.get(manager(host)).content.decode()


def test_a_host_is_retired_with_a_reason_and_its_page_stays(site, host, operator, auditor):
    operator.post(manager(host, "manager_retire"), {"reason": " "})
    assert ManagerHost.objects.filter(pk=host.pk).exists()
    operator.post(manager(host, "manager_retire"), {"reason": "the machine burned"})
    assert not ManagerHost.objects.filter(pk=host.pk).exists()
    text = auditor.get(manager(host)).content.decode()
    assert "nobody asks it any more" in text
    assert operator.post(manager(host, "manager_check")).status_code == 404
    assert "m1" not in [row.host.name for row in operator.get(reverse("console:managers")).context["rows"]]


def test_without_a_report_the_page_says_what_to_do(site, subnet, operator):
    Qualification.objects.all().delete()
    text = operator.get(page(subnet)).content.decode()
    assert "No report yet" in text
    assert "manage.py qualify lab" in text
    operator.post(page(subnet, "run"), {"may_sweep": "1"})
    request = Qualification.objects.get()
    assert request.may_sweep
    assert 'id="qualification-poller"' in operator.get(page(subnet)).content.decode()
    assert "subnet-chip" in operator.get(page(subnet), HTTP_HX_REQUEST="true").content.decode()


def test_a_report_that_refuses_says_why_and_cannot_be_signed(site, subnet, operator):
    row = qualify(subnet, is_fit=False)
    text = operator.get(page(subnet)).content.decode()
    assert "It is UFM&#x27;s." in text
    assert page(subnet, "sign") not in text
    operator.post(page(subnet, "sign"), {"report": row.public_id, "reason": "x", **dict.fromkeys(CHECKLIST, "1")})
    row.refresh_from_db()
    assert row.signed_at is None
    answer = operator.post(page(subnet, "mode"), {"mode": "WRITE"}, follow=True)
    assert "speaks against it" in answer.content.decode()


def test_the_checklist_is_signed_item_by_item_and_write_mode_follows(site, subnet, operator):
    Qualification.objects.all().delete()
    Subnet.objects.update(mode="OBSERVE")
    row = qualify(subnet)
    Qualification.objects.update(signed_at=None, signed_by_name="", answers=None)
    assert "not signed" in operator.get(page(subnet)).content.decode()
    answers = dict.fromkeys(CHECKLIST, "1")
    form = {"report": row.public_id, "reason": "on srv-001 and srv-002"}
    operator.post(page(subnet, "sign"), form | {**answers, "takeover": ""})
    row.refresh_from_db()
    assert row.signed_at is None
    operator.post(page(subnet, "sign"), form | answers)
    row.refresh_from_db()
    assert (row.signed_by_name, row.signed_reason) == ("Olga", "on srv-001 and srv-002")
    text = operator.get(page(subnet)).content.decode()
    assert 'id="may-write"' in text
    operator.post(page(subnet, "mode"), {"mode": "WRITE", "reason": "qualified"})
    subnet.refresh_from_db()
    assert subnet.mode == "WRITE"


def test_a_mode_there_is_not_is_refused(site, subnet, operator):
    answer = operator.post(page(subnet, "mode"), {"mode": "ADMIN"}, follow=True)
    assert "is no mode" in answer.content.decode()


def test_a_report_of_another_subnet_is_not_signed_here(site, subnet, operator):
    other = Subnet.objects.create(name="other")
    row = qualify(other)
    assert operator.post(page(subnet, "sign"), {"report": row.public_id}).status_code == 404


def test_the_queries_do_not_grow_with_the_checks(site, host, operator, django_assert_max_num_queries):
    for _ in range(20):
        HostCheck.objects.create(
            host=host, requested_by_key="x", requested_by_name="x", requested_at=timezone.now(), state="DONE",
            finished_at=timezone.now(), facts=FACTS,
        )  # fmt: skip
    with django_assert_max_num_queries(8):
        operator.get(manager(host))
