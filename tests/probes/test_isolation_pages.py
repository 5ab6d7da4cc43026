"""The pages of isolation: the matrix, a check with what it does not prove, the alarm on every page, who may look."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from probes.models import Incident, IsolationCheck
from probes.operations.isolation import store
from probes.verdict import Isolation, Judged
from probes.views.isolation import matrix
from tests.probes.test_isolation import nudged, site  # noqa: F401  fixtures

pytestmark = pytest.mark.django_db
SA = {
    "asked_from": "m1", "asker": "0x0002c903000a0001", "asker_default_entry": "0xffff", "sm_lid": 1,
    "sm": "0x0002c903000a0001",
    "answer": {"source": "0x1", "target": "0x2", "answer": "found", "pkey": "0xffff", "slid": 3, "dlid": 4},
    "controls_before": [{"source": "0x0a", "target": "0x1", "answer": "found", "pkey": "0x7fff"}],
    "controls_after": [{"source": "0x0a", "target": "0x1", "answer": "unanswered", "why": "timeout"}],
}  # fmt: skip
TRIED = {
    "outcome": "OK", "reason": "", "at": "", "status": 12, "took_s": 0.21, "target_alive": True, "target_in_rts": True,
    "canary_intact": True, "bad_pkey_rose_by": 2, "constraint_errors_rose_by": None,
    "ends": {"sender": {"device": "mlx5_0", "port": 1, "pkey_entry": 0x8010, "pkey_index": 2, "qpns": [7]}},
}  # fmt: skip


def judge(row, verdict, sentence="So it is.", *, evidence=None, at=None):
    IsolationCheck.objects.filter(pk=row.pk).update(state="RUNNING", verdict="")
    store(row, judged=Judged(verdict, False, sentence), evidence=evidence or SA, now=at or timezone.now())
    row.refresh_from_db()
    return row


@pytest.fixture
def as_operator(client, site):  # noqa: F811
    client.force_login(site.provider.olga)
    return client


def page(client, name, *arguments, **query):
    return client.get(reverse(f"probes:{name}", args=arguments), query).content.decode()


def test_the_matrix_shows_the_worst_of_the_newest_checks(site, as_operator):  # noqa: F811
    rows = list(IsolationCheck.objects.all())
    now = timezone.now()
    for row in rows:
        judge(row, Isolation.ISOLATED, at=now - timedelta(hours=1))
    judge(rows[0], Isolation.LEAK, at=now)
    names, lines = matrix(IsolationCheck.objects.order_by("-pk"))
    assert names == ["acme", "bert"]
    cells = {(one, other): cell for one, line in lines for other, cell in zip(names, line, strict=True)}
    assert cells["acme", "acme"] is None
    assert cells[rows[0].sender_tenant, rows[0].target_tenant].worst.word == "LEAK"
    assert cells[rows[0].target_tenant, rows[0].sender_tenant].worst.word == "isolated"
    shown = page(as_operator, "isolation")
    assert "1 leak" in shown
    assert (
        "LEAK" not in page(as_operator, "isolation", verdict="ISOLATED").split("Newest checks")[1].split("<tbody>")[1]
    )


def test_only_the_newest_check_of_a_pair_counts(site, as_operator):  # noqa: F811
    row = IsolationCheck.objects.first()
    judge(row, Isolation.LEAK)
    again = IsolationCheck.objects.create(
        subnet=row.subnet, plane=row.plane, cause="NOW", asked_at=timezone.now(), sender=row.sender, target=row.target,
        sender_guid=row.sender_guid, target_guid=row.target_guid, sender_tenant=row.sender_tenant,
        target_tenant=row.target_tenant,
    )  # fmt: skip
    judge(again, Isolation.ISOLATED)
    _, lines = matrix(IsolationCheck.objects.filter(state="DONE").order_by("-pk"))
    assert [cell.words for _, line in lines for cell in line if cell] == ["1 isolated"]


def test_a_check_shows_its_evidence_and_what_it_does_not_prove(site, as_operator):  # noqa: F811
    row = judge(IsolationCheck.objects.first(), Isolation.LEAK, "The SA gives a path between the two.")
    shown = page(as_operator, "isolation_check", row.public_id)
    for words in (
        "The SA gives a path",
        "view only",
        "half of the proof",
        "P_Key <code>0xffff</code>",
        "timeout",
        "m1",
    ):
        assert words in shown
    assert reverse("console:rollout", args=[row.rollout.public_id]) in shown
    IsolationCheck.objects.filter(pk=row.pk).update(
        plane="DATA", evidence={"attempt": TRIED, "expected_s": [0.13, 2.2]}
    )
    shown = page(as_operator, "isolation_check", row.public_id)
    for words in ("status 12 after 0.210 s", "in RTS", "untouched", "rose by 2", "0x8010 at 2", "IPoIB"):
        assert words in shown


def test_a_check_that_waits_or_has_no_evidence_has_a_page_too(site, as_operator):  # noqa: F811
    row = IsolationCheck.objects.first()
    assert "Not over yet" in page(as_operator, "isolation_check", row.public_id)
    judge(row, Isolation.INCONCLUSIVE, "No manager host could ask the SA.", evidence={"failures": ["down"]})
    assert "No manager host could ask the SA" in page(as_operator, "isolation_check", row.public_id)


@pytest.mark.parametrize("name", ["console:board", "console:rollouts", "console:audit", "probes:overview"])
def test_every_page_says_that_there_is_a_leak_until_it_is_acknowledged(site, as_operator, name):  # noqa: F811
    assert "leak-banner" not in as_operator.get(reverse(name)).content.decode()
    row = judge(IsolationCheck.objects.first(), Isolation.LEAK)
    shown = as_operator.get(reverse(name)).content.decode()
    assert "leak-banner" in shown
    assert reverse("probes:isolation_check", args=[row.public_id]) in shown
    incident = Incident.objects.get()
    listed = page(as_operator, "incidents")
    assert reverse("probes:acknowledge", args=[incident.public_id]) in listed
    as_operator.post(reverse("probes:acknowledge", args=[incident.public_id]), {"note": "An edited file"})
    assert "leak-banner" not in as_operator.get(reverse(name)).content.decode()
    assert "An edited file" in page(as_operator, "incidents", show="all")


def test_the_page_around_a_rollout_lists_its_checks(site, as_operator):  # noqa: F811
    row = judge(IsolationCheck.objects.first(), Isolation.LEAK)
    shown = page(as_operator, "around_rollout", site.rollout.public_id)
    assert reverse("probes:isolation_check", args=[row.public_id]) in shown


def test_check_now_is_an_operators(site, as_operator, nudged):  # noqa: F811
    count = IsolationCheck.objects.count()
    as_operator.post(reverse("probes:isolation_now"))
    assert IsolationCheck.objects.count() > count
    assert IsolationCheck.objects.latest("pk").asked_by == "Olga"


def test_strangers_see_nothing_and_auditors_may_only_look(site, client, django_user_model):  # noqa: F811
    row = judge(IsolationCheck.objects.first(), Isolation.LEAK)
    addresses = [reverse("probes:isolation"), reverse("probes:isolation_check", args=[row.public_id])]
    tenant = django_user_model.objects.create(username="tina", role="TENANT")
    client.force_login(tenant)
    for address in addresses:
        assert client.get(address).status_code in (403, 404)
    client.force_login(django_user_model.objects.create(username="anna", role="AUDITOR"))
    for address in addresses:
        assert client.get(address).status_code == 200
    assert "Check now" not in client.get(addresses[0]).content.decode()
    assert client.post(reverse("probes:isolation_now")).status_code in (403, 404)


def test_the_pages_ask_the_same_whatever_the_number_of_checks(site, as_operator, django_assert_max_num_queries):  # noqa: F811
    for row in IsolationCheck.objects.all():
        judge(row, Isolation.ISOLATED)
    with django_assert_max_num_queries(12):
        page(as_operator, "isolation")
