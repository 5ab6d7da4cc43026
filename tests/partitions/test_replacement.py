"""A replaced HCA: the port rows go on under new GUIDs, one plan and one rollout carry it, and no bad pair passes."""

import pytest
from django.utils import timezone

from audit.models import Event
from deploy.models import Fence
from inventory.models import HCA, Port, PortConflict
from partitions import operations, replacement
from partitions.errors import MoveRefused
from partitions.models import Membership, Replacement, StagedChange
from partitions.selection import Selection
from subnet.guid import GUID

pytestmark = pytest.mark.django_db
NEW = GUID("0x0002c90500000001")


@pytest.fixture
def server(provider, training):
    """In training; its first card is gone, and a new one is there."""
    server = provider.server(1)
    provider.settled_move(server, None, training)
    server.rack = "r12"
    server.save()
    new_card(provider, server)
    return server


def new_card(provider, server, guid=NEW, **fields):
    old = Port.objects.filter(hca__server=server).order_by("guid").first()
    Port.objects.filter(pk=old.pk).update(missing_since=timezone.now())
    card = HCA.objects.create(server=server, node_guid=GUID(guid[:-1] + "0"), device="mlx5_0")
    return Port.objects.create(subnet=provider.subnet, hca=card, guid=guid, state="ACTIVE", **fields)


def pair(server):
    (found,) = replacement.proposed_pairs(server)[2]
    return found.old, found.new


def replaced(provider, server, *, by=None, reason="RMA 1"):
    return operations.replace_hca(server=server, pairs=[pair(server)], actor=by or provider.olga, reason=reason)


def table(provider):
    current = Fence.objects.get(subnet=provider.subnet).current.partition_table()
    return {member.guid for _, member in current.memberships()}


def test_one_plan_and_one_rollout_carry_it(provider, server, training):
    old, _ = pair(server)
    before = Membership.objects.get(port=old)
    (row,) = replaced(provider, server)
    kept = Port.objects.get(pk=old.pk)
    assert (kept.guid, kept.server, kept.missing_since, kept.confirmed_how) == (NEW, server, None, "person")
    assert HCA.objects.filter(server=server).count() == 2  # the old card is gone, the other one stays
    drawn = provider.plan(provider.olga)
    assert drawn.sentence.startswith(
        "srv-001 has another HCA, and 1 port keeps its partitions under a new GUID: 2 ports"
    )
    assert {port.guid: (bool(port.gains), bool(port.losses)) for port in drawn.plan.ports} == {
        row.old_guid: (False, True), NEW: (True, False),
    }  # fmt: skip
    assert not drawn.refusals
    provider.settle(provider.roll_out(provider.olga, reason="RMA 1"))
    assert NEW in table(provider)
    assert row.old_guid not in table(provider)
    after = Membership.objects.get(port=kept)
    assert (after.pk, after.kind, after.partition) == (before.pk, before.kind, training)
    row.refresh_from_db()
    assert row.done_at is not None
    assert kept.server.rack == "r12"
    assert Port.objects.get(guid=row.old_guid).former_tenant == provider.acme  # the old card is not clean
    assert provider.plan(provider.olga).is_idle
    assert Event.objects.filter(action="partitions:hca:replace").get().after["ports"] == [NEW]


def test_another_rollout_in_between_leaves_the_rows_alone(provider, server, training, inference):
    old, _ = pair(server)
    (row,) = replaced(provider, server)
    other = provider.server(2)
    provider.move(other, None, inference, by=provider.otto)
    provider.settle(provider.roll_out(provider.otto))
    assert row.old_guid in table(provider)  # Olga's work did not travel with Otto's
    assert Membership.objects.get(port=old).partition == training
    row.refresh_from_db()
    assert row.done_at is None
    provider.settle(provider.roll_out(provider.olga))
    assert NEW in table(provider)
    assert Membership.objects.filter(port=old).count() == 1


def test_a_change_of_a_replaced_port_does_not_travel_without_it(provider, server, training, inference):
    replaced(provider, server)
    provider.move(server, training, inference, by=provider.otto)
    drawn = provider.plan(provider.otto)
    assert "not_selected" in {violation.rule for violation in drawn.refusals}
    together = provider.plan(provider.otto, Selection.everything())
    assert not together.refusals
    provider.settle(provider.roll_out(provider.otto, Selection.everything()))
    assert Membership.objects.filter(port__guid=NEW).get().partition == inference


def test_a_tenants_selection_holds_it(provider, server):
    replaced(provider, server, by=provider.otto)
    assert provider.plan(provider.olga, Selection.of_tenant(provider.acme)).replaced
    assert not provider.plan(provider.olga, Selection.of_tenant(provider.bert)).replaced
    assert not provider.plan(provider.olga).replaced


def test_it_is_taken_back_before_it_goes_out(provider, server, training):
    old, new = pair(server)
    old_guid = old.guid
    replaced(provider, server)
    assert operations.undo_replacement(server=server, actor=provider.olga) == 1
    kept, other = Port.objects.get(pk=old.pk), Port.objects.get(pk=new.pk)
    assert (kept.guid, other.guid, other.server, kept.server) == (old_guid, NEW, server, server)
    assert provider.plan(provider.olga).is_idle
    assert Membership.objects.get(port=kept).partition == training
    with pytest.raises(MoveRefused, match="No replacement"):
        operations.undo_replacement(server=server, actor=provider.olga)


def test_a_port_in_no_partition_waits_for_no_rollout(provider):
    server = provider.server(1)
    new_card(provider, server)
    (row,) = replaced(provider, server)
    assert row.done_at is not None
    assert provider.plan(provider.olga).is_idle


# --- bad pairs -------------------------------------------------------------------------------------------------------


def still_reported(provider, old, new):
    Port.objects.filter(pk=old.pk).update(missing_since=None)


def still_plugged_in(provider, old, new):
    now = timezone.now()
    type(provider.subnet).objects.filter(pk=provider.subnet.pk).update(looked_at=now)
    Port.objects.filter(pk=old.pk).update(seen_at=now, seen_state="ACTIVE")


def new_one_gone(provider, old, new):
    Port.objects.filter(pk=new.pk).update(missing_since=timezone.now())


def ethernet(provider, old, new):
    Port.objects.filter(pk=new.pk).update(link_layer="ETHERNET")


def another_subnet(provider, old, new):
    Port.objects.filter(pk=new.pk).update(subnet_prefix="0xfec0000000000002")


def another_server(provider, old, new):
    HCA.objects.filter(pk=new.hca_id).update(server=provider.server(7))


def claimed(provider, old, new):
    PortConflict.objects.create(port=new, claimed_by=provider.server(7), claim={})


def a_tenants(provider, old, new):
    Port.objects.filter(pk=new.pk).update(former_tenant=provider.bert)


def contradicted(provider, old, new):
    Port.objects.filter(pk=new.pk).update(testimony="disagrees")


def an_sm(provider, old, new):
    provider.subnet.manager_hosts.filter(name="m1").update(port_guid=new.guid)


BAD = {
    still_reported: "still reports port", still_plugged_in: "fabric still shows", new_one_gone: "does not report port",
    ethernet: "speaks Ethernet", another_subnet: "another subnet", another_server: "is not a port of",
    claimed: "also claimed by", a_tenants: "is or was in a partition", contradicted: "fabric contradicts",
    an_sm: "runs the SM of m1",
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "words"), BAD.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_bad_pair_changes_nothing(provider, server, spoil, words):
    old, new = pair(server)
    spoil(provider, old, new)
    rows, events = list(Port.objects.order_by("pk").values()), Event.objects.count()
    with pytest.raises(MoveRefused, match=words):
        operations.replace_hca(server=server, pairs=[(old, new)], actor=provider.olga)
    assert (list(Port.objects.order_by("pk").values()), Event.objects.count()) == (rows, events)
    assert not Replacement.objects.exists()


def test_one_new_port_stands_for_one_old_one(provider, server):
    old, new = pair(server)
    other = Port.objects.filter(hca__server=server).exclude(pk__in=[old.pk, new.pk]).get()
    for pairs in ([(old, new), (other, new)], [(old, old)], []):
        with pytest.raises(MoveRefused):
            operations.replace_hca(server=server, pairs=pairs, actor=provider.olga)


def test_not_under_a_rollout_that_changes_the_port(provider, server, training, inference):
    old, new = pair(server)
    Port.objects.filter(pk=new.pk).update(confirmed_at=timezone.now(), confirmed_how="person")
    provider.move(server, training, None)
    provider.roll_out(provider.olga)
    assert StagedChange.objects.exists()
    with pytest.raises(MoveRefused, match="is changing port"):
        operations.replace_hca(server=server, pairs=[(old, new)], actor=provider.olga)
