"""The four lamps of the cards on the board’s page, from what stands in the rows."""

from datetime import timedelta
from types import SimpleNamespace

from django.utils import timezone

from audit.values import SYSTEM
from console import board_facts
from deploy.models import Drift, Rollout
from inventory.models import Port
from probes import operations as probes
from probes.models import Incident, ProbePair
from tests.console.on_board import card, check, drift, lamps_of, watch
from tests.probes.site import add_host

HTMX = {"HTTP_HX_REQUEST": "true"}


def test_four_lamps_of_a_server_that_was_rolled_out(site, operator):
    page = operator.get("/board/").content.decode()
    said = lamps_of(page, site.provider.servers[0], site.training.public_id)
    assert said == "Desired: as it is. Placed: on both hosts. Proven: read from the fabric. Probed: not probed."
    assert "d-good p-good r-good b-none" in card(page, site.provider.servers[0], site.training.public_id)


def test_four_lamps_of_a_staged_server_say_not_yet(site, operator):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    page = operator.get("/board/").content.decode()
    assert "d-staged p-ahead r-ahead b-ahead" in card(page, site.provider.servers[0], site.inference.public_id)
    assert "+1 joining" in page
    assert "−1 leaving" in page


def test_a_fabric_that_lost_its_isolation_proves_no_port(site, operator):
    """The watch judges no single table then: no card, port or partition may go on to say that it was read and right."""
    row = drift(site, "0x0")
    Drift.objects.filter(pk=row.pk).update(kind="ISOLATION_LOST", facts={}, opened_at=None)
    watch(site, covered_at=timezone.now())
    tag = operator.get("/board/", **HTMX).headers["ETag"]
    address, place = site.provider.servers[0], site.training.public_id
    assert "Proven: isolation is in doubt" in lamps_of(operator.get("/board/").content.decode(), address, place)
    Drift.objects.filter(pk=row.pk).update(opened_at=timezone.now())
    assert operator.get("/board/", **HTMX).headers["ETag"] != tag
    page = operator.get("/board/").content.decode()
    assert "Proven: isolation lost." in lamps_of(page, address, place)
    assert "r-bad" in card(page, address, place)
    for other in (f"/servers/{address.public_id}/", f"/partitions/{place}/"):
        assert "<b>Proven</b> isolation lost" in operator.get(other).content.decode()
    Drift.objects.filter(pk=row.pk).update(closed_at=timezone.now())
    assert "r-good" in card(operator.get("/board/").content.decode(), address, place)


def test_what_was_probed_long_ago_lights_no_lamp(site, operator):
    provider, now = site.provider, timezone.now()
    sender, target = (add_host(server, provider) for server in provider.servers[:2])
    probes.set_consent(tenant=provider.acme, is_given=True, actor=SYSTEM)
    pair = ProbePair.objects.create(
        scope=probes.scope_of_partition(partition=site.training, actor=SYSTEM), sender=sender, target=target,
        profile="link", kind="RDMA", mode="LOADED", newest_at=now, outcome="OK", verdict="GOOD",
    )  # fmt: skip
    for age, lamp in ((timedelta(0), "b-good"), (timedelta(days=8), "b-none")):
        ProbePair.objects.filter(pk=pair.pk).update(newest_at=now - age)
        page = operator.get("/board/").content.decode()
        assert lamp in card(page, provider.servers[0], site.training.public_id)


def test_a_round_of_the_watch_before_the_current_revision_proves_nothing_of_it():
    at = timezone.now()

    def proven_at(*, proof, round_began, current):
        revision = SimpleNamespace(created_at=at + current)
        fence = SimpleNamespace(current=revision, current_id=2)
        watched = SimpleNamespace(covered_at=at + round_began)
        return board_facts._proven_at(
            SimpleNamespace(
                watch=watched,
                fence=fence,
                proof_finished_at=at + proof,
                proof_state=Rollout.State.PROVEN,
                proof_revision_id=1,
                proof_parent_id=0,
            )
        )

    hours = [timedelta(hours=hour) for hour in range(3)]
    assert proven_at(proof=hours[0], round_began=hours[1], current=hours[2]) is None  # adopted after the round began
    assert proven_at(proof=hours[0], round_began=hours[2], current=hours[1]) == at + hours[2]


def test_a_leak_puts_the_lamp_out_until_somebody_has_seen_it(site, operator):
    leak = check(site, "LEAK")
    now = timezone.now()
    Incident.objects.create(leak=leak, leak_of="x", rule="leak", sentence="It leaks.", opened_at=now, seen_at=now)
    page = operator.get("/board/").content.decode()
    assert "a probe failed" in card(page, site.provider.servers[0], site.training.public_id)


def test_a_port_with_other_keys_is_seen_without_a_click(site, operator):
    drift(site, str(Port.objects.filter(hca__server=site.provider.servers[0]).first().guid))
    page = operator.get("/board/").content.decode()
    assert "other keys on the fabric" in card(page, site.provider.servers[0], site.training.public_id)
    assert "r-bad" in card(page, site.provider.servers[0], site.training.public_id)
    assert "r-bad" not in card(page, site.provider.servers[1], site.training.public_id)
    assert "1 in trouble" in page
