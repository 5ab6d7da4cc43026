"""A tenant's program moves its servers as the portal does: the same rows, the same turns, the same refusals."""

import pytest
from django.utils import timezone

from audit.models import Event
from inventory.models import PortConflict, Subnet
from partitions.models import StagedChange
from people.models import Tenant, TenantRole
from portal import turns
from portal.models import Turn
from tests.api.callers import Caller, is_problem
from tests.portal.turning import advance, later

pytestmark = pytest.mark.django_db


@pytest.fixture
def program(portal):
    """Max's."""
    return Caller(portal.seats["max"].person)


def body(portal, *numbers, source=None, target=None, **more):
    site = portal.site
    source, target = source or site.training, target or site.inference
    servers = [site.provider.servers[number].public_id for number in numbers or (0,)]
    return {
        "moves": [{"server": key, "source": source.public_id} for key in servers],
        "target": target.public_id,
        **more,
    }


def test_a_move_waits_for_an_operator_where_the_policy_says_so(portal, program):
    answer = program.post("staged-changes", body(portal, 0, 1, reason="ticket 4711"))
    assert (answer.status_code, answer.json()["turn"]) == (200, None)
    assert len(answer.json()["items"]) == 8
    assert "Location" not in answer
    rows = StagedChange.objects.all()
    assert {(row.for_tenant, row.by.username, row.reason) for row in rows} == {(portal.acme, "max", "ticket 4711")}
    events = Event.objects.filter(action__startswith="partitions:member:").order_by("-number")[:2]
    assert {(event.actor_name, event.reason) for event in events} == {("Max (token “ci”)", "ticket 4711")}
    assert not Turn.objects.exists()


def test_where_it_goes_out_by_itself_the_answer_is_the_turn(acme, program):
    answer = program.post("staged-changes", body(acme), Idempotency_Key="k1")
    assert answer.status_code == 202
    turn = answer.json()["turn"]
    assert (turn["state"], turn["why"], turn["is_over"], turn["asked_by"]) == ("WAITING", "gathers", False, "Max")
    assert answer["Location"] == f"/api/v1/turns/{turn['id']}"
    assert program.get(f"turns/{turn['id']}").json() == turn
    again = program.post("staged-changes", body(acme), Idempotency_Key="k1")
    assert (again.status_code, again.json(), again["Idempotency-Replayed"]) == (202, answer.json(), "true")
    more = program.post("staged-changes", body(acme, 1))
    assert more.json()["turn"]["id"] == turn["id"]  # they go out together


def test_it_rolls_out_and_the_turn_says_proven(acme, program):
    key = program.post("staged-changes", body(acme)).json()["turn"]["id"]
    turn = advance(Turn.objects.get())
    assert program.get(f"turns/{key}").json()["state"] == "ROLLING_OUT"
    acme.provider.settle(turn.rollout)
    advance(turn)
    told = program.get(f"turns/{key}").json()
    assert (told["state"], told["is_over"]) == ("PROVEN", True)
    assert not {"rollout", "told", "subnet"} & set(told)
    assert program.items("staged-changes") == []
    seen = Caller(acme.provider.olga).get(f"turns/{key}").json()
    assert seen["rollout"] == turn.rollout.public_id


def test_one_that_may_not_move_keeps_all_where_they_are(portal, program):
    server = portal.provider.servers[1]
    PortConflict.objects.create(port=server.hcas.first().ports.first(), claimed_by=portal.provider.servers[4], claim={})
    refused = is_problem(program.post("staged-changes", body(portal, 0, 1)), 409, "refused")
    assert refused["where"] == "moves[1]"
    assert refused["detail"] == (
        "srv-002: Your provider has to check one of its ports first. Ask them, then move it. Nothing was changed."
    )
    assert not StagedChange.objects.exists()


def test_what_a_colleague_or_the_provider_has_staged_is_in_the_way(portal, program):
    Caller(portal.seats["mia"].person).post("staged-changes", body(portal))
    refused = is_problem(program.post("staged-changes", body(portal)), 409, "refused")
    assert "Mia has staged it already" in refused["detail"]
    is_problem(program.post("staged-changes/discard", {"servers": [portal.provider.servers[0].public_id]}), 409,
               "refused")  # fmt: skip
    assert program.post("staged-changes/discard", {}).json() == {"discarded": 0}
    portal.provider.move(portal.provider.servers[1], portal.site.training, portal.site.inference)
    refused = is_problem(program.post("staged-changes", body(portal, 1)), 409, "refused")
    assert "Your provider has a change of it pending" in refused["detail"]
    assert "Olga" not in refused["detail"]


def test_own_moves_are_taken_back(portal, program):
    program.post("staged-changes", body(portal, 0, 1))
    first = portal.provider.servers[0].public_id
    assert program.post("staged-changes/discard", {"servers": [first]}).json() == {"discarded": 4}
    refused = is_problem(program.post("staged-changes/discard", {"servers": [first]}), 409, "refused")
    assert (refused["where"], refused["detail"][:40]) == ("servers[0]", "You have staged nothing for srv-001. Who")
    assert program.post("staged-changes/discard", {}).json() == {"discarded": 4}
    assert not StagedChange.objects.exists()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"target": None}, "target"), ({"keep": True}, "keep"), ({"membership": "limited"}, "membership"),
        ({"moves": []}, "moves"), ({"target": "222222222222"}, "target"), ({"tenant": "x"}, "tenant"),
    ],
)  # fmt: skip
def test_what_is_not_a_tenants_to_say(portal, program, change, where):
    refused = is_problem(program.post("staged-changes", body(portal) | change), 400, "invalid")
    assert refused["errors"][0]["where"] == where
    assert not StagedChange.objects.exists()


def test_a_move_names_where_it_comes_from(portal, program):
    asked = body(portal)
    asked["moves"][0]["source"] = None
    refused = is_problem(program.post("staged-changes", asked), 400, "invalid")
    assert refused["where"] == "moves[0].source"
    twice = body(portal, 0, 0)
    assert is_problem(program.post("staged-changes", twice), 400, "invalid")["where"] == "moves[1].server"


def test_what_the_provider_shares_is_joined_by_a_request(portal, program, shared):
    for asked in (body(portal, target=shared), body(portal, source=shared)):
        refused = is_problem(program.post("staged-changes", asked), 409, "refused")
        assert "is your provider's, and shared" in refused["detail"]
    for verb, sent in (("PATCH", {"name": "mine"}), ("DELETE", None)):
        answer = program.ask(verb, f"partitions/{shared.public_id}", sent, If_Match="*")
        assert "not yours to change" in is_problem(answer, 409, "refused")["detail"]


def test_of_two_tenants_each_moves_its_own(portal, program):
    site = portal.site
    TenantRole.objects.create(user=portal.seats["max"].person, tenant=portal.provider.bert, role="MEMBER")
    refused = is_problem(program.post("staged-changes", body(portal, source=site.research)), 400, "invalid")
    assert refused["where"] == "moves[0].source"
    refused = is_problem(program.post("staged-changes", body(portal, target=site.research)), 400, "invalid")
    assert refused["where"] == "moves[0].server"
    TenantRole.objects.filter(tenant=portal.provider.bert).update(role="VIEWER")
    refused = is_problem(program.post("staged-changes", body(portal, 3, source=site.research, target=site.research)),
                         409, "refused")  # fmt: skip
    assert "viewers change nothing" in refused["detail"]
    assert program.post("staged-changes", body(portal)).status_code == 200


def test_a_frozen_fabric_takes_nothing(portal, program):
    Subnet.objects.update(frozen_at=timezone.now())
    refused = is_problem(program.post("staged-changes", body(portal)), 409, "refused")
    assert "stopped all changes" in refused["detail"]


def test_a_viewer_reads(portal):
    program = Caller(portal.seats["vera"].person, scopes=["partitions:read", "partitions:write"])
    assert program.get("turns").status_code == 200
    for address, sent in (("staged-changes", body(portal)), ("staged-changes/discard", {}), ("turns", {})):
        is_problem(program.post(address, sent), 404, "not_found")


def test_an_operators_program_stages_as_the_board_does(portal):
    answer = Caller(portal.provider.olga).post("staged-changes", body(portal))
    assert (answer.status_code, answer.json()["turn"]) == (200, None)
    assert set(StagedChange.objects.values_list("for_tenant", flat=True)) == {None}


def test_an_operators_token_for_a_tenant_moves_as_the_tenant(acme):
    olga = acme.provider.olga
    TenantRole.objects.create(user=olga, tenant=acme.acme, role="MEMBER")
    answer = Caller(olga, tenant=acme.acme).post("staged-changes", body(acme))
    assert answer.status_code == 202
    assert set(StagedChange.objects.values_list("for_tenant", flat=True)) == {acme.acme.pk}


def test_a_turn_that_was_not_made_is_tried_again(acme, program):
    key = program.post("staged-changes", body(acme)).json()["turn"]["id"]
    open_one = program.post("turns", {})
    assert (open_one.status_code, open_one.json()["id"]) == (202, key)
    Turn.objects.update(state="FAILED", why="failed", next_try_at=None, ended_at=timezone.now())
    again = program.post("turns", {"tenant": acme.acme.public_id})
    assert (again.status_code, again.json()["state"]) == (202, "WAITING")
    assert again.json()["id"] != key
    assert [item["id"] for item in program.items("turns")] == [again.json()["id"], key]
    assert [item["id"] for item in program.items("turns?is_over=false")] == [again.json()["id"]]


def test_there_must_be_something_to_try_again(acme, program):
    is_problem(program.post("turns", {}), 409, "nothing_to_do")
    assert (
        is_problem(program.post("turns", {"tenant": acme.provider.bert.public_id}), 400, "invalid")["where"] == "tenant"
    )
    program.post("staged-changes", body(acme))
    Turn.objects.all().delete()
    Tenant.objects.update(moves="OPERATOR")
    assert "wait for an operator" in is_problem(program.post("turns", {}), 409, "refused")["detail"]


def test_whose_rollout_it_waits_for_is_not_told(acme, program):
    """While somebody else's runs, and while the fabric rests after it: the same answer, to the letter."""
    key = program.post("staged-changes", body(acme)).json()["turn"]["id"]
    turn = Turn.objects.get()
    told = []
    for why, until in (("busy", None), ("rests", later())):
        Turn.objects.filter(pk=turn.pk).update(why=why, until=until, told="Bert’s rollout")
        answer = program.get(f"turns/{key}")
        told.append((answer.content, answer["ETag"]))
    assert told[0] == told[1]
    seen = Caller(acme.provider.olga).get(f"turns/{key}").json()
    assert (seen["why"], seen["told"]) == ("rests", "Bert’s rollout")
    assert seen["until"]
    Turn.objects.filter(pk=turn.pk).update(why="quota")
    assert program.get(f"turns/{key}").json()["until"]
    assert turns.GATHER.seconds == 10
