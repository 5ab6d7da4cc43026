"""One partition's page, the forms on it, the second half of a move between tenants, and marking a server clean."""

import re

import pytest
from django.urls import reverse

from inventory.models import Port
from partitions import operations
from partitions.models import Partition, StagedChange
from tests.console.test_board_page import drift


def text(answer) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def page(browser, partition: Partition) -> str:
    return text(browser.get(reverse("console:partition", args=[partition.public_id])))


def act(browser, name: str, partition: Partition, /, **fields: str):
    return browser.post(reverse(f"console:{name}", args=[partition.public_id]), fields, follow=True)


def test_it_shows_members_by_server_and_what_is_staged(site, operator):
    provider = site.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.move(provider.servers[4], None, site.training)
    shown = page(operator, site.training)
    assert "A partition of Acme. 2 servers, 4 ports." in shown
    assert re.search(r"srv-001 2 full leaves Olga", shown)
    assert re.search(r"srv-002 2 full – Desired: as it is. .{60,200} Make limited Take out", shown)
    assert re.search(r"srv-005 2 not a member yet joins, full Olga", shown)


def test_an_auditor_sees_no_button(site, auditor):
    assert "Make limited" not in page(auditor, site.training)
    assert "Retire" not in page(auditor, site.training)


def test_an_empty_one_says_so(site, operator):
    shown = page(operator, site.storage)
    assert "Nobody is in it, so OpenSM does not know it." in shown
    assert "The provider’s, shared" in shown


def test_a_partition_of_nobody_is_not_found(site, operator):
    assert operator.get(reverse("console:partition", args=["2" * 12])).status_code == 404


def test_rename(site, operator):
    assert "training is called learning now" in text(act(operator, "partition_rename", site.training, name="learning"))
    assert "OpenSM would cut or misread it" in text(act(operator, "partition_rename", site.training, name="a b"))


def test_retire_stages_first_and_retires_when_empty(site, operator):
    shown = text(act(operator, "partition_retire", site.training, reason="contract ended"))
    assert "4 ports of 2 servers are staged out of training" in shown
    assert "Everybody is staged out of it." in shown
    site.provider.settle(site.provider.roll_out(site.provider.olga, reason="retire"))
    assert "training is retired. Its P_Key 0x2c41 cools down." in text(act(operator, "partition_retire", site.training))


def test_full_and_limited_by_a_plain_form(site, operator):
    server = site.provider.servers[0]
    fields = {"server": server.public_id, "partition": site.training.public_id, "membership": "limited"}
    answer = operator.post(reverse("console:board_membership"), fields | {"back": "partition"}, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("console:partition", args=[site.training.public_id])
    assert "srv-001 is staged as a limited member of training." in text(answer)
    assert {(row.kind_from, row.kind_to) for row in StagedChange.objects.all()} == {("full", "limited")}
    answer = operator.post(reverse("console:board_membership"), fields, headers={"accept": "application/json"})
    assert answer.status_code == 409
    assert operator.post(reverse("console:board_membership"), fields | {"membership": "both"}).status_code == 404


def test_a_server_is_added_and_taken_out_by_plain_forms(site, operator):
    fields = {"server": site.provider.servers[5].public_id, "back": site.storage.public_id}
    joins = fields | {"source": "unassigned", "target": site.storage.public_id, "keep": "1"}
    shown = text(operator.post(reverse("console:board_move"), joins, follow=True))
    assert "srv-006 2 not a member yet joins, full" in shown
    leaves = fields | {"source": site.storage.public_id, "target": "unassigned"}
    operator.post(reverse("console:board_move"), leaves)
    assert not StagedChange.objects.exists()


def test_the_form_says_what_the_pool_holds(site, operator):
    shown = text(operator.get(reverse("console:partitions")))
    assert "one of the 31996 free keys of the pool 0x0100–0x7dff is drawn at random. Of the pool 4 are in use" in shown


@pytest.fixture
def moving(site):
    site.provider.move(site.provider.servers[0], site.training, site.research)
    return site.provider.servers[0]


def test_a_move_between_tenants_shows_both_halves(site, operator, moving):
    site.provider.observe()
    shown = text(operator.get(reverse("console:plan")))
    assert "Not in this rollout: joins once it is clean" in shown
    assert re.search(r"srv-001 2 ports, Olga Acme in this plan after that research Bert", shown)
    assert "joins when clean" in text(operator.get(reverse("console:board")))


def test_the_second_half_waits_on_the_plan_until_the_server_is_marked_clean(site, operator, moving):
    provider = site.provider
    provider.settle(provider.roll_out(provider.olga))
    provider.observe()
    shown = text(operator.get(reverse("console:plan")))
    assert "waits until the server is clean" in shown
    assert "there is nothing to roll out yet" in shown
    assert "Roll out" not in shown.replace("Rollouts", "")

    clean = reverse("console:server_clean", args=[moving.public_id])
    assert "Say how srv-001 was made clean" in text(operator.post(clean, {"reason": ""}, follow=True))
    shown = text(operator.post(clean, {"reason": "erased"}, follow=True))
    assert "srv-001 is clean: any tenant may take it from now on." in shown
    assert "of Acme, " in shown
    assert "Roll out" in text(operator.get(reverse("console:plan"))).replace("Rollouts", "")


def test_a_server_page_offers_cleaning_only_once_it_has_left(site, operator, moving):
    address = reverse("console:server", args=[moving.public_id])
    assert "Last with Acme" not in text(operator.get(address))
    site.provider.settle(site.provider.roll_out(site.provider.olga))
    assert "Last with Acme" in text(operator.get(address))


def test_a_tenants_server_is_offered_no_full_membership_in_what_is_shared(site, operator):
    server = site.provider.servers[0]
    operations.stage_add(server=server, target=site.storage, actor=site.provider.olga)
    shown = text(operator.get(reverse("console:server", args=[server.public_id])))
    assert "shared: limited only" in shown


def test_ports_that_no_server_has_are_shown_and_leave_with_the_rest(site, operator):
    guid = Port.objects.filter(hca__server=site.provider.servers[0]).first().guid
    site.provider.servers[0].hcas.all().delete()
    shown = page(operator, site.training)
    assert "Ports without a server" in shown
    assert str(guid) in shown


def test_a_big_plan_is_rolled_out_with_a_reason_only(site, operator):
    provider = site.provider
    operations.retire_partition(partition=site.training, actor=provider.olga)
    provider.observe()
    drawn = provider.plan(provider.olga)
    fields = {"selection": "mine", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}
    answer = operator.post(reverse("console:plan"), fields)
    assert answer.status_code == 422
    assert "loses all its 4 ports" in text(answer)
    assert operator.post(reverse("console:plan"), fields | {"reason": "contract ended"}).status_code == 302


def test_a_stale_plan_says_who_did_what(site, operator):
    provider = site.provider
    provider.move(provider.servers[4], None, site.training)
    provider.observe()
    shown = operator.get(reverse("console:plan")).content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', shown.split('id="roll-out"')[1]))
    provider.move(provider.servers[5], None, site.training)
    answer = operator.post(reverse("console:plan"), fields)
    assert answer.status_code == 409
    assert "Olga · staged a change of · srv-006 · " in text(answer)


def test_four_lamps_of_each_member_of_the_partition_and_of_each_port(site, operator, django_assert_max_num_queries):
    server = site.provider.servers[0]
    guid = str(Port.objects.filter(hca__server=server).order_by("guid").first().guid)
    drift(site, guid)
    with django_assert_max_num_queries(17):
        shown = page(operator, site.training)
    assert "Proven other keys on the fabric: 1 of 2" in shown
    assert shown.count("Proven: other keys on the fabric.") == 1  # the row of the first, not of its neighbour
    ports = text(operator.get(reverse("console:server", args=[server.public_id])))
    assert ports.count("Proven other keys on the fabric") == 1  # one of its two ports
    assert ports.count("Proven read from the fabric") == 1
    assert ports.count("Probed not probed") == 2
    site.provider.move(server, site.training, site.inference)
    assert "Desired a change of Olga waits" in text(operator.get(reverse("console:server", args=[server.public_id])))
