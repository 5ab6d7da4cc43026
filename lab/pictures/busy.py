"""Something of everything on the settled site: staged moves of two people, trouble, rollouts, drift, requests."""

from datetime import timedelta

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.utils import timezone

from audit.models import Event
from audit.values import SYSTEM
from deploy.models import HostCheck
from inventory.models import EnrolmentToken, HistoryEntry, ManagerHost, Port, PortConflict, Server, ServerCredential
from lab.pictures import drifted, portal, rollouts
from lab.pictures.probed import Probed, add_host, lost, ok
from lab.pictures.provider import Provider
from lab.pictures.scene import Scene
from lab.pictures.settled import Site
from partitions import operations
from people.models import User
from probes import operations as probing
from probes.models import Incident, IsolationCheck, ProbeRun
from probes.operations.isolation import store
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings
from probes.verdict import Isolation, Judged
from subnet.default import OPEN
from webhooks.operations import create_endpoint

LEAF = "0x0002c90200000010"


def fill(site: Site) -> Scene:
    """Put it all on a settled site."""
    provider, now = site.provider, timezone.now()
    provider.move(provider.servers[0], site.training, site.inference)
    provider.move(provider.servers[2], site.inference, site.training, by=provider.otto)
    provider.move(provider.servers[1], site.training, site.research)
    Port.objects.filter(hca__server=provider.servers[4]).update(confirmed_at=None)
    PortConflict.objects.create(
        port=Port.objects.filter(hca__server=provider.servers[5]).earliest("pk"),
        claimed_by=provider.servers[4],
        claim={"device": "mlx5_0", "state": "ACTIVE"},
        evidence={"hints": ["Both say that the port's link is up. A port is in one machine: one of the two is wrong."]},
    )
    _witnesses(provider)
    operations.stage_default(subnet=provider.subnet, keywords=OPEN, members=(), actor=provider.olga, reason="ticket 9")
    seen = provider.observe()
    seen.managers[1] |= {"role": "", "error": drifted.NO_ANSWER}
    seen.save()
    of_state = rollouts.of_each_state(provider)
    facts = {
        "options": {"sm_priority": "5"}, "is_pinned": False, "opensm_version": "3.3.23",
        "pieces": [
            ["python", True, "/usr/bin/python3 3.11"],
            ["umad", False, "There is no /dev/infiniband/umad*. Load the module: modprobe ib_umad."],
        ],
    }  # fmt: skip
    HostCheck.objects.create(
        host=ManagerHost.objects.earliest("pk"), requested_by_name="Olga", requested_at=now, finished_at=now,
        state="DONE", facts=facts,
    )  # fmt: skip
    difference = drifted.everything(site)
    scene = Scene({"olga": provider.olga})
    scene.people["admin"] = User.objects.create(username="petra", first_name="Petra", role=User.Role.ADMIN)
    scene.people["guarded"] = _with_second_factor()
    scene.people["stranger"] = User.objects.create(username="charlie", first_name="Charlie")
    first, fifth = provider.servers[0], provider.servers[4]
    scene.places |= {
        "server-quiet": [provider.servers[3].public_id],
        "server-between": [provider.servers[1].public_id],
        "console:server": [fifth.public_id],
        "console:replacement": [provider.servers[5].public_id],
        "console:manager": [ManagerHost.objects.get(name="m1").public_id],
        "console:qualification": [provider.subnet.public_id],
        "console:adoption": [provider.subnet.public_id],
        "console:difference": [difference.public_id],
        "console:leaf": [LEAF],
        "console:port_history": [str(Port.objects.earliest("pk").guid)],
        "console:pkey_history": ["0x2c41"],
        "console:rollout_proof": [of_state["proven"].public_id],
        "probes:around_rollout": [of_state["proven"].public_id],
        "console:audit_export": ["print"],
        "console:person": [provider.otto.public_id],
        "console:tenant": [provider.acme.public_id],
        # The first server of each is on its way out, or on its way in; the third holds nothing.
        "partition": [site.training.public_id],
        "partition-other": [site.research.public_id],
        "partition-storage": [site.storage.public_id],
    }
    scene.places |= {f"rollout-{name}": [rollout.public_id] for name, rollout in of_state.items()}
    portal.fill(site, scene.people, scene.places)
    _probes(site, scene)
    webhook, _ = create_endpoint(name="on-call", url="https://hooks.example.com/x", kinds=["stuck"], actor=SYSTEM)
    scene.places["webhooks:endpoint"] = [webhook.public_id]
    event = Event.objects.filter(subject_label__contains=first.hostname).order_by("-number").first()
    scene.places["console:audit_event"] = [(event or Event.objects.latest("number")).number]
    then = Event.objects.filter(action="deploy:rollout:proven").latest("number").at
    scene.words["then"] = then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return scene


def _with_second_factor() -> User:
    """Somebody who set one up long ago."""
    person: User = User.objects.create(username="greta", first_name="Greta", role=User.Role.OPERATOR)
    TOTP.activate(person, "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(person)
    return person


def _witnesses(provider: Provider) -> None:
    """Both witnesses on the fifth and the sixth server, in and out of agreement; a stray, a card that was replaced."""
    now = timezone.now()
    moved = (
        f"It was confirmed at {LEAF} port 4 and is at {LEAF} port 9 now. Confirm it there if it was re-cabled on "
        "purpose."
    )
    points = [
        ["subnet", "0xfe80000000000000", "0xfe80000000000000", "agrees", ""],
        [
            "leaf and port",
            f"{LEAF} port 4",
            f"{LEAF} port 9",
            "disagrees",
            moved,
        ],
        ["SM LID", "", "LID 1", "unprovable", "The server knows no subnet manager for the port."],
    ]
    ports = Port.objects.filter(hca__server__in=provider.servers[4:6])
    ports.update(testimony="disagrees", points=points, seen_at=now, seen_state="ACTIVE", leaf_guid=LEAF, leaf_port=9,
                 home_leaf_guid=LEAF, home_leaf_port=4, seen_description="srv-005 mlx5_0")  # fmt: skip
    gone = Port.objects.filter(hca__server=provider.servers[5]).earliest("pk")
    Port.objects.filter(pk=gone.pk).update(seen_state="ABSENT", missing_since=now)
    Port.objects.create(subnet=provider.subnet, guid="0x0002c906000000a1", seen_at=now, seen_state="ACTIVE",
                        leaf_guid=LEAF, leaf_port=17, seen_description="stranger")  # fmt: skip
    HistoryEntry.objects.create(server=provider.servers[4], at=now, kind="REBOOT", witness="SERVER", what="srv-005",
                                before="boot-1", after="boot-2")  # fmt: skip
    EnrolmentToken.objects.create(subnet=provider.subnet, name="rack 12", digest="d", uses_left=3, expires_at=now)
    good = EnrolmentToken.objects.create(
        subnet=provider.subnet, name="rack 13", digest="e", uses_left=24, expires_at=now + timedelta(days=1),
        rack="13", hostnames="r13-*,spare-0?", networks="10.1.13.0/24,fd00:13::/64",
    )  # fmt: skip
    EnrolmentToken.objects.create(subnet=provider.subnet, name="gone", digest="f", expires_at=now, revoked_at=now)
    ServerCredential.objects.create(server=provider.servers[4], digest="g", token=good, is_to_be_renewed=True)
    Server.objects.filter(pk=provider.servers[4].pk).update(
        rack="r12", unit="4", tenant=provider.acme, reported_at=now - timedelta(hours=9), report={"ports": []}
    )


def _probes(site: Site, scene: Scene) -> None:
    """A scope with good and failed runs, an incident, and a check of isolation."""
    provider, now = site.provider, timezone.now()
    hosts = [add_host(server, provider) for server in provider.servers[:4]]
    probing.set_consent(tenant=provider.acme, is_given=True, actor=SYSTEM)
    scope = probing.scope_of_partition(partition=site.training, actor=SYSTEM)
    settings = ScopeSettings(is_enabled=True, profiles=("link",), interval_s=300, budget=4, mode=LoadMode.LOADED)
    scope = probing.change_settings(scope=scope, settings=settings, actor=SYSTEM)
    probed = Probed(provider, site.training, scope, hosts)
    probed.run(ok())
    for _ in range(2):
        probed.run(lost(), sender=1, target=0)
    check = IsolationCheck.objects.create(
        subnet=provider.subnet, plane="CONTROL", cause="SCHEDULE", asked_at=now, state="RUNNING",
        sender=provider.servers[0], target=provider.servers[3], sender_tenant="acme", target_tenant="bert",
    )  # fmt: skip
    sentence = (
        "The SA refuses a path between the two, and gave the same asker paths to both before and after. "
        "This is the SM’s view only."
    )
    store(check, judged=Judged(Isolation.ISOLATED, False, sentence), evidence={}, now=now)
    assert Incident.objects.exists()  # noqa: S101  two lost runs in a row are one
    one, other = hosts[0].public_id, hosts[1].public_id
    scene.places |= {
        "probes:scope": [scope.public_id], "probes:settings": [scope.public_id],
        "probes:server": [scope.public_id, one], "probes:series": [scope.public_id, one, other],
        "probes:run": [ProbeRun.objects.latest("pk").public_id], "probes:isolation_check": [check.public_id],
    }  # fmt: skip
