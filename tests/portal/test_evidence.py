"""The evidence page: every fact against the rows it comes from, what is unknown or stale, and nothing of others."""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit import follow
from audit.canonical import plain
from audit.models import Event
from audit.values import SYSTEM
from deploy.models import Observation, Rollout, TableChanges
from inventory.models import Port, Server
from partitions.models import Membership, Partition
from people.models import Tenant
from portal.evidence import checks
from portal.evidence.contents import gather
from portal.evidence.history import parts_of
from portal.evidence.shown import shown
from portal.models import RolloutPart
from probes import operations
from probes.models import IsolationCheck
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings
from tests.portal.test_servers_page import kept
from tests.probes.site import Probed, add_host, lost, ok


def facts(portal, *, now=None, who="max"):
    return plain(gather(portal.seats[who], now=now or timezone.now()))


def ports(found):
    return {port["guid"]: port for server in found["servers"] for port in server["ports"]}


def check(portal, sender, target, verdict, *, ago=timedelta(0), plane="CONTROL", tenants=("acme", "bert")):
    guids = [str(Port.objects.filter(hca__server=one).order_by("guid").first().guid) for one in (sender, target)]
    at = timezone.now() - ago
    return IsolationCheck.objects.create(
        subnet=portal.provider.subnet, plane=plane, cause="SCHEDULE", state="DONE", asked_at=at, finished_at=at,
        sender=sender, target=target, sender_guid=guids[0], target_guid=guids[1], sender_tenant=tenants[0],
        target_tenant=tenants[1], verdict=verdict,
    )  # fmt: skip


def test_partitions_ports_keys_and_indexes_are_those_of_the_rows(portal, shared):
    look = portal.provider.observe()
    found = facts(portal)
    own = {row.public_id: row for row in Partition.objects.filter(tenant=portal.acme)}
    assert {one["id"] for one in found["partitions"]} == {*own, portal.site.storage.public_id}
    by_name = {one["name"]: one for one in found["partitions"]}
    assert (by_name["training"]["pkey"], by_name["training"]["owner"]) == ("0x2c41", "tenant")
    assert (by_name["training"]["servers"], by_name["training"]["ports"]) == (2, 4)
    assert (by_name["storage"]["owner"], by_name["storage"]["created_at"]) == ("provider", "")
    rows = Port.objects.filter(hca__server__in=portal.provider.servers[:3])
    assert {str(row.guid) for row in rows} == set(ports(found))
    for row in rows:
        told = ports(found)[str(row.guid)]
        held = {(key["partition"], key["pkey"], key["membership"]) for key in told["keys"]}
        memberships = Membership.objects.filter(port=row).select_related("partition")
        assert held == {(one.partition.public_id, f"{one.partition.pkey:#06x}", one.kind) for one in memberships}
        assert (told["device"], told["state"], told["default"]) == (row.hca.device, "as it should be", "limited")
        assert (told["unexpected_keys"], told["read_at"]) == (0, plain(look.read_at))
    first = ports(found)[str(rows.order_by("guid").first().guid)]
    assert {key["name"]: key["index"] for key in first["keys"]} == {"storage": 1, "training": 2}
    assert found["look"] == {"read_at": plain(look.read_at), "age_s": 0, "is_stale": False, "because": ""}


def test_what_was_never_read_is_unknown_and_never_good(portal, client):
    Observation.objects.update(state="FAILED")
    found = facts(portal)
    assert found["look"] == {"read_at": "unknown", "age_s": "unknown", "is_stale": True, "because": "never read"}
    for port in ports(found).values():
        assert (port["read_at"], port["default"], port["unexpected_keys"]) == ("unknown",) * 3
        assert {key["index"] for key in port["keys"]} == {"unknown"}
        assert {key["index_known_since"] for key in port["keys"]} == {"unknown"}
    assert all("good" not in port["lamp"].colour for one in shown(found)["servers"] for port in one["ports"])
    page = client.get(portal.address("evidence")).content.decode()
    assert "The fabric was not read yet" in page
    assert "index unknown" in page
    assert "lamp-good" not in page.partition("facts-ports")[2].partition("facts-isolation")[0]


def test_an_old_look_is_said_to_be_old_with_its_age(portal, client):
    portal.provider.observe(read_at=timezone.now() - timedelta(days=3))
    Observation.objects.exclude(pk=Observation.objects.latest("pk").pk).update(state="FAILED")
    found = facts(portal)
    assert (found["look"]["is_stale"], found["look"]["because"]) == (True, "old")
    assert found["look"]["age_s"] >= 3 * 86_400
    page = client.get(portal.address("evidence")).content.decode()
    assert "The last reading is old" in page
    assert "3 days before this was made" in page
    assert "was as it should be" in page
    assert "lamp-good" not in page.partition("facts-ports")[2].partition("facts-isolation")[0]


def test_a_change_after_the_look_makes_it_stale(portal):
    portal.provider.observe(read_at=timezone.now() - timedelta(minutes=5))
    portal.provider.settled_move(portal.provider.servers[0], portal.site.training, portal.site.inference)
    Observation.objects.filter(pk__gt=Observation.objects.order_by("-pk")[1].pk).update(state="FAILED")
    assert facts(portal)["look"]["because"] == "changed since"
    portal.provider.observe()
    assert facts(portal)["look"]["because"] == ""


def test_a_port_that_differs_or_is_silent_says_so_and_names_no_key_of_others(portal):
    guids = sorted(str(port.guid) for port in Port.objects.filter(hca__server__in=portal.provider.servers[:3]))
    portal.provider.observe(extra={guids[0]: 0x8000 | portal.site.research.pkey}, unread=[guids[1]])
    found = facts(portal)
    wrong, silent = ports(found)[guids[0]], ports(found)[guids[1]]
    assert (wrong["state"], wrong["unexpected_keys"]) == ("not as it should be", 1)
    assert (silent["state"], silent["read_at"], silent["default"]) == ("did not answer", "unknown", "unknown")
    assert {key["index"] for key in silent["keys"]} == {"unknown"}
    assert "3d02" not in json.dumps(found)


def test_how_long_an_index_has_stood_is_told_where_it_is_known(portal):
    first = kept(portal.provider.observe())
    keys = [key for port in ports(facts(portal)).values() for key in port["keys"]]
    assert {key["index_known_since"] for key in keys} == {plain(first.read_at)}
    assert {key["index_changed_at"] for key in keys} == {""}
    # A port that was silent for a while may have held anything meanwhile, and one that is silent now is unknown.
    gap, silent = sorted(ports(facts(portal)))[:2]
    kept(portal.provider.observe(unread=[gap, silent]))
    last = kept(portal.provider.observe(unread=[silent]))
    now = {guid: {key["index_known_since"] for key in port["keys"]} for guid, port in ports(facts(portal)).items()}
    assert now.pop(gap) == {plain(last.read_at)}
    assert now.pop(silent) == {"unknown"}
    assert set().union(*now.values()) == {plain(first.read_at)}
    TableChanges.objects.all().delete()
    assert {key["index_known_since"] for port in ports(facts(portal)).values() for key in port["keys"]} == {"unknown"}


def test_a_servers_verdict_is_the_worst_of_the_newest_on_each_port(portal):
    own, other = portal.provider.servers[0], portal.provider.servers[3:6]
    check(portal, own, other[0], "LEAK", ago=timedelta(days=2))
    check(portal, own, other[0], "ISOLATED", ago=timedelta(days=1))
    check(portal, other[1], own, "INCONCLUSIVE", ago=timedelta(days=1), tenants=("", "acme"))
    check(portal, other[0], own, "ISOLATED", tenants=("bert", "acme"))
    told = {one["name"]: one for one in facts(portal)["isolation"]}
    yesterday = f"{timezone.now() - timedelta(days=1):%Y-%m-%d}"
    assert told["srv-001"]["control"] == {"verdict": "INCONCLUSIVE", "day": yesterday}
    assert told["srv-001"]["data"] == {"verdict": "unknown", "day": "unknown"}
    assert told["srv-002"]["control"] == {"verdict": "unknown", "day": "unknown"}
    check(portal, own, other[2], "LEAK", ago=timedelta(hours=1), plane="DATA", tenants=("acme", ""))
    told = {one["name"]: one for one in facts(portal)["isolation"]}
    assert told["srv-001"]["data"]["verdict"] == "LEAK"
    assert "srv-004" not in json.dumps(facts(portal))


@pytest.mark.parametrize("how", ["a former tenant's", "own by now", "too old"])
def test_verdicts_of_other_times_do_not_count(portal, how):
    own, other = portal.provider.servers[0], portal.provider.servers[3]
    if how == "own by now":
        other = portal.provider.servers[1]
    tenants = ("bert", "carl") if how == "a former tenant's" else ("acme", "bert")
    check(portal, own, other, "LEAK", ago=timedelta(days=31 if how == "too old" else 1), tenants=tenants)
    assert {one["control"]["verdict"] for one in facts(portal)["isolation"]} == {"unknown"}


def test_probes_are_the_newest_of_each_pair_the_bad_first(portal):
    hosts = [add_host(server, portal.provider) for server in portal.provider.servers[:2]]
    operations.set_consent(tenant=portal.acme, is_given=True, actor=SYSTEM)
    scope = operations.scope_of_partition(partition=portal.site.training, actor=SYSTEM)
    settings = ScopeSettings(is_enabled=True, profiles=("link",), interval_s=300, budget=4, mode=LoadMode.LOADED)
    scope = operations.change_settings(scope=scope, settings=settings, actor=SYSTEM)
    probed = Probed(portal.provider, portal.site.training, scope, hosts)
    probed.run(ok())
    probed.run(lost(), sender=1, target=0)
    bad, good = facts(portal)["probes"]["pairs"]
    assert (bad["sender"], bad["target"], bad["gbps"], bad["outcome"]) == ("srv-002", "srv-001", "unknown", "PEER_LOST")
    assert (good["sender"], good["target"], good["outcome"]) == ("srv-001", "srv-002", "OK")
    assert good["gbps"] > 0
    Membership.objects.filter(port__hca__server=portal.provider.servers[1]).delete()  # it is nobody's, or another's
    assert facts(portal)["probes"] == {"pairs": [], "left_out": 0}


def test_rollouts_are_those_that_changed_the_tenants_own_with_the_hashes_of_their_events(portal):
    before = facts(portal)["rollouts"]
    assert [len(one["changes"]) for one in before] == [6]  # three servers of two ports
    portal.provider.settled_move(portal.provider.servers[4], None, portal.site.research)  # Bert's alone
    assert facts(portal)["rollouts"] == before
    portal.provider.settled_move(portal.provider.servers[0], portal.site.training, portal.site.inference)
    newest = facts(portal)["rollouts"][0]
    rollout = Rollout.objects.latest("pk")
    guids = sorted(str(port.guid) for port in Port.objects.filter(hca__server=portal.provider.servers[0]))
    changes = {(one["guid"], one["name"], one["before"], one["after"]) for one in newest["changes"]}
    assert changes == {(guid, "training", "full", None) for guid in guids} | {
        (guid, "inference", None, "full") for guid in guids
    }
    assert (newest["by"], newest["state"]) == ("the operator", "proven")
    assert newest["begun_at"] == plain(rollout.requested_at)
    events = Event.objects.filter(rollout_key=rollout.public_id).order_by("number")
    assert [event["hash"] for event in newest["events"]] == [event.hash for event in events]
    assert [event["action"] for event in newest["events"]] == ["deploy:rollout:start", "deploy:rollout:proven"]
    said = json.dumps(newest)
    assert not [word for word in ("Olga", rollout.public_id, rollout.revision.public_id, "revision") if word in said]


def test_a_rollout_of_ones_own_people_names_them(portal):
    Rollout.objects.update(started_by_key=portal.seats["anna"].person.public_id, started_by_name="somebody")
    assert facts(portal)["rollouts"][0]["by"] == "Anna"


def test_a_key_that_was_anothers_before_is_told_to_each_for_its_own_time():
    def table(tenant, *members):
        return {"partitions": [{"pkey": "0x0101", "tenant": tenant, "members": [[guid, "full"] for guid in members]}]}

    assert parts_of(table("bert", "g1"), table("acme", "g2")) == {
        "bert": [{"pkey": "0x0101", "guid": "g1", "before": "full", "after": None}],
        "acme": [{"pkey": "0x0101", "guid": "g2", "before": None, "after": "full"}],
    }
    shared = {"pkey": "0x0200", "tenant": None, "members": [["g1", "limited"], ["g9", "full"]]}
    before = table("acme", "g1")
    after = {"partitions": [*before["partitions"], shared]}
    change = {"pkey": "0x0200", "guid": "g1", "before": None, "after": "limited"}
    assert parts_of(before, after) == {"acme": [change]}
    assert parts_of(before, before) == {}


def test_the_index_of_rollouts_is_whole_for_those_of_before_it(portal):
    found = facts(portal)["rollouts"]
    RolloutPart.objects.all().delete()
    follow.FollowerCursor.objects.filter(name="portal.evidence").delete()
    follow.tick()
    assert facts(portal)["rollouts"] == found
    assert RolloutPart.objects.filter(tenant=portal.provider.bert).count() == 1


def test_a_partition_is_told_under_the_name_that_its_tenant_gave_it(portal, client):
    Partition.objects.filter(pk=portal.site.training.pk).update(name="acme.training-2", title="training")
    assert "acme.training" not in json.dumps(facts(portal))
    assert "acme.training" not in client.get(portal.address("evidence")).content.decode()


def test_nothing_of_others_stands_in_it(portal, shared, client):
    portal.provider.observe()
    check(portal, portal.provider.servers[0], portal.provider.servers[3], "ISOLATED")
    page = client.get(portal.address("evidence")).content.decode()
    bert = portal.provider.bert
    for word in ("srv-004", "Bert", "research", "0x3d02", bert.public_id, "Olga", "revision 2", "m1"):
        assert word not in page, word


def test_a_tenant_with_nothing_reads_so(portal, client):
    Membership.objects.all().delete()
    RolloutPart.objects.all().delete()
    Partition.objects.update(tenant=None)
    page = client.get(portal.address("evidence")).content.decode()
    for sentence in ("No partition yet", "No server yet", "No rollout has changed them yet", "Nothing is signed yet"):
        assert sentence in page


def test_the_page_costs_the_same_whatever_there_is(portal, client, django_assert_num_queries):
    kept(portal.provider.observe())
    client.get(portal.address("evidence"))
    with CaptureQueriesContext(connection) as few:
        client.get(portal.address("evidence"))
    for number in range(7, 12):
        server = portal.provider.server(number)
        portal.provider.settled_move(server, None, portal.site.training)
        check(portal, server, portal.provider.servers[3], "ISOLATED")
    kept(portal.provider.observe())
    with django_assert_num_queries(len(few)):
        page = client.get(portal.address("evidence")).content.decode()
    assert "srv-011" in page
    assert len(few) < 40


def test_checks_of_nobody_ask_nothing(portal, django_assert_num_queries):
    assert checks.isolation(portal.acme, [], now=timezone.now()) == []
    assert Server.objects.exists()
    assert Tenant.objects.count() == 2
