"""A good day on a site of its own: two moves staged on a settled fabric, everything looked at, nothing wrong.

What the pages of `docs/` are taken from, and the only site whose plan is drawn up.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from django.utils import timezone

from audit import watch as trail
from audit.values import SYSTEM
from deploy import queries
from deploy.models import HostCheck, Observation, Rollout, Watch
from inventory.models import ManagerHost
from lab.pictures import rollouts
from lab.pictures.probed import Probed, add_host, ok
from lab.pictures.provider import Provider
from lab.pictures.scene import Scene
from people.models import Tenant, TenantRole, User
from probes import operations as probing
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings

# Which servers stand where, by number; the rest are in no partition.
HOMES: Final = {"training": range(1, 9), "inference": range(9, 13), "research": range(13, 18)}
SERVERS: Final = 20
RATES: Final = (391.0, 388.0, 379.0, 352.0, 390.0, 366.0)


def fill(provider: Provider) -> Scene:
    """Twenty servers, two tenants, a storage that they share; a proven rollout, and the next one staged."""
    of = {
        "training": provider.partition("training", provider.acme, 0x2C41),
        "inference": provider.partition("inference", provider.acme, 0x1B07),
        "research": provider.partition("research", provider.bert, 0x3D02),
        "storage": provider.partition("storage", None, 0x0100),
    }
    for number in range(1, SERVERS + 1):
        provider.server(number, state="ACTIVE", rate_text="400 Gb/sec (4X NDR)")
    for name, numbers in HOMES.items():
        for number in numbers:
            provider.move(provider.servers[number - 1], None, of[name])
    provider.settle(provider.roll_out(provider.olga, reason="racks 12 and 13"))
    proven = rollouts.tell_proven(Rollout.objects.latest("pk"))
    scene = Scene({"olga": provider.olga, "max": User.objects.create(username="max", first_name="Max")})
    TenantRole.objects.create(user=scene.people["max"], tenant=provider.acme, role=TenantRole.Role.MEMBER)
    Tenant.objects.update(moves="ALONE")
    probed = _probe(provider, of["training"])
    for number in (3, 4):
        provider.move(provider.servers[number - 1], of["training"], of["inference"])
    provider.move(provider.servers[17], None, of["research"], by=provider.otto)
    _look(provider)
    trail.tick(now=timezone.now())
    acme = provider.acme.public_id
    scene.places |= {
        "console:server": [provider.servers[0].public_id],
        "console:rollout": [proven.public_id],
        "console:rollout_proof": [proven.public_id],
        "console:partition": [of["training"].public_id],
        "probes:scope": [probed.scope.public_id],
        "probes:series": [probed.scope.public_id, probed.hosts[0].public_id, probed.hosts[1].public_id],
        "portal:servers": [acme],
        "portal:server": [acme, provider.servers[0].public_id],
        "portal:partitions": [acme],
    }
    return scene
