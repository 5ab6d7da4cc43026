"""What a tenant may do by itself is set on its page by an operator, recorded, and read by everybody who reviews."""

import pytest
from django.urls import reverse

from audit.models import Event
from people.errors import BadPolicy
from people.models import Tenant
from people.tenant_policy import set_tenant_policy

FORM = {"moves": "ALONE", "most_servers": "12", "most_partitions": "4", "most_rollouts_per_hour": "3"}


def address(site, name="tenant_policy"):
    return reverse(f"console:{name}", args=[site.provider.acme.public_id])


def test_an_operator_sets_it_and_only_what_changed_is_recorded(site, operator):
    page = operator.post(address(site), FORM, follow=True).content.decode()
    assert "That is what Acme may do by itself now." in page
    acme = Tenant.objects.get(pk=site.provider.acme.pk)
    assert (acme.moves, acme.most_servers, acme.most_partitions, acme.most_rollouts_per_hour) == ("ALONE", 12, 4, 3)
    event = Event.objects.latest("number")
    assert (event.action, event.tenant_key) == ("people:tenant:policy", acme.public_id)
    assert event.before == {"moves": "WAIT", "most_servers": None, "most_partitions": 8, "most_rollouts_per_hour": 6}
    operator.post(address(site), {**FORM, "most_servers": ""})
    event = Event.objects.latest("number")
    assert (event.before, event.after) == ({"most_servers": 12}, {"most_servers": None})
    operator.post(address(site), {**FORM, "most_servers": ""})
    assert Event.objects.latest("number").pk == event.pk


@pytest.mark.parametrize("wrong", [{"moves": "NOW"}, {"most_partitions": "-1"}, {"most_rollouts_per_hour": "many"}])
def test_nonsense_changes_nothing(site, operator, wrong):
    page = operator.post(address(site), {**FORM, **wrong}, follow=True).content.decode()
    assert "Nothing was changed." in page
    assert Tenant.objects.get(pk=site.provider.acme.pk).moves == "WAIT"


def test_the_operation_refuses_for_itself(site):
    from people.actor import actor_of

    actor = actor_of(site.provider.olga)
    fields = {"tenant": site.provider.acme, "most_servers": None, "most_rollouts_per_hour": 1, "actor": actor}
    with pytest.raises(BadPolicy, match="no policy for moves"):
        set_tenant_policy(**fields, moves="", most_partitions=1)
    with pytest.raises(BadPolicy, match="Most partitions is 10001"):
        set_tenant_policy(**fields, moves="WAIT", most_partitions=10_001)


def test_an_auditor_reads_it(site, auditor):
    page = auditor.get(address(site, "tenant")).content.decode()
    assert "wait for an operator" in page
    assert address(site) not in page
    assert auditor.post(address(site), FORM).status_code == 404
