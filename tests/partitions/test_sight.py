"""Who sees which servers, ports, partitions, memberships and staged changes."""

import pytest
from django.contrib.auth.models import AnonymousUser

from inventory.models import Port, Server
from partitions import cleaning, staging
from partitions.models import Membership, Partition, StagedChange
from people.models import TenantRole, User


def person_of(*tenants, name="ann", role=TenantRole.Role.VIEWER) -> User:
    person = User.objects.create(username=name)
    for tenant in tenants:
        TenantRole.objects.create(user=person, tenant=tenant, role=role)
    return person


def hostnames(user) -> set[str]:
    """Servers `user` sees, of which they must see every port and no other's."""
    seen = set(Server.objects.visible_to(user).values_list("hostname", flat=True))
    assert set(Port.objects.visible_to(user).values_list("hca__server__hostname", flat=True)) == seen
    assert Port.objects.visible_to(user).count() == Port.objects.filter(hca__server__hostname__in=seen).count()
    return seen


@pytest.fixture
def ann(provider):
    return person_of(provider.acme)


@pytest.fixture
def ben(provider):
    return person_of(provider.bert, name="ben")


def test_a_server_in_a_partition_is_its_tenants(provider, training, ann, ben):
    first, _ = provider.server(1), provider.server(2)
    assert hostnames(ann) == set()
    provider.move(first, None, training)
    rollout = provider.roll_out(provider.olga)
    assert hostnames(ann) == set()  # staged and not proven: nobody's yet
    provider.settle(rollout)
    assert hostnames(ann) == {"srv-001"}
    assert hostnames(ben) == set()
    provider.settled_move(first, training, None)
    assert hostnames(ann) == set()  # the proof of the removal ends it


def test_a_label_shows_it_too_but_never_another_tenants(provider, training, berts, ann, ben):
    server = provider.server(1)
    Server.objects.filter(pk=server.pk).update(tenant=provider.acme)
    assert hostnames(ann) == {"srv-001"}
    assert hostnames(ben) == set()
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    Server.objects.filter(pk=server.pk).update(tenant=provider.bert)
    assert hostnames(ann) == hostnames(ben) == set()  # until it is clean of Acme it is nobody's
    cleaning.mark_clean(server=server, actor=provider.olga, reason="wiped")
    assert hostnames(ben) == {"srv-001"}
    provider.settled_move(server, None, berts)
    Server.objects.filter(pk=server.pk).update(tenant=provider.acme)
    assert hostnames(ann) == set()  # a wrong label tells Acme nothing of Bert's server
    assert hostnames(ben) == {"srv-001"}


def test_two_tenants_of_one_person_lend_each_other_nothing(provider, training):
    both = person_of(provider.acme, provider.bert)
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.settled_move(server, training, None)
    Server.objects.filter(pk=server.pk).update(tenant=provider.bert)
    assert hostnames(both) == set()


def test_reviewers_see_all_and_strangers_nothing(provider, training):
    provider.settled_move(provider.server(1), None, training)
    auditor = User.objects.create(username="aud", role=User.Role.AUDITOR)
    for everything in (Server, Port, Partition, Membership, StagedChange):
        for reviewer in (provider.olga, auditor):
            assert everything.objects.visible_to(reviewer).count() == everything.objects.count()
        for stranger in (AnonymousUser(), User.objects.create(username=f"nobody of {everything.__name__}")):
            assert not everything.objects.visible_to(stranger).exists()


def test_a_port_without_a_server_is_seen_by_its_partition(provider, training, ann, ben):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    Port.objects.filter(hca__server=server).update(hca=None)
    assert Port.objects.visible_to(ann).count() == 2
    assert not Port.objects.visible_to(ben).exists()


def test_partitions_are_seen_by_their_tenant_and_shared_ones_by_who_is_in(provider, training, berts, storage, ann, ben):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    assert set(Partition.objects.visible_to(ann)) == {training}
    staging.stage_add(server=server, target=storage, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga))
    assert set(Partition.objects.visible_to(ann)) == {training, storage}
    assert set(Partition.objects.visible_to(ben)) == {berts}
    assert Membership.objects.visible_to(ann).count() == 4
    assert not Membership.objects.visible_to(ben).exists()


def test_of_staged_changes_a_tenant_sees_what_its_own_people_staged(provider, training, inference, ann, ben):
    server = provider.server(1)
    provider.settled_move(server, None, training)
    provider.move(server, training, inference)
    assert not StagedChange.objects.visible_to(ann).exists()  # what the provider means to do is not told before
    TenantRole.objects.create(user=provider.olga, tenant=provider.acme, role=TenantRole.Role.MEMBER)
    assert not StagedChange.objects.visible_to(ann).exists()  # also by somebody who is one of Acme's as well
    StagedChange.objects.update(for_tenant=provider.acme)
    assert StagedChange.objects.visible_to(ann).count() == 4
    assert not StagedChange.objects.visible_to(ben).exists()
    StagedChange.objects.update(for_tenant=provider.bert)  # in Acme's partitions: nobody's to see
    assert not StagedChange.objects.visible_to(ann).exists()
    assert not StagedChange.objects.visible_to(ben).exists()
