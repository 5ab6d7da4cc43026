"""The commands against the real API: what they do, print and end with."""

import json
import urllib.error

import pytest
from django.utils import timezone

from audit.models import Event
from deploy.models import Observation, Rollout
from fabricui.client.door import Door
from partitions.models import Partition, StagedChange
from tests.api.callers import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(shell, operator):
    return shell.as_(operator)


def staged():
    return {
        (row.port.hca.server.hostname, row.partition.name, row.kind_from, row.kind_to)
        for row in StagedChange.objects.select_related("port__hca__server", "partition")
    }


MOVED = {("srv-001", "training", "full", None), ("srv-001", "inference", None, "full")}


def settle(site):
    """In the place of the workers: every look is answered, every rollout proven."""

    def work():
        look = site.provider.observe()
        same = {
            name: getattr(look, name) for name in ("state", "read_at", "finished_at", "tables", "managers", "census")
        }
        Observation.objects.filter(state="REQUESTED").update(**same)
        for rollout in Rollout.objects.filter(state="QUEUED"):
            site.provider.settle(rollout)

    return work


def test_servers_are_listed_filtered_and_shown(olga, site):
    code, out, _ = olga("servers")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["HOST", *[f"srv-00{n}" for n in range(1, 7)], "6"]
    assert json.loads(olga("servers", "--json", "--contains", "002")[1])["servers"][0]["hostname"] == "srv-002"
    names = [one["hostname"] for one in json.loads(olga("servers", "--json", "--partition", "Training")[1])["servers"]]
    assert names == ["srv-001", "srv-002"]
    shown = json.loads(olga("servers", "srv-001", "--json")[1])
    assert set(shown) == {"server", "ports", "memberships", "staged"}
    assert {one["partition_name"] for one in shown["memberships"]} == {"training"}
    assert "training (full)" in olga("servers", site.provider.servers[0].public_id)[1]


def test_pages_are_followed_to_the_end(olga, monkeypatch):
    monkeypatch.setattr("fabricui.client.door.PAGE", 4)
    assert len(json.loads(olga("servers", "--json")[1])["servers"]) == 6
    assert len(json.loads(olga("servers", "--json", "--most", "5")[1])["servers"]) == 5
    asked = [request.full_url for request in olga.transport.asked]
    assert sum("cursor=" in url for url in asked) == 2


def test_a_move_is_staged_from_where_the_server_is(olga):
    code, out, _ = olga("move", "srv-001", "--to", "inference", "--reason", "ticket 4711")
    assert (code, staged()) == (0, MOVED)
    assert out.splitlines()[-1] == "Staged: 1 server, 2 ports. Nothing has reached the fabric yet."
    assert set(StagedChange.objects.values_list("reason", flat=True)) == {"ticket 4711"}
    code, out, _ = olga("move", "srv-001", "--to", "training")
    assert (code, staged()) == (0, set())
    assert "undone" in out


def test_a_move_takes_all_servers_or_none(olga):
    code, _, err = olga("move", "srv-001", "srv-004", "--to", "inference")
    assert code == 0, err
    assert ("srv-004", "inference", None, "full") in staged()
    StagedChange.objects.all().delete()
    Partition.objects.filter(name="research").update(retired_at=timezone.now())
    code, _, err = olga("move", "srv-001", "srv-002", "--to", "research")
    assert (code, staged()) == (6, set())
    assert "There are: inference, storage, training." in err


def test_servers_join_as_they_are_told(olga):
    assert olga("move", "srv-005", "--to", "training", "--limited")[0] == 0
    assert staged() == {("srv-005", "training", None, "limited")}
    assert olga("move", "srv-001", "--to", "training", "--limited")[0] == 0
    assert ("srv-001", "training", "full", "limited") in staged()
    assert olga("move", "srv-002", "--to", "storage", "--add")[0] == 0
    assert ("srv-002", "storage", None, "limited") in staged()
    assert olga("move", "srv-003", "--out")[0] == 0
    assert ("srv-003", "inference", "full", None) in staged()


def test_which_partition_it_leaves_is_asked_where_it_is_a_choice(olga, site):
    assert olga("move", "srv-001", "--to", "inference", "--add")[0] == 0
    code, _, err = olga("move", "srv-001", "--out")
    assert code == 2
    assert "srv-001 is in inference, training." in err
    assert "--from" in err
    assert olga("move", "srv-001", "--out", "--from", "inference")[0] == 0
    assert staged() == set()


def test_a_plan_looks_at_the_fabric_and_is_told(olga, site):
    olga("move", "srv-001", "--to", "inference")
    olga.while_sleeping = settle(site)
    code, out, err = olga("plan")
    assert code == 0, err
    assert "Looking at the fabric" in err
    assert out.startswith("srv-001 moves from training to inference: 2 ports change their P_Keys")
    assert "0xac41  1" in out
    shown = json.loads(olga("plan", "--json")[1])
    assert set(shown) == {"plan", "index_changes"}
    assert {one["entry"] for one in shown["index_changes"]} == {"0xac41", "0x9b07"}
    gone = next(one for one in shown["index_changes"] if one["entry"] == "0xac41")
    assert (gone["before"], gone["after"]) == ([1], None)
    assert f"digest    {shown['plan']['digest']}" in out


def test_a_plan_without_a_look_says_so(olga):
    olga("move", "srv-001", "--to", "inference")
    code, out, _ = olga("plan", "--no-look")
    assert code == 0
    assert "too old for a rollout" in out
    assert "look      -" in out or "not read" in out or "INDEX" in out


def test_a_rollout_is_waited_for_until_it_is_proven(olga, site):
    olga("move", "srv-001", "--to", "inference")
    olga.while_sleeping = settle(site)
    site.provider.observe()
    code, out, err = olga("rollout", "--wait", "--reason", "ticket 4711")
    assert code == 0, err
    assert out.startswith("Rollout ")
    assert "PROVEN" in out
    assert "QUEUED" in err
    assert "\033" not in out + err
    rollout = Rollout.objects.latest("pk")
    assert (rollout.reason, rollout.started_by_name) == ("ticket 4711", "Olga (token “ci”)")
    code, out, _ = olga("status", rollout.public_id, "--json")
    assert (code, json.loads(out)["rollout"]["state"]) == (0, "PROVEN")


def test_hazards_are_accepted_by_name_or_nothing_goes_out(olga, site):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe(extra={"0x0002c90400000101": 0x2C41})  # the key that it is to leave stands there twice
    kind = "key_twice"
    for words in ((), ("--accept", "table_full")):
        code, out, err = olga("rollout", "--json", *words)
        assert code == 3
        assert json.loads(out)["error"]["code"] == "hazard_not_accepted"
        assert f"--accept {kind}" in err
    assert not Rollout.objects.filter(state="QUEUED").exists()
    assert olga("rollout", "--accept", kind)[0] == 0
    assert Rollout.objects.filter(state="QUEUED").count() == 1


def test_a_plan_that_is_another_by_now_is_not_rolled_out(olga, site):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe()
    drawn = json.loads(olga("plan", "--json")[1])["plan"]
    olga("move", "srv-002", "--to", "inference")
    code, _, err = olga("rollout", "--digest", drawn["digest"])
    assert code == 3
    assert "not the one with this digest any more" in err
    code, out, _ = olga("rollout", "--digest", drawn["digest"], "--look", drawn["look"], "--json")
    assert (code, json.loads(out)["error"]["code"]) == (3, "stale_plan")
    assert not Rollout.objects.filter(state="QUEUED").exists()


def test_a_big_plan_wants_a_reason(olga, site):
    olga("move", "srv-001", "srv-002", "--to", "inference")
    site.provider.observe()
    code, _, err = olga("rollout")
    assert code == 3
    assert "--reason" in err
    assert not Rollout.objects.filter(state="QUEUED").exists()


def cut(transport, times, *, after):
    """Have the connection cut at the start of a rollout, before or after FabricUI has done it."""
    real = transport.open
    left = [times]

    def open_(request, timeout):
        if request.get_method() == "POST" and request.full_url.endswith("/rollouts") and left[0]:
            left[0] -= 1
            if after:
                real(request, timeout)
            raise urllib.error.URLError(ConnectionResetError(104, "Connection reset by peer"))
        return real(request, timeout)

    transport.open = open_


@pytest.mark.parametrize("after", [True, False])
def test_a_cut_connection_starts_one_rollout(olga, site, after):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe()
    cut(olga.transport, 2, after=after)
    code, _, err = olga("rollout")
    assert code == 0, err
    assert Rollout.objects.filter(state="QUEUED").count() == 1
    assert "Connection reset by peer. Trying again in" in err
    assert ("was started already by the same request" in err) is after


def test_when_it_stays_cut_the_same_request_can_be_sent_again(olga, site):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe()
    cut(olga.transport, 5, after=True)
    code, _, err = olga("rollout")
    assert code == 8
    assert "Whether the rollout was started is not known." in err
    again = err.splitlines()[-1].split()
    assert [again[0], again[2], again[4]] == ["--digest", "--look", "--key"]
    code, _, err = olga("rollout", *again)
    assert code == 0, err
    assert "was started already by the same request" in err
    assert Rollout.objects.filter(state="QUEUED").count() == 1


def test_an_interrupted_wait_leaves_the_rollout_alone(olga, site):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe()

    def interrupt():
        raise KeyboardInterrupt

    olga.while_sleeping = interrupt
    code, _, err = olga("rollout", "--wait")
    rollout = Rollout.objects.get(state="QUEUED")
    assert code == 130
    assert f"The rollout goes on without this program. Ask for it: fabricui status {rollout.public_id} --wait" in err


@pytest.mark.parametrize(
    ("state", "code"),
    [("REFUSED", 3), ("CANCELLED", 4), ("RESTORED", 4), ("STUCK", 4), ("UNPROVEN", 9), ("DEGRADED", 9), ("PROVEN", 0)],
)
def test_the_exit_code_says_how_a_rollout_ended(olga, site, state, code):
    rollout = Rollout.objects.latest("pk")
    Rollout.objects.filter(pk=rollout.pk).update(state=state, cause="because")
    assert olga("status", rollout.public_id)[0] == code
    ended, _, err = olga("status", rollout.public_id, "--wait", "--within", "1") if code != 9 else (9, "", "")
    assert ended == code, err


def test_a_wait_ends_when_its_time_is_up(olga, site, monkeypatch):
    rollout = Rollout.objects.latest("pk")
    Rollout.objects.filter(pk=rollout.pk).update(state="UNPROVEN")
    times = iter(range(0, 1000, 10))
    monkeypatch.setitem(Door.__init__.__kwdefaults__, "clock", lambda: next(times))
    code, _, err = olga("status", rollout.public_id, "--wait", "--within", "30")
    assert code == 9
    assert "goes on by itself" in err


def test_a_held_subnet_is_a_conflict(olga, site):
    olga("move", "srv-001", "--to", "inference")
    site.provider.observe()
    site.provider.subnet.frozen_at = timezone.now()
    site.provider.subnet.save()
    assert olga("rollout")[0] == 7


def test_status_and_audit(olga, site):
    code, out, _ = olga("status")
    assert code == 0
    assert "lab" in out
    assert set(json.loads(olga("status", "--json")[1])) == {"subnets", "rollouts"}
    events = json.loads(olga("audit", "--json", "--action", "deploy:", "--most", "3")[1])["events"]
    assert len(events) == 3
    assert all(event["action"].startswith("deploy:") for event in events)
    assert "deploy:rollout:proven" in olga("audit", "--action", "deploy:")[1]


def test_activity(shell, tenant, operator, site):
    run = shell.as_(tenant)
    lines = json.loads(run("activity", "--json", "--what", "rollouts", "--most", "1")[1])["activity"]
    assert [line["action"] for line in lines] == ["deploy:rollout:proven"]
    code, out, _ = run("activity", "--who", "fabricui")
    assert code == 0
    assert "the rollout of your changes" in out
    assert run("activity", "--who", "nobody")[0] == 2
    assert shell.as_(operator)("activity")[0] == 6


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("servers", "nobody"), 6), (("move", "nobody", "--to", "training"), 6),
        (("move", "srv-001", "--to", "nowhere"), 6), (("status", "nothing"), 6), (("status", "../audit/events"), 6),
        (("plan", "--selection", "yours"), 6), (("plan", "--subnet", "nowhere"), 6), (("audit", "--since", "soon"), 2),
        (("rollout",), 3), (("move", "srv-001", "--to", "training"), 3),
        (("move", "srv-001", "--from", "inference", "--to", "storage"), 3),
    ],
)  # fmt: skip
def test_what_is_not_so_has_its_code_and_a_sentence(olga, site, words, code):
    site.provider.observe()
    ended, out, err = olga(*words, "--json")
    assert ended == code, err
    assert json.loads(out)["error"]["exit"] == code
    assert "fabricui: " in err
    assert "Traceback" not in err
    assert Event.objects.filter(action="deploy:rollout:start").count() == 1


@pytest.mark.parametrize("words", [
    ("servers", "--token", "fui_abcdef"), ("servers", "--token=fui_abcdef"), ("move", "srv-001"), ("move", "--to", "x"),
    ("move", "srv-001", "--to", "a", "--out"), ("move", "srv-001", "--to", "a", "--full", "--limited"), ("rol",), (),
    ("rollout", "--key", "a b"), ("rollout", "--within", "0"), ("rollout", "--acc", "x"), ("servers", "--most", "-1"),
])  # fmt: skip
def test_a_command_line_that_is_none(olga, words):
    code, out, err = olga(*words)
    assert (code, out) == (2, "")
    assert "fui_abcdef" not in err
    assert not olga.transport.asked


def test_who_may_not_is_told_so(shell, site, operator, auditor, tenant):
    assert shell.as_(None)("servers")[0] == 5
    narrow = Caller(site.provider.olga, scopes=["inventory:read", "partitions:read"], name="narrow")
    code, out, err = shell.as_(narrow)("move", "srv-001", "--to", "inference", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (5, "not_for_this_token")
    assert "fui_" not in out + err
    assert shell.as_(auditor)("move", "srv-001", "--to", "inference")[0] == 6
    assert shell.as_(auditor)("status")[0] == 0
    assert shell.as_(tenant)("servers", "srv-004")[0] == 6
    assert staged() == set()
    type(site.provider.olga).objects.filter(pk=site.provider.olga.pk).update(is_active=False)
    assert shell.as_(operator)("servers")[0] == 5
