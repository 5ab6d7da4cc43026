"""Acme's people with their requests, and a person who acts for two tenants."""

from datetime import timedelta

from django.utils import timezone

from audit.values import SYSTEM
from lab.pictures.settled import Site
from people.models import Tenant, TenantRole, User
from people.operations import create_token
from portal import asking, deciding
from portal.door import Seat
from portal.evidence import asking as evidence_asking
from portal.evidence import signing
from webhooks.operations import create_endpoint

WHY = "the new model needs them"


def fill(site: Site, people: dict[str, User], places: dict[str, list[object]]) -> None:
    """Max of Acme with a request of each kind, Dora of both tenants; what stands in the addresses of their pages."""
    provider, acme = site.provider, site.provider.acme
    Tenant.objects.update(moves="ALONE")
    people["max"], people["both"] = (
        User.objects.create(username=name, first_name=name.title()) for name in ("max", "dora")
    )
    TenantRole.objects.create(user=people["max"], tenant=acme, role=TenantRole.Role.MEMBER)
    people["anna"] = User.objects.create(username="anna", first_name="Anna")
    TenantRole.objects.create(user=people["anna"], tenant=acme, role=TenantRole.Role.ADMIN)
    create_token(person=people["max"], name="deploy", lifetime=timedelta(days=30), actor=SYSTEM, tenant=acme)
    create_endpoint(name="chat", url="https://chat.example/x", kinds=["rollout"], actor=SYSTEM, tenant=acme)
    for tenant in (acme, provider.bert):
        TenantRole.objects.create(user=people["both"], tenant=tenant, role=TenantRole.Role.VIEWER)
    seat = Seat(people["max"], Tenant.objects.get(pk=acme.pk), TenantRole.Role.MEMBER)
    more = asking.ask_more_servers(seat=seat, subnet=provider.subnet, count=2, why=WHY, partition=site.training)
    deciding.offer_storage(partition=site.storage, words="for checkpoints", actor=provider.olga)
    storage = asking.ask_for_storage(seat=seat, partition=site.training, storage=site.storage, why="for checkpoints")
    deciding.decline(request=storage, actor=provider.olga, answer="It is full until Friday.")
    evidence = evidence_asking.ask(seat=seat)
    signing.tick(now=timezone.now())
    of_acme: dict[str, list[object]] = {"servers": [], "partitions": [], "requests": [], "evidence": []}
    of_acme |= {"activity": [], "settings": [], "settings_webhooks": []}
    of_acme |= {"evidence_document": [evidence.public_id], "server": [provider.servers[0].public_id]}
    of_acme |= {"partition": [site.training.public_id], "request": [more.public_id]}
    places |= {f"portal:{name}": [acme.public_id, *rest] for name, rest in of_acme.items()}
    places |= {"portal-request-declined": [acme.public_id, storage.public_id]}
    places |= {"portal:operator_request": [more.public_id]}
