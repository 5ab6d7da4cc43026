"""Requests as tests need them: one of each kind, in any state."""

from portal import asking, deciding
from portal.models import TenantRequest

WHY = "the new model needs them"


def more(portal, who="max", count=2, **fields):
    seat = portal.seats[who]
    return asking.ask_more_servers(seat=seat, subnet=portal.provider.subnet, count=count, why=WHY, **fields)


def back(portal, *numbers, who="max"):
    servers = [portal.provider.servers[number] for number in numbers or (0,)]
    return asking.ask_to_return(seat=portal.seats[who], servers=servers, why=WHY)


def storage(portal, who="max", partition=None):
    deciding.offer_storage(partition=portal.site.storage, words="for checkpoints", actor=portal.provider.olga)
    return asking.ask_for_storage(
        seat=portal.seats[who], partition=partition or portal.site.training, storage=portal.site.storage, why=WHY
    )


def fresh(request):
    return TenantRequest.objects.whole().get(pk=request.pk)
