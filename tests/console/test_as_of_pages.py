"""As of then as page and JSON, and the way back: what it shows, what it stages, what it refuses and why."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from deploy.models import Revision, Rollout
from inventory.models import Port, Subnet
from partitions import operations
from partitions.models import StagedChange
from tests.console.test_review_pages import keep, read


@pytest.fixture
def then(site):
    """The moment after the first assignment; since then srv-001 has moved and srv-002 has left."""
    provider = site.provider
    keep(provider.observe())
    at = timezone.now()
    provider.settled_move(provider.servers[0], site.training, site.inference)
    provider.settled_move(provider.servers[1], site.training, None)
    keep(provider.observe())
    return at


def address(name: str, at) -> str:
    return f"{reverse(f'console:{name}')}?at={at:%Y-%m-%dT%H:%M:%S.%f}"


def test_the_page_shows_then_and_now(site, auditor, then):
    text = auditor.get(address("as_of", then)).content.decode()
    assert "revision 2, since" in text
    assert "as in the trail" in text
    assert "srv-001" in text
    port = Port.objects.filter(hca__server=site.provider.servers[1]).first()
    assert port.guid in text
    assert "0: 0x7fff, 1: 0xac41" in text
    assert "changed in between" in text
    assert "6 memberships changed; 4 ports read with another table" in text
    assert "Put the fabric back" not in text  # an auditor changes nothing
    found = auditor.get(address("as_of", then) + "&q=srv-003").content.decode()
    assert "0x9b07" in found
    assert "the same" in found


def test_json_says_the_same(site, auditor, then):
    data = auditor.get(address("as_of_data", then)).json()
    assert data["revision"]["number"] == 2
    assert data["revision"]["vouched"] is True
    by_name = {one["name"]: one for one in data["partitions"]}
    assert by_name["training"]["pkey"] == "0x2c41"
    assert by_name["training"]["tenant"] == "Acme"
    assert len(by_name["training"]["members"]) == 4
    port = Port.objects.filter(hca__server=site.provider.servers[0]).first()
    (row,) = [row for row in data["ports"] if row["guid"] == port.guid]
    assert row["pkeys"] == {"0": "0x7fff", "1": "0xac41"}
    assert row["later"] == {"0": "0x7fff", "1": "0x9b07"}
    assert row["server"] == "srv-001"
    assert {"pkey": "0x2c41", "guid": port.guid, "then": "full", "now": None} in data["difference"]["members"]


@pytest.mark.parametrize("at", ["", "yesterday", "2999-01-01"])
def test_a_moment_that_is_none(site, auditor, at):
    page = auditor.get(f"/audit/as-of/?at={at}")
    assert page.status_code == 200
    assert auditor.get(f"/audit/as-of.json?at={at}").status_code == 400
    if at:
        assert 'role="alert"' in page.content.decode()
    assert "When it changed" in page.content.decode()


def test_before_anything_and_without_a_look(site, auditor):
    text = auditor.get(address("as_of", timezone.now() - timedelta(days=9))).content.decode()
    assert "no revision of FabricUI yet" in text
    assert "No partition yet" in text
    assert "Nobody had read the fabric by then." in text
    assert auditor.get(address("as_of_data", timezone.now() - timedelta(days=9))).json()["revision"] is None


def test_no_subnet_yet(ada, client_of):
    assert not Subnet.objects.exists()
    for name in ("as_of", "port_history", "pkey_history"):
        arguments = [] if name == "as_of" else ["0x2c41"]
        assert client_of(ada).get(reverse(f"console:{name}", args=arguments)).status_code == 200
    assert client_of(ada).get("/audit/as-of.json?at=2026-01-01").status_code == 404


class TestWayBack:
    def test_it_is_shown_first_and_then_staged(self, site, operator, then):
        page = operator.get(address("as_of_back", then)).content.decode()
        assert "srv-001" in page
        assert "srv-002" in page
        assert "srv-003" not in page
        assert not StagedChange.objects.exists()
        answer = operator.post(
            reverse("console:as_of_stage"), {"at": then.isoformat(), "reason": "ticket 9"}, follow=True
        )
        assert answer.redirect_chain[0][0] == reverse("console:plan")
        assert "Staged: 2 servers" in answer.content.decode()
        assert {str(row.partition) for row in StagedChange.objects.all()} == {"training", "inference"}
        assert Event.objects.filter(action="partitions:subnet:stage-as-of").count() == 1

    def test_what_stays_is_explained(self, site, operator, then):
        operations.stage_move(
            server=site.provider.servers[0], source=site.inference, target=None, actor=site.provider.otto
        )
        page = operator.get(address("as_of_back", then)).content.decode()
        assert "Otto has already staged srv-001" in page
        assert "Stays as it is" in page

    def test_between_tenants_says_two_revisions(self, site, operator, then):
        server = site.provider.servers[1]
        operations.mark_clean(server=server, actor=site.provider.olga, reason="erased")
        site.provider.settled_move(server, None, site.research)
        assert "in two revisions" in operator.get(address("as_of_back", then)).content.decode()

    @pytest.mark.parametrize(
        ("sent", "told"),
        [
            ({"reason": " "}, "Say why the fabric goes back"),
            ({"at": "x", "reason": "r"}, "Choose a moment first"),
            ({"at": "2001-01-01", "reason": "r"}, "No revision was current"),
        ],
    )
    def test_what_is_refused_is_told_and_leaves_nothing(self, site, operator, then, sent, told):
        fields = {"at": then.isoformat()} | sent
        answer = operator.post(reverse("console:as_of_stage"), fields, follow=True)
        assert answer.status_code == 200
        assert told in answer.content.decode()
        assert not StagedChange.objects.exists()

    def test_without_a_moment_it_asks_for_one(self, site, operator):
        assert "Choose a moment first" in operator.get(reverse("console:as_of_back"), follow=True).content.decode()

    def test_nobody_else_is_let_in(self, site, auditor, charlie, client_of, then):
        assert auditor.get(address("as_of_back", then)).status_code == 404
        assert client_of(charlie).get(address("as_of_back", then)).status_code == 404


def test_the_event_page_leads_to_its_moment(site, auditor):
    event = Event.objects.get(action="deploy:rollout:proven")
    text = read(auditor, "audit_event", event.number)
    assert "the fabric at that moment" in text
    found = auditor.get(address("as_of", event.at)).content.decode()
    assert f"revision {Revision.objects.latest('number').number}, since" in found


def test_looking_at_evidence_is_recorded_once_a_minute(site, auditor, ada, then):
    rollout = Rollout.objects.latest("pk")
    port = Port.objects.first().guid
    pages = [
        address("as_of", then),
        reverse("console:rollout_proof", args=[rollout.public_id]),
        reverse("console:port_history", args=[port]),
        reverse("console:pkey_history", args=["0x2c41"]),
    ]
    for page in [*pages, *pages]:
        assert auditor.get(page).status_code == 200
    reads = Event.objects.filter(action="audit:evidence:read", actor_key=ada.public_id).order_by("number")
    assert [(event.subject_kind, event.after["what"]) for event in reads] == [
        ("subnet", "the fabric as of then"), ("rollout", "from drag to proof"),
        ("port", "its history"), ("pkey", "its history"),
    ]  # fmt: skip
    assert reads[1].rollout_key == rollout.public_id
    for page in pages[1:3]:
        assert "looked at the evidence" not in auditor.get(page).content.decode()  # it touched nothing
