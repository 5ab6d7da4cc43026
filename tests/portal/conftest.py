"""Fixtures of the room portal: two tenants on one fabric; Acme's people look, and must not see Bert."""

from dataclasses import dataclass

import pytest
from django.urls import reverse

from partitions import operations
from people.actor import actor_of
from people.models import Tenant, TenantRole, User
from people.operations import give_role
from people.tenant_policy import set_tenant_policy
from portal import asking, deciding, moves, own_partitions
from portal.door import Seat
from portal.evidence import asking as evidence
from tests.console.conftest import Site, settled_site
from webhooks.operations import create_endpoint


@dataclass
class Portal:
    """The rows, Acme's people with their seats, and Bert's."""

    site: Site
    seats: dict[str, Seat]

    @property
    def provider(self):
        return self.site.provider

    @property
    def acme(self):
        return self.site.provider.acme

    def address(self, name, *args, tenant=None):
        return reverse(f"portal:{name}", args=[(tenant or self.acme).public_id, *args])

    def post(self, client, name, *args, **fields):
        return client.post(self.address(name, *args), fields)

    def fields(self, server, source, target):
        """The form of one move."""
        return {"server": server.public_id, "source": source.public_id, "target": target.public_id}


def people(site) -> dict[str, Seat]:
    """An administrator, a member, a second member and a viewer of Acme; Bert's administrator."""
    roles = {"anna": "ADMIN", "max": "MEMBER", "mia": "MEMBER", "vera": "VIEWER"}
    seats = {}
    for name, role in roles.items():
        person = User.objects.create(username=name, first_name=name.capitalize())
        TenantRole.objects.create(user=person, tenant=site.provider.acme, role=role)
        seats[name] = Seat(person, site.provider.acme, TenantRole.Role(role))
    bruno = User.objects.create(username="bruno", first_name="Bruno")
    TenantRole.objects.create(user=bruno, tenant=site.provider.bert, role="ADMIN")
    seats["bruno"] = Seat(bruno, site.provider.bert, TenantRole.Role.ADMIN)
    return seats


@pytest.fixture
def portal(db) -> Portal:
    site = settled_site()
    return Portal(site, people(site))


@pytest.fixture
def shared(portal):
    """Acme's first server is in the provider's storage too."""
    provider = portal.provider
    operations.stage_add(server=provider.servers[0], target=portal.site.storage, actor=provider.olga)
    provider.settle(provider.roll_out(provider.olga, reason="test"))
    return portal.site.storage


@pytest.fixture
def client(portal, client_of):
    """Max's browser."""
    return client_of(portal.seats["max"].person)


@pytest.fixture
def acme(portal):
    """Acme, whose moves roll out by themselves, with a fresh look at the fabric."""
    Tenant.objects.update(moves="ALONE")
    for seat in portal.seats.values():
        seat.tenant.refresh_from_db()
    portal.provider.observe()
    return portal


@pytest.fixture
def busy(acme):
    """One of each kind: by Max, by an operator, and the same by Bert's."""
    site, provider = acme.site, acme.provider
    max_, bruno = acme.seats["max"], acme.seats["bruno"]
    moves.move(seat=max_, server=provider.servers[0], source=site.training, target=site.inference)
    made = own_partitions.create(seat=max_, subnet=provider.subnet, title="eval")
    own_partitions.rename(seat=max_, partition=made, title="judge")
    asked = asking.ask_more_servers(seat=max_, subnet=provider.subnet, count=2, why="more")
    deciding.decline(request=asked, actor=provider.olga, answer="None left until Friday.")
    create_endpoint(name="chat", url="https://chat.example/x", kinds=["rollout"], actor=actor_of(max_.person),
                    tenant=acme.acme)  # fmt: skip
    evidence.ask(seat=max_)
    set_tenant_policy(tenant=acme.acme, moves="ALONE", most_servers=9, most_partitions=5, most_rollouts_per_hour=6,
               actor=actor_of(provider.olga), reason="canary reason")  # fmt: skip
    give_role(person=acme.seats["vera"].person, tenant=acme.acme, role="MEMBER", actor=actor_of(provider.olga))
    asking.ask_more_servers(seat=bruno, subnet=provider.subnet, count=7, why="canary")
    own_partitions.create(seat=bruno, subnet=provider.subnet, title="canary")
    return acme
