"""A good day on a site of its own: two moves staged on a settled fabric, everything looked at, nothing wrong.

What the pages of `docs/` are taken from, and the only site whose plan is drawn up.
"""

from typing import Final

from allauth.mfa.totp.internal.auth import TOTP
from django.utils import timezone

from audit.values import SYSTEM
from audit.watch import every_minute
from deploy.models import Rollout, Watch
from lab.pictures import rollouts
from lab.pictures.probed import Probed, add_host, ok
from lab.pictures.provider import Provider
from lab.pictures.scene import Scene
from partitions import staging
from partitions.models import Partition
from people.models import Tenant, TenantRole, User
from probes import operations as probing
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings
from subnet.pkey import Membership

# Which servers stand where, by number; the rest are in no partition.
HOMES: Final = {"training": range(1, 9), "inference": range(9, 13), "research": range(13, 18), "storage": range(19, 20)}
SHARING: Final = (1, 2, 5, 6)  # have the storage as well
SERVERS: Final = 20
RATES: Final = (391.0, 388.0, 384.0, 392.0, 390.0, 386.0)  # Gb/s of a line of 400
WORSE: Final = 367.0


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
    for number in SHARING:
        staging.stage_add(
            server=provider.servers[number - 1],
            target=of["storage"],
            membership=Membership.LIMITED,
            actor=provider.olga,
        )
    provider.settle(provider.roll_out(provider.olga, reason="racks 12 and 13"))
    proven = rollouts.tell_proven(Rollout.objects.latest("pk"), ports=2 * SERVERS + 2)
    TOTP.activate(provider.olga, "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    scene = Scene({"olga": provider.olga, "max": User.objects.create(username="max", first_name="Max")})
    TenantRole.objects.create(user=scene.people["max"], tenant=provider.acme, role=TenantRole.Role.MEMBER)
    Tenant.objects.update(moves="ALONE")
    probed = _probe(provider, of["training"])
    for number in (3, 4):
        provider.move(provider.servers[number - 1], of["training"], of["inference"])
    provider.move(provider.servers[17], None, of["research"], by=provider.otto)
    _look(provider)
    every_minute()  # of the trail: checked, signed, anchored
    acme, training = provider.acme.public_id, of["training"].public_id
    scope, first = probed.scope.public_id, provider.servers[0].public_id
    one, other = (host.public_id for host in probed.hosts[:2])
    scene.places |= {
        "console:server": [first], "console:partition": [training],
        "console:rollout": [proven.public_id], "console:rollout_proof": [proven.public_id],
        "probes:scope": [scope], "probes:series": [scope, one, other],
        "portal:servers": [acme], "portal:server": [acme, first], "portal:partitions": [acme],
    }  # fmt: skip
    return scene


def _look(provider: Provider) -> None:
    """A fresh look at both managers and every port, and a watch that found nothing else than it should."""
    seen = provider.observe()
    seen.managers[1] |= {"role": "STANDBY"}
    seen.save()
    now = timezone.now()
    Watch.objects.create(
        subnet=provider.subnet, next_at=now, checked_at=now, covered_at=now, ports=2 * SERVERS + 2,
        managers=seen.managers,
    )  # fmt: skip


def _probe(provider: Provider, training: Partition) -> Probed:
    """Every pair of training measured, one cable worse than the others."""
    hosts = [add_host(provider.servers[number - 1], provider) for number in HOMES["training"]]
    probing.set_consent(tenant=provider.acme, is_given=True, actor=SYSTEM)
    scope = probing.scope_of_partition(partition=training, actor=SYSTEM)
    settings = ScopeSettings(is_enabled=True, profiles=("link",), interval_s=300, budget=4, mode=LoadMode.LOADED)
    probed = Probed(provider, training, probing.change_settings(scope=scope, settings=settings, actor=SYSTEM), hosts)
    for sender in range(len(hosts)):
        for target in range(len(hosts)):
            if sender != target:
                rate = WORSE if 6 in (sender, target) else RATES[(sender * 3 + target * 5) % len(RATES)]
                probed.run(ok(rate), sender=sender, target=target, at=timezone.now())
    return probed
