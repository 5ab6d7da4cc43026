"""Activity: what a tenant is told of, by whom, in its own words; and that nothing of others or of the provider is."""

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.utils import timezone

from audit import follow
from audit.actions import Action
from audit.models import Event
from audit.record import record
from audit.values import SYSTEM, Subject
from partitions import operations
from partitions.models import Partition
from people import accounts
from people.actor import actor_of
from people.models import Tenant, TenantRole, User
from portal import own_partitions
from portal.activity import found, kinds
from portal.activity.told import told
from portal.models import TenantEvent
from tests.portal.test_canary_everywhere import MOVING


def lines(portal, who="max", **asked):
    """What is told, newest first."""
    seat = portal.seats[who]
    people = found.people_of(seat.tenant)
    page = found.page(seat.tenant, seat.person, found.Asked(**asked), people=people)
    return told(seat.tenant, page.events, people=people)


def said(portal, who="max", **asked):
    return [f"{one.who.name} {one.words} {one.about.name}" for one in lines(portal, who, **asked)]


def test_each_kind_is_told_in_the_tenants_own_words(busy):
    told_of = said(busy)
    for sentence in (
        "Max staged a change of srv-001", "Max created partition eval", "Max renamed partition eval",
        "Max asked for 2 more servers for Acme", "the operator declined the request for 2 more servers for Acme",
        "Max created webhook chat", "Max asked for signed evidence of Acme",
        "the operator changed what may be done alone by tenant Acme", "the operator gave a role to Vera",
    ):  # fmt: skip
        assert sentence in told_of, told_of
    details = {one.action: one for one in lines(busy)}
    assert details["partitions:member:stage"].details == ("from training to inference",)
    assert details["partitions:partition:rename"].details == ("called judge from then on",)
    assert details["people:role:give"].details == ("from viewer to member",)
    assert "servers: from any number to 9" in details["people:tenant:policy"].details
    assert details["portal:request:decline"].reason == "None left until Friday."


def test_nothing_of_others_and_no_name_of_the_provider_is_told(busy):
    text = str(lines(busy))
    for word in ("canary", "Bruno", "Olga", "olga", "acme.", busy.provider.bert.public_id):
        assert word not in text, word
    assert busy.provider.olga.public_id not in text
    both = {one.id for one in lines(busy)} & {one.id for one in lines(busy, "bruno")}
    assert {one.kind for one in lines(busy) if one.id in both} == {kinds.Kind.ROLLOUTS}  # one that changed both


def test_what_the_provider_stages_is_not_the_tenants(acme):
    site, provider = acme.site, acme.provider
    new = provider.servers[4]
    before = said(acme)
    operations.stage_add(server=new, target=site.training, actor=provider.olga)
    assert Event.objects.latest("number").tenant_key == acme.acme.public_id
    assert said(acme) == before
    # Who is an operator too stages for the provider.
    User.objects.filter(pk=acme.seats["max"].person.pk).update(role="OPERATOR")
    operations.stage_move(server=provider.servers[0], source=site.training, target=site.inference,
                          actor=User.objects.get(pk=acme.seats["max"].person.pk))  # fmt: skip
    assert said(acme, "anna") == before


def test_a_rollout_is_told_to_those_whose_ports_it_changes_and_by_whom_as_they_may_know(acme):
    site, provider = acme.site, acme.provider
    provider.move(provider.servers[0], site.training, site.inference)
    provider.settle(provider.roll_out(provider.olga, reason="canary reason"))
    while follow.tick():
        pass
    mine = [one for one in lines(acme) if one.kind is kinds.Kind.ROLLOUTS]
    assert {one.action for one in mine} >= {"deploy:rollout:start", "deploy:rollout:proven"}
    assert {(one.about.id, one.about.name, one.reason) for one in mine} == {("", "the rollout of your changes", "")}
    assert {one.who.name for one in mine} <= {"the operator", "FabricUI"}
    assert mine[0].details == ("inference: 2 ports joined", "training: 2 ports left")
    assert [one for one in lines(acme, "bruno") if one.kind is kinds.Kind.ROLLOUTS and one.id == mine[0].id] == []


def test_who_left_keeps_their_name_and_a_stranger_has_none(busy):
    mia = busy.seats["mia"].person
    own_partitions.create(seat=busy.seats["mia"], subnet=busy.provider.subnet, title="mias")
    assert "Mia created partition mias" in said(busy)
    accounts.take_role(person=mia, tenant=busy.acme, actor=actor_of(busy.provider.olga))
    assert "Mia created partition mias" in said(busy)
    assert "the operator took a role from Mia" in said(busy)


def test_who_sees_it_is_decided_by_the_tenants_one_sees(busy):
    shown = TenantEvent.objects.visible_to
    assert shown(AnonymousUser()).count() == 0

    def seen(person):
        return set(shown(person).values_list("hash", flat=True))

    of_acme, of_bert = seen(busy.seats["vera"].person), seen(busy.seats["bruno"].person)
    assert of_acme == seen(busy.seats["anna"].person)
    rollouts = set(Event.objects.exclude(rollout_key="").values_list("hash", flat=True))
    assert of_acme - rollouts
    assert of_bert - rollouts
    assert of_acme & of_bert <= rollouts
    assert seen(busy.provider.olga) == of_acme | of_bert
    Tenant.objects.filter(pk=busy.acme.pk).update(suspended_at=timezone.now())
    assert shown(busy.seats["max"].person).count() == 0


def test_an_action_that_nobody_chose_is_never_told(acme):
    before = said(acme)
    for action in set(Action) - {one for some in (kinds.ALWAYS, kinds.OF_OWN) for its in some.values() for one in its}:
        if action not in kinds.OF_ROLLOUTS | kinds.OF_TURNS:
            with transaction.atomic():
                record(action=action, actor=SYSTEM, subject=Subject(kind="server", key="x", label="canary"),
                       tenant_key=acme.acme.public_id)  # fmt: skip
    assert said(acme) == before


def test_pages_go_on_by_hash_and_no_number_stands_in_an_address(busy, client):
    seat = busy.seats["max"]
    people = found.people_of(busy.acme)
    whole = [one.id for one in lines(busy)]
    got, behind = [], ""
    while True:
        page = found.page(busy.acme, seat.person, found.Asked(), people=people, behind=behind, size=3)
        got += [event.hash for event in page.events]
        behind = page.older
        if not behind:
            break
        assert behind == got[-1]
    assert got == whole
    assert len(whole) > 9
    bruno = Event.objects.filter(tenant_key=busy.provider.bert.public_id).latest("number")
    answer = client.get(busy.address("activity"), {"behind": bruno.hash})
    nobody = client.get(busy.address("activity"), {"behind": "f" * 64})
    assert b"no place in your activity" in answer.content
    texts = [MOVING.sub("", one.content.decode()) for one in (answer, nobody)]
    assert texts[0].replace(bruno.hash, "") == texts[1].replace("f" * 64, "")


def test_the_page_shows_it_and_says_when_there_is_nothing(busy, client, client_of):
    text = client.get(busy.address("activity")).content.decode()
    assert "Max</span> created partition eval" in text
    assert "None left until Friday." in text
    for number in Event.objects.values_list("number", flat=True):
        assert f"#{number}" not in text
    newcomer = Tenant.objects.create(name="Newcomer", slug="newcomer")
    TenantRole.objects.create(user=busy.seats["max"].person, tenant=newcomer, role="VIEWER")
    text = client.get(busy.address("activity", tenant=newcomer)).content.decode()
    assert "Nothing has happened yet" in text
    assert client_of(busy.seats["bruno"].person).get(busy.address("activity")).status_code == 404
    assert Partition.objects.filter(tenant=newcomer).count() == 0
