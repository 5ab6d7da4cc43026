"""What a person decides about a claimed port takes its true effect, once, and is recorded."""

from functools import partial

import pytest

from audit.models import Event
from inventory.errors import ConflictDecided, CredentialRefused, DecisionRefused
from inventory.models import HCA, HistoryEntry, Port, PortConflict
from inventory.operations import confirm_port, declare_clone, move_card, reconsider_claim, reject_claim
from inventory.operations.enrolment import server_of_credential
from tests.inventory.reports import GUID_A, GUID_B, OLGA, enrolled, outcomes, port, registers
from tests.inventory.test_races import together

pytestmark = pytest.mark.django_db
NODE = GUID_A[:-1] + "0"


@pytest.fixture
def server(subnet):
    return enrolled(subnet)[0]


@pytest.fixture
def other(subnet):
    return enrolled(subnet, "srv-002")[0]


@pytest.fixture
def conflict(server, other):
    registers(server, port(GUID_A))
    confirm_port(port=Port.objects.get(), actor=OLGA)
    registers(other, port(GUID_A, device="mlx5_7"))
    return PortConflict.objects.get()


def test_a_card_that_moved_takes_all_its_ports_along(server, other):
    second = "0x0002c90300010002"
    registers(server, port(GUID_A), port(second, port=2, node_guid=NODE))
    rows = list(Port.objects.order_by("guid").values_list("pk", flat=True))
    registers(other, port(GUID_A), port(second, port=2, node_guid=NODE))
    assert PortConflict.objects.count() == 2
    moved = move_card(conflict=PortConflict.objects.first(), actor=OLGA, reason="swapped at the rack")
    assert [each.server for each in moved] == [other, other]
    assert list(Port.objects.order_by("guid").values_list("pk", flat=True)) == rows
    assert set(Port.objects.values_list("confirmed_how", flat=True)) == {"person"}
    assert set(PortConflict.objects.values_list("decision", "decided_by", "reason")) == {
        ("moved", "Olga", "swapped at the rack")
    }
    assert HistoryEntry.objects.filter(kind="CARD").count() == 2
    events = Event.objects.filter(action="inventory:port:conflict-decide")
    assert [event.after["decision"] for event in events] == ["moved", "moved"]
    assert outcomes(registers(other, port(GUID_A), port(second, port=2, node_guid=NODE))) == ["unchanged", "unchanged"]
    assert outcomes(registers(server, port(GUID_A))) == ["conflict"]  # now the former one is the claimant


def test_only_one_card_can_have_moved(server, other):
    registers(server, port(GUID_A))
    registers(other, port(GUID_A, node_guid=GUID_B))
    conflict = PortConflict.objects.get()
    with pytest.raises(DecisionRefused, match="not one card that has moved"):
        move_card(conflict=conflict, actor=OLGA)
    conflict.refresh_from_db()
    assert conflict.closed_at is None
    assert HCA.objects.get().server == server


def test_a_clone_loses_its_credential_and_its_claims_and_the_port_its_confirmation(server, subnet):
    registers(server, port(GUID_A), port(GUID_B, device="mlx5_1"))
    for each in Port.objects.all():
        confirm_port(port=each, actor=OLGA)
    clone, credential = enrolled(subnet, "srv-009")
    registers(clone, port(GUID_A), port(GUID_B, device="mlx5_1"))
    assert declare_clone(conflict=PortConflict.objects.first(), actor=OLGA, reason="image was copied") == 2
    assert not PortConflict.objects.filter(closed_at=None).exists()
    assert set(Port.objects.values_list("hca__server", "confirmed_at")) == {(server.pk, None)}
    with pytest.raises(CredentialRefused):
        server_of_credential(credential=credential)
    actions = list(Event.objects.order_by("-number").values_list("action", flat=True)[:3])
    assert actions == ["inventory:server:credential-revoke", *["inventory:port:conflict-decide"] * 2]
    again = enrolled(subnet, "srv-010")[0]
    assert outcomes(registers(again, port(GUID_A))) == ["conflict"]
    assert PortConflict.objects.filter(closed_at=None).count() == 1


def test_what_is_decided_is_not_decided_again(conflict):
    reject_claim(conflict=conflict, actor=OLGA)
    events = Event.objects.count()
    for decide in (move_card, declare_clone):
        with pytest.raises(ConflictDecided, match="rejected by Olga"):
            decide(conflict=conflict, actor=OLGA)
    assert Event.objects.count() == events


def test_a_rejected_claim_can_be_reconsidered(conflict, other):
    reject_claim(conflict=conflict, actor=OLGA)
    registers(other, port(GUID_A))
    assert not PortConflict.objects.filter(closed_at=None).exists()
    reconsider_claim(conflict=conflict, actor=OLGA)
    registers(other, port(GUID_A))
    assert PortConflict.objects.filter(closed_at=None).count() == 1
    with pytest.raises(DecisionRefused):
        reconsider_claim(conflict=PortConflict.objects.get(closed_at=None), actor=OLGA)


@pytest.mark.pg
@pytest.mark.django_db(transaction=True)
def test_three_people_decide_at_once_and_one_of_them_does(subnet):
    first, second = enrolled(subnet)[0], enrolled(subnet, "srv-002")[0]
    for number in range(8):
        guid = f"0x0002c903000{number:04x}1"
        registers(first, port(guid))
        registers(second, port(guid))
        conflict = PortConflict.objects.get(closed_at=None)
        results = together(
            *[partial(decide, conflict=conflict, actor=OLGA) for decide in (reject_claim, move_card, declare_clone)]
        )
        refused = [type(result).__name__ for result in results if isinstance(result, Exception)]
        assert refused == ["ConflictDecided"] * 2, results
        conflict.refresh_from_db()
        owner = Port.objects.get(guid=guid).server
        assert (owner == second) == (conflict.decision == "moved")
