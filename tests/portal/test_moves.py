"""Own servers between own partitions: what goes, and what is refused politely without telling of anybody else."""

import pytest
from django.utils import timezone

from inventory.models import PortConflict, Subnet
from partitions.models import StagedChange
from people.models import Tenant
from portal.models import Turn

JSON = {"headers": {"accept": "application/json"}}


def staged():
    return StagedChange.objects.count()


def alone(tenant):
    Tenant.objects.filter(pk=tenant.pk).update(moves="ALONE")


def first_move(portal):
    site = portal.site
    return portal.fields(site.provider.servers[0], site.training, site.inference)


def test_a_move_is_staged_for_the_tenant_and_waits_for_an_operator(portal, client):
    answer = client.post(portal.address("move"), first_move(portal), follow=True)
    assert "srv-001 goes to inference." in answer.content.decode()
    assert "waits for an operator" in answer.content.decode()
    rows = StagedChange.objects.all()
    assert {(row.for_tenant, row.by.username) for row in rows} == {(portal.acme, "max")}
    assert len(rows) == 4
    assert not Turn.objects.exists()


def test_where_the_policy_says_so_it_waits_for_its_own_turn(portal, client):
    alone(portal.acme)
    page = client.post(portal.address("move"), first_move(portal), follow=True).content.decode()
    assert "It goes out in a few seconds" in page
    turn = Turn.objects.get()
    assert (turn.tenant, turn.asked_by.username, turn.state) == (portal.acme, "max", "WAITING")


def test_the_script_is_told_in_json(portal, client):
    assert client.post(portal.address("move"), first_move(portal), **JSON).json() == {
        "sentence": "srv-001 goes to inference."
    }


def test_moving_back_undoes_it(portal, client):
    client.post(portal.address("move"), first_move(portal))
    site = portal.site
    client.post(portal.address("move"), portal.fields(site.provider.servers[0], site.inference, site.training))
    assert staged() == 0


def test_whoever_staged_it_takes_it_back(portal, client, client_of):
    client.post(portal.address("move"), first_move(portal))
    server = {"server": portal.provider.servers[0].public_id}
    mia = client_of(portal.seats["mia"].person)
    refused = mia.post(portal.address("take_back"), server)
    assert refused.status_code == 409
    assert "Who staged it takes it back" in refused.content.decode()
    assert "stays where it is" in client.post(portal.address("take_back"), server, follow=True).content.decode()
    assert staged() == 0


# --- refused, in words for the tenant -----------------------------------------------------------------------------
def refused(portal, client, fields, status=409):
    """The sentence on the page; nothing is staged by it, and the script hears the same."""
    before = staged()
    page = client.post(portal.address("move"), fields)
    assert page.status_code == status
    said = client.post(portal.address("move"), fields, **JSON)
    assert said.status_code == status
    assert staged() == before
    assert said.json()["sentence"] in page.content.decode().replace("&#x27;", "'").replace("&quot;", '"')
    return said.json()["sentence"]


def test_anothers_server_is_not_there(portal, client):
    site = portal.site
    fields = portal.fields(site.provider.servers[3], site.research, site.training)
    assert client.post(portal.address("move"), fields).status_code == 404
    fields = portal.fields(site.provider.servers[0], site.training, site.research)
    assert client.post(portal.address("move"), fields).status_code == 404
    assert staged() == 0


def test_a_shared_partition_of_the_provider_is_asked_for(portal, shared, client):
    sentence = refused(portal, client, portal.fields(portal.provider.servers[0], portal.site.training, shared))
    assert sentence.startswith("storage is your provider's, and shared.")
    assert "make a request" in sentence
    # One that no own server is in is nobody's business.
    unknown = portal.provider.partition("hidden", None, 0x0102)
    fields = portal.fields(portal.provider.servers[0], portal.site.training, unknown)
    assert client.post(portal.address("move"), fields).status_code == 404


def test_a_server_that_the_provider_has_something_pending_for(portal, client):
    site = portal.site
    site.provider.move(site.provider.servers[0], site.training, site.research)  # to another tenant
    sentence = refused(portal, client, first_move(portal))
    assert "Your provider has a change of it pending" in sentence
    assert not {"Olga", "research", "Bert"} & set(sentence.replace(".", " ").split())


def test_a_server_that_a_colleague_has_staged(portal, client, client_of):
    client_of(portal.seats["mia"].person).post(portal.address("move"), first_move(portal))
    assert "Mia has staged it already. Ask Mia to take that back." in refused(portal, client, first_move(portal))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"frozen_at": timezone.now(), "frozen_reason": "Bert moves out"}, "Your provider has stopped all changes"),
        ({"mode": "OBSERVE"}, "Your provider only looks at this fabric"),
        ({"mode": "PROPOSE"}, "Your provider only looks at this fabric"),
    ],
)
def test_while_the_provider_lets_nobody_change_anything(portal, client, fields, said):
    Subnet.objects.update(**fields)
    sentence = refused(portal, client, first_move(portal))
    assert sentence.startswith(said)
    assert "Bert" not in sentence


def test_a_viewer_changes_nothing_and_hears_whom_to_ask(portal, client_of):
    viewer = client_of(portal.seats["vera"].person)
    sentence = refused(portal, viewer, first_move(portal), status=403)
    assert "You are a viewer of Acme" in sentence
    assert "Ask Anna" in sentence
    assert b"New partition" not in viewer.get(portal.address("partitions")).content


def test_a_disputed_port_names_no_other_server(portal, client):
    port = portal.provider.servers[0].hcas.first().ports.first()
    PortConflict.objects.create(port=port, claimed_by=portal.provider.servers[3], claim={})
    sentence = refused(portal, client, first_move(portal))
    assert "Your provider has to check one of its ports first" in sentence
    assert "srv-004" not in sentence


def test_what_has_moved_meanwhile_names_nobody(portal, client):
    site = portal.site
    fields = portal.fields(site.provider.servers[0], site.inference, site.training)
    sentence = refused(portal, client, fields)
    assert "It is not where you took it from any more" in sentence
    assert "Olga" not in sentence


def test_while_it_is_being_rolled_out(portal, client):
    client.post(portal.address("move"), first_move(portal))
    portal.provider.roll_out(portal.seats["max"].person)
    site = portal.site
    sentence = refused(portal, client, portal.fields(site.provider.servers[0], site.inference, site.training))
    assert "is on its way to the fabric" in sentence


def test_every_rule_of_the_board_has_words_that_name_nobody(portal):
    import re
    from pathlib import Path

    import partitions
    from portal import moves

    folder = Path(partitions.__file__).parent
    rules = set()
    for name in ("refusals.py", "staging.py", "many_moves.py"):
        rules |= set(re.findall(r'rule="(\w+)"', (folder / name).read_text(encoding="utf-8")))
    assert len(rules) > 10
    for rule in rules:
        sentence = moves._sentence(portal.seats["max"], portal.provider.servers[0], rule)
        assert sentence.startswith("srv-001: ")
        assert sentence.endswith("Nothing was changed.")
        assert "research" not in sentence
