"""What an operator's program does: stage, plan, roll out, look at what became of it."""

import pytest
from django.utils import timezone

from audit.models import Event
from deploy.models import Observation, Rollout
from partitions.models import StagedChange
from tests.api.callers import Caller, is_problem
from tests.console.drifted import drifted

pytestmark = pytest.mark.django_db


def move(site, *, servers=(1,), source="training", target="inference", **more):
    source, target = (None if name is None else getattr(site, name).public_id for name in (source, target))
    moves = [{"server": site.provider.servers[number - 1].public_id, "source": source} for number in servers]
    return {"moves": moves, "target": target, **more}


def test_a_move_is_staged_planned_and_rolled_out(operator, site):
    staged = operator.post("staged-changes", move(site, reason="maintenance"))
    assert staged.status_code == 200, staged.content
    assert {(row["port"], row["membership_from"], row["membership_to"]) for row in staged.json()["items"]} == {
        ("0x0002c90400000101", None, "full"), ("0x0002c90400000101", "full", None),
        ("0x0002c90400000111", None, "full"), ("0x0002c90400000111", "full", None),
    }  # fmt: skip
    assert StagedChange.objects.filter(by=site.provider.olga, reason="maintenance").count() == 4
    look = site.provider.observe()
    plan = operator.get("plans/mine").json()
    assert (plan["look"], plan["is_fresh"], plan["affected_ports"]) == (look.public_id, True, 2)
    assert plan["servers"] == [site.provider.servers[0].public_id]
    assert plan["sentence"].startswith("srv-001 moves from training to inference")
    assert plan["ports"][0]["before"][1]["entry"] == "0xac41"
    assert "0x9b07" in [entry["entry"] for entry in plan["ports"][0]["after"]]
    assert [file["host"] for file in plan["files"]] == ["m1", "m2"]
    body = {"selection": "mine", "plan_digest": plan["digest"], "look": plan["look"]}
    started = operator.post("rollouts", body, Idempotency_Key="go")
    assert started.status_code == 202, started.content
    address = started["Location"].removeprefix("/api/v1/")
    assert operator.get(address).json()["state"] == "QUEUED"
    assert operator.post("rollouts", body, Idempotency_Key="go").json()["id"] == started.json()["id"]
    assert Rollout.objects.filter(state="QUEUED").count() == 1
    site.provider.settle(Rollout.objects.get(public_id=started.json()["id"]))
    ended = operator.get(address).json()
    assert (ended["state"], ended["is_over"], ended["started_by"]) == ("PROVEN", True, "Olga (token “ci”)")
    where = {row["partition"] for row in operator.items(f"memberships?server={site.provider.servers[0].public_id}")}
    assert where == {site.inference.public_id}
    assert operator.items("staged-changes") == []


def test_of_several_servers_all_are_staged_or_none(operator, site):
    """The third is in another partition than its source says."""
    body = is_problem(operator.post("staged-changes", move(site, servers=(1, 2, 3))), 409, "refused")
    assert body["where"] == "moves[2]"
    assert not StagedChange.objects.exists()
    assert operator.post("staged-changes", move(site, servers=(1, 2))).status_code == 200


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"target": "nothing"}, "target"), ({"moves": []}, "moves"), ({"moves": [{}]}, "moves[0].server"),
        ({"moves": [{"server": "nobody"}]}, "moves[0].server"), ({"keep": "yes"}, "keep"), ({"keep": 1}, "keep"),
    ],
)  # fmt: skip
def test_what_is_no_move_is_refused_where_it_is_wrong(operator, site, change, where):
    problem = is_problem(operator.post("staged-changes", move(site) | change), 400, "invalid")
    assert where in (problem["where"], *(error["where"] for error in problem["errors"]))


def test_a_server_twice_in_one_move(operator, site):
    problem = is_problem(operator.post("staged-changes", move(site, servers=(1, 1))), 400, "invalid")
    assert problem["where"] == "moves[1].server"


def test_staged_changes_are_discarded(operator, site):
    operator.post("staged-changes", move(site, servers=(1, 2)))
    key = site.provider.servers[0].public_id
    assert operator.post("staged-changes/discard", {"servers": [key]}).json() == {"discarded": 4}
    assert operator.post("staged-changes/discard", {}).json() == {"discarded": 4}
    assert operator.post("staged-changes/discard", {}).json() == {"discarded": 0}
    is_problem(operator.post("staged-changes/discard", {"servers": ["nobody"]}), 400, "invalid")


def test_all_my_own_are_not_anothers(operator, site):
    site.provider.move(site.provider.servers[0], site.training, site.inference, by=site.provider.otto)
    assert operator.post("staged-changes/discard", {}).json() == {"discarded": 0}


def test_a_plan_that_is_another_by_now_starts_nothing(operator, site):
    operator.post("staged-changes", move(site))
    site.provider.observe()
    plan = operator.get("plans/mine").json()
    operator.post("staged-changes", move(site, servers=(2,)))
    body = {"plan_digest": plan["digest"], "look": plan["look"]}
    is_problem(operator.post("rollouts", body), 409, "stale_plan")
    assert Rollout.objects.filter(state="QUEUED").count() == 0


def test_refusals_of_a_rollout_have_their_codes(operator, site):
    look = site.provider.observe()
    plan = operator.get("plans/mine").json()
    body = {"plan_digest": plan["digest"], "look": look.public_id}
    is_problem(operator.post("rollouts", body), 409, "nothing_to_do")
    operator.post("staged-changes", move(site))
    body["plan_digest"] = operator.get("plans/mine").json()["digest"]
    is_problem(operator.post("rollouts", {**body, "look": "nothing"}), 400, "invalid")
    is_problem(operator.post("rollouts", {**body, "selection": "yours"}), 400, "invalid")
    is_problem(operator.post("rollouts", {**body, "confirm_within_s": "60"}), 400, "invalid")
    site.provider.subnet.frozen_at = timezone.now()
    site.provider.subnet.save()
    is_problem(operator.post("rollouts", body), 409, "subnet_closed")


def test_a_big_plan_asks_for_a_reason(operator, site):
    operator.post("staged-changes", move(site, servers=(1, 2)))
    site.provider.observe()
    plan = operator.get("plans/mine").json()
    assert "give a reason" not in plan["needs_reason"]
    body = {"plan_digest": plan["digest"], "look": plan["look"]}
    is_problem(operator.post("rollouts", body), 409, "reason_needed")
    assert operator.post("rollouts", {**body, "reason": "a move of the rack"}).status_code == 202


def test_a_plan_of_a_selection_that_is_none(operator):
    is_problem(operator.get("plans/yours"), 404, "not_found")
    assert operator.get("plans/all").status_code == 200


def test_a_look_is_asked_for_and_seen(operator, site):
    asked = operator.post("looks", {})
    assert asked.status_code == 202
    assert operator.get(asked["Location"].removeprefix("/api/v1/")).json()["state"] == "REQUESTED"
    assert operator.post("looks", {"subnet": site.provider.subnet.public_id}).json()["id"] == asked.json()["id"]
    assert Observation.objects.filter(state="REQUESTED").count() == 1


def test_a_queued_rollout_is_cancelled_once(operator, site):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    rollout = site.provider.roll_out(site.provider.olga)
    address = f"rollouts/{rollout.public_id}"
    is_problem(operator.post(f"{address}/confirm", {}), 409, "too_late")
    cancelled = operator.post(f"{address}/cancel", {"reason": "not now"})
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "CANCELLED")
    is_problem(operator.post(f"{address}/cancel", {}), 409, "too_late")
    assert Event.objects.filter(action="deploy:rollout:cancelled", reason="not now").exists()


def test_one_of_each_is_found_by_its_id(operator, site):
    drifted(site)
    for address in ("servers", "partitions", "subnets", "revisions", "rollouts", "drift"):
        for item in operator.items(address):
            one = operator.get(f"{address}/{item['id']}")
            assert one.status_code == 200, (address, one.content)
            assert item.items() <= one.json().items()
    for port in operator.items("ports"):
        assert operator.get(f"ports/{port['guid']}").json() == port
    for event in operator.items("audit/events")[:3]:
        assert operator.get(f"audit/events/{event['number']}").json() == event


def test_filters_choose(operator, site):
    def names(query):
        return [item["hostname"] for item in operator.items(f"servers?{query}")]

    assert names("hostname=srv-002") == ["srv-002"]
    assert names("hostname_contains=SRV-00") == [f"srv-00{number}" for number in range(1, 7)]
    assert names("rack=r1") == []
    assert len(operator.items(f"ports?server={site.provider.servers[0].public_id}")) == 2
    assert [item["name"] for item in operator.items("partitions?name=Training")] == ["training"]
    assert [item["state"] for item in operator.items("rollouts?state=PROVEN")] == ["PROVEN"]
    assert operator.items("rollouts?state=STUCK") == []
    actions = {event["action"] for event in operator.items("audit/events?action=deploy:")}
    assert actions
    assert all(action.startswith("deploy:") for action in actions)
    rollout = Rollout.objects.get()
    assert "deploy:rollout:start" in {e["action"] for e in operator.items(f"audit/events?rollout={rollout.public_id}")}


def test_a_subnet_says_how_it_stands(operator, site):
    (subnet,) = operator.items("subnets")
    assert (subnet["name"], subnet["mode"], subnet["rollout"], subnet["open_drift"]) == ("lab", "WRITE", None, 0)
    drifted(site)
    assert operator.items("subnets")[0]["open_drift"] > 0


def test_revisions_have_their_file(operator, site):
    newest = operator.get("revisions").json()["items"][0]
    whole = operator.get(f"revisions/{newest['id']}").json()
    assert whole["file"].startswith("# FabricUI subnet=lab revision=")
    assert whole["file"].endswith("# end\n")


def test_where_there_are_two_subnets_one_is_named(operator, site):
    from inventory.models import Subnet

    other = Subnet.objects.create(name="other")
    is_problem(operator.post("looks", {}), 400, "invalid")
    assert operator.post("looks", {"subnet": other.public_id}).status_code == 202
    is_problem(operator.post("looks", {"subnet": "nothing"}), 400, "invalid")


def test_an_auditors_program_sees_all_that_an_operators_does(operator, auditor):
    for address in ("servers", "ports", "partitions", "memberships", "subnets", "revisions", "rollouts"):
        assert auditor.get(address).json() == operator.get(address).json(), address
    assert isinstance(auditor, Caller)


def test_a_move_says_how_servers_join_and_a_member_changes(operator, site):
    assert (
        operator.post("staged-changes", move(site, servers=(5,), source=None, membership="limited")).status_code == 200
    )
    assert set(StagedChange.objects.values_list("kind_from", "kind_to")) == {(None, "limited")}
    operator.post("staged-changes/discard", {})
    there = {"source": "training", "target": "training"}
    is_problem(operator.post("staged-changes", move(site, **there)), 409, "refused")
    assert operator.post("staged-changes", move(site, **there, membership="limited")).status_code == 200
    assert set(StagedChange.objects.values_list("kind_from", "kind_to")) == {("full", "limited")}
    is_problem(operator.post("staged-changes", move(site, membership="half")), 400, "invalid")


def test_of_several_subnets_the_plan_is_of_the_one_that_is_named(operator, site):
    from inventory.models import Subnet

    Subnet.objects.create(name="other")
    is_problem(operator.get("plans/mine"), 400, "invalid")
    assert operator.get(f"plans/mine?subnet={site.provider.subnet.public_id}").status_code == 200
    assert is_problem(operator.get("plans/mine?subnet=nothing"), 400, "invalid")["where"] == "subnet"
    is_problem(operator.get(f"servers/{site.provider.servers[0].public_id}?subnet=x"), 400, "invalid")
    for address in ("partitions", "rollouts"):
        body = (
            {"name": "newcomer", "subnet": "nothing"} if address == "partitions" else {"plan_digest": "d", "look": "l"}
        )
        assert is_problem(operator.post(address, {**body, "subnet": "nothing"}), 400, "invalid")["where"] == "subnet"


def test_a_plan_tells_its_hazards(operator, site):
    operator.post("staged-changes", move(site))
    site.provider.observe(extra={"0x0002c90400000101": 0x2C41})
    hazards = {hazard["kind"]: hazard for hazard in operator.get("plans/mine").json()["hazards"]}
    assert hazards["key_twice"]["ports"] == ["0x0002c90400000101"]
    assert hazards["key_twice"]["needs_takeover"] is False
