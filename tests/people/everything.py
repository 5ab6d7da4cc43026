"""One row of everything that an address can name, so that nothing but a person's role decides what they get."""

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from audit.models import Event
from audit.values import SYSTEM
from deploy.models import Qualification, Rollout
from inventory.models import EnrolmentToken, ManagerHost, Port, PortConflict, ServerCredential
from people.models import Tenant, TenantRole, User
from people.operations import create_token
from portal import asking
from portal.door import Seat
from portal.evidence import asking as evidence
from portal.evidence import signing
from portal.models import Turn
from probes import operations
from probes.models import Incident, IsolationCheck, ProbeRun
from probes.schedule import LoadMode
from probes.settings_of_scope import ScopeSettings
from tests.console.conftest import settled_site
from tests.console.drifted import drifted
from tests.people.codes import set_up
from tests.people.matrix import PERSONAS
from tests.probes.site import Probed, add_host, lost, ok
from webhooks.operations import create_endpoint

LEAF = "0x0002c90200000010"


@dataclass
class Everything:
    """Who there is, and what stands in addresses and forms."""

    people: dict[str, User]
    arguments: dict[str, list[object]]
    forms: dict[str, dict[str, str]]


def _people(acme: Tenant, other: Tenant) -> dict[str, User]:
    made = {name: User.objects.create(username=f"the-{name}", first_name=name) for name in PERSONAS[1:]}
    for name in ("auditor", "operator", "admin"):
        User.objects.filter(pk=made[name].pk).update(role=name.upper())
    roles = {
        "other": (other, "MEMBER"),
        "viewer": (acme, "VIEWER"),
        "member": (acme, "MEMBER"),
        "owner": (acme, "ADMIN"),
    }
    for name, (tenant, role) in roles.items():
        TenantRole.objects.create(user=made[name], tenant=tenant, role=role)
    for person in made.values():
        set_up(person)
    return {name: User.objects.get(pk=person.pk) for name, person in made.items()}


def everything() -> Everything:
    """Make it all: rows of each room, and the people of the matrix."""
    site = settled_site()
    provider, now = site.provider, timezone.now()
    people = _people(provider.acme, provider.bert)
    rollout = Rollout.objects.latest("pk")
    provider.move(provider.servers[0], site.training, site.inference)
    look = provider.observe()
    port = Port.objects.filter(hca__server=provider.servers[5]).first()
    Port.objects.update(leaf_guid=LEAF, leaf_port=9, seen_at=now, seen_state="ACTIVE")
    conflict = PortConflict.objects.create(port=port, claimed_by=provider.servers[4], claim={})
    enrolment = EnrolmentToken.objects.create(
        subnet=provider.subnet, name="r1", digest="d" * 64, expires_at=now + timedelta(hours=1)
    )
    ServerCredential.objects.create(server=provider.servers[0], digest="c" * 64)
    drift = drifted(site)
    token, _ = create_token(person=people["owner"], name="own", lifetime=timedelta(days=1), actor=SYSTEM)
    probed = _probes(provider, site.training)
    check = IsolationCheck.objects.create(
        subnet=provider.subnet, plane="CONTROL", cause="NOW", asked_at=now, sender=provider.servers[0],
        target=provider.servers[3],
        sender_guid=str(port.guid), target_guid=str(port.guid), sender_tenant="acme", target_tenant="bert",
    )  # fmt: skip
    ids = {
        "rollout": rollout.public_id, "server": provider.servers[0].public_id, "subnet": provider.subnet.public_id,
        "manager": ManagerHost.objects.first().public_id, "partition": site.inference.public_id,
        "scope": probed.scope.public_id, "drift": drift.public_id,
    }  # fmt: skip
    hosts = [host.public_id for host in probed.hosts]
    arguments: dict[str, list[object]] = {
        "console:conflict_decide": [conflict.pk, "reject"],
        "console:leaf": [LEAF],
        "console:first_run_check": [ids["manager"]],
        "console:token_revoke": [enrolment.pk],
        "console:labels_export": ["csv"],
        "console:audit_event": [Event.objects.latest("number").number],
        "console:audit_export": ["print"],
        "console:port_history": [str(port.guid)],
        "console:port_confirm": [str(port.guid)],
        "console:pkey_history": ["0x2c41"],
        "console:rollout_proof": [ids["rollout"]],
        "console:credential_rotate": [ids["server"]],
        "console:credential_revoke": [ids["server"]],
        "console:replacement": [ids["server"]],
        "console:replacement_undo": [ids["server"]],
        "console:difference": [ids["drift"]],
        "probes:begin": [ids["partition"]],
        "probes:consent": [provider.acme.public_id],
        "probes:scope": [ids["scope"]],
        "probes:now": [ids["scope"]],
        "probes:settings": [ids["scope"]],
        "probes:export": [ids["scope"], "csv"],
        "probes:server": [ids["scope"], hosts[0]],
        "probes:series": [ids["scope"], hosts[0], hosts[1]],
        "probes:run": [ProbeRun.objects.first().public_id],
        "probes:around_rollout": [ids["rollout"]],
        "probes:isolation_check": [check.public_id],
        "probes:acknowledge": [Incident.objects.first().public_id],
        "openid_connect_login": ["sso"],
        "openid_connect_callback": ["sso"],
        "token_revoke": [token.token_key],
    }
    webhook, _ = create_endpoint(name="on-call", url="https://hooks.example.com/x", kinds=["stuck"], actor=SYSTEM)
    for step in ("endpoint", "test", "on", "off", "secret", "remove"):
        arguments[f"webhooks:{step}"] = [webhook.public_id]
    for room in ("rollout", "server", "manager", "partition"):
        arguments[f"console:{room}"] = [ids[room]]
    for step in ("cancel", "accept", "confirm", "check", "release"):
        arguments[f"console:rollout_{step}"] = [ids["rollout"]]
    for name in (
        "server_clean",
        "manager_check",
        "manager_retire",
        "partition_rename",
        "partition_retire",
        "drift_adopt",
    ):
        arguments[f"console:{name}"] = [ids[name.partition("_")[0]]]
    for page in ("qualification", "adoption"):
        for step in ("", "_run", "_sign", "_mode", "_look", "_adopt", "_place", "_default"):
            arguments[f"console:{page}{step}"] = [ids["subnet"]]
    for step in (
        "",
        "_role",
        "_give_role",
        "_take_role",
        "_lock",
        "_unlock",
        "_second_factor",
        "_sessions",
        "_password",
    ):
        arguments[f"console:person{step}"] = [people["viewer"].public_id]
    arguments |= _of_the_api(site, ids, drift, probed, check, look)
    for step in ("", "_suspend", "_resume", "_empty", "_finish"):
        arguments[f"console:tenant{step}"] = [provider.acme.public_id]
    arguments["console:tenant_policy"] = [provider.acme.public_id]
    narrow, _ = create_token(
        person=people["member"], name="narrow", lifetime=timedelta(days=1), actor=SYSTEM, tenant=provider.acme
    )
    ids |= {"viewer": people["viewer"].public_id, "token": narrow.token_key}
    _portal(arguments, ids, provider.acme.public_id)
    arguments |= _requests(people["member"], provider)
    arguments |= _evidence(people["member"], provider.acme)
    forms = {
        "console:board_move": {
            "server": ids["server"], "source": site.training.public_id, "target": site.inference.public_id,
        },
        "console:board_membership": {
            "server": ids["server"], "partition": site.training.public_id, "membership": "limited",
        },
        "portal:move": {
            "server": ids["server"], "source": site.training.public_id, "target": site.inference.public_id,
        },
        "portal:settings": {"name": "Nina", "role": "VIEWER"},
        "portal:person_role": {"role": "MEMBER"},
        "portal:take_back": {"server": ids["server"]},
        "portal:operator_offer": {"partition": site.storage.public_id},
        "console:tenant_policy": {"moves": "ALONE", "most_partitions": "4", "most_rollouts_per_hour": "2"},
        "console:plan": {"observation": look.public_id, "selection": "all"},
        "console:adoption_adopt": {"observation": look.public_id},
        "console:adoption_place": {"observation": look.public_id},
        "console:adoption_default": {"how": "discard"},
        "console:person_give_role": {"tenant": provider.acme.public_id, "role": "ADMIN"},
        "console:person_take_role": {"tenant": provider.acme.public_id},
        "console:qualification_sign": {"report": Qualification.objects.latest("pk").public_id},
    }  # fmt: skip
    return Everything(people, arguments, forms)


def _of_the_api(site, ids, drift, probed, check, look) -> dict[str, list[object]]:
    one = {
        "servers": ids["server"], "ports": str(Port.objects.filter(hca__server__public_id=ids["server"]).first().guid),
        "partitions": site.training.public_id, "plans": "all", "looks": look.public_id, "subnets": ids["subnet"],
        "revisions": Rollout.objects.latest("pk").revision.public_id, "rollouts": ids["rollout"],
        "drift": drift.public_id, "probes_scopes": ids["scope"], "probes_runs": ProbeRun.objects.first().public_id,
        "probes_isolation": check.public_id, "audit_events": 1, "tenants": site.provider.acme.public_id,
    }  # fmt: skip
    acts = ("cancel", "confirm", "accept", "check", "release")
    turn = Turn.objects.create(
        tenant=site.provider.acme, subnet=site.provider.subnet, asked_by=site.provider.olga, asked_at=timezone.now(),
        next_try_at=timezone.now() + timedelta(hours=1), why="busy",
    )  # fmt: skip
    of_rollout = {f"api:rollouts_{act}": [ids["rollout"]] for act in acts}
    one["turns"] = turn.public_id
    return {f"api:{name}_one": [key] for name, key in one.items()} | of_rollout


def _portal(arguments, ids, acme) -> None:
    """What stands in the addresses of a tenant's pages."""
    pages = (
        "servers",
        "partitions",
        "move",
        "take_back",
        "try_again",
        "evidence_key",
        "evidence_verifier",
        "activity",
        "settings",
        "settings_webhooks",
    )
    for name in pages:
        arguments[f"portal:{name}"] = [acme]
    arguments["portal:activity_export"] = [acme, "csv"]
    arguments["portal:server"] = [acme, ids["server"]]
    for name in ("partition", "partition_rename", "partition_retire"):
        arguments[f"portal:{name}"] = [acme, ids["partition"]]
    for name in ("person_role", "person_remove"):
        arguments[f"portal:{name}"] = [acme, ids["viewer"]]
    arguments["portal:settings_token_revoke"] = [acme, ids["token"]]


def _requests(member, provider) -> dict[str, list[object]]:
    """A request of a member of Acme, in the addresses of its tenant's pages, the operator's and the API's."""
    seat = Seat(member, provider.acme, TenantRole.Role.MEMBER)
    key = asking.ask_more_servers(seat=seat, subnet=provider.subnet, count=1, why="more").public_id
    acme = provider.acme.public_id
    found: dict[str, list[object]] = {
        "portal:requests": [acme],
        "api:requests_comment": [key],
        "api:requests_one": [key],
    }
    for name in ("request", "request_comment", "request_withdraw"):
        found[f"portal:{name}"] = [acme, key]
    for name in ("request", "approve", "decline", "reopen", "comment"):
        found[f"portal:operator_{name}"] = [key]
    return found


def _evidence(member, acme) -> dict[str, list[object]]:
    """A signed document of Acme's; asked for long enough ago that another may be."""
    seat = Seat(member, acme, TenantRole.Role.MEMBER)
    row = evidence.ask(seat=seat)
    signing.tick(now=timezone.now())
    type(row).objects.update(asked_at=timezone.now() - timedelta(hours=1))
    its = [acme.public_id, row.public_id]
    return {"portal:evidence": its[:1], "portal:evidence_document": its, "portal:evidence_download": its}


def _probes(provider, partition) -> Probed:
    hosts = [add_host(server, provider) for server in provider.servers[:4]]
    operations.set_consent(tenant=provider.acme, is_given=True, actor=SYSTEM)
    scope = operations.scope_of_partition(partition=partition, actor=SYSTEM)
    settings = ScopeSettings(is_enabled=True, profiles=("link",), interval_s=300, budget=4, mode=LoadMode.LOADED)
    probed = Probed(
        provider, partition, operations.change_settings(scope=scope, settings=settings, actor=SYSTEM), hosts
    )
    probed.run(ok())
    for _ in range(2):
        probed.run(lost(), sender=1, target=0)
    return probed
