"""Acme learns nothing of Bert at any address, by any verb: both come from the role matrix, so that none is left out.

Each address is asked three times, by an administrator of Acme: for what is Acme's, for what is Bert's and for what
nobody has. Nothing that is Bert's stands in any answer, and the last two answers are the same to the letter.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pytest
from django.apps import apps
from django.urls import get_resolver, reverse
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from audit.values import SYSTEM
from fabricui import api  # noqa: F401  the rooms' scopes come with it
from inventory.models import HCA, Port, Server, Subnet
from live.hints import hints_of, tenant_audience
from partitions import operations as partitions
from partitions.models import Membership, Partition, StagedChange
from people import limits
from people.models import Tenant, TenantRole, User
from people.operations import create_token
from people.public_id import new_public_id
from portal import asking, moves, own_partitions
from portal.door import Seat
from portal.evidence import asking as evidence
from portal.evidence import signing
from portal.models import SignedEvidence, StorageOffer, Turn
from probes.models import IsolationCheck
from subnet.pkey import PKey
from tests.api.callers import EVERYTHING, Caller
from tests.people import matrix
from tests.people.everything import Everything, everything
from tests.people.test_roles import undone
from webhooks.operations import create_endpoint

pytestmark = pytest.mark.django_db

# What differs from one answer to the next whoever asks: tokens of forms, times, the number of the request.
MOVING = re.compile(
    r'csrfmiddlewaretoken" value="[^"]+|csrf-token" content="[^"]+|X-CSRFToken": "[^"]+|<time .*?</time>|'
    r'"request_id":"[^"]*"|<code>[0-9a-f-]{36}</code>|\d+\.\d+ s'
)
EACH_ITS_OWN = {"set-cookie", "x-request-id", "content-length", "etag", "expires"}
NOBODYS = "222222222222"
OWNER = matrix.PERSONAS.index("owner")


@dataclass
class Two:
    """Acme's administrator with browser and program, everything that there is, and what of it is Bert's."""

    site: Everything
    client: object
    program: Caller
    bert: Tenant
    other: User
    of_bert: Mapping[object, object]  # Acme's value in an address or a form → Bert's
    nobodys: Mapping[object, object]  # → what nobody has
    canaries: frozenset[str]


def _names(bert: Tenant, other: User) -> None:
    """Give everything of Bert's a name that stands nowhere else."""
    Tenant.objects.filter(pk=bert.pk).update(name="Canarybird Ltd", slug="canarybird", most_partitions=17)
    User.objects.filter(pk=other.pk).update(first_name="Canaryman", username="canary-user")
    for number, server in enumerate(Server.objects.filter(hcas__ports__memberships__partition__tenant=bert).distinct()):
        Server.objects.filter(pk=server.pk).update(hostname=f"canaryhost{number}", rack="canaryrack")
        Port.objects.filter(hca__server=server).update(seen_description="canary description")
    Partition.objects.filter(tenant=bert).update(name="canarynest")


def _canaries(bert: Tenant, other: User) -> frozenset[str]:
    servers = Server.objects.filter(hcas__ports__memberships__partition__tenant=bert).distinct()
    found = {"canary", bert.public_id, other.public_id, *servers.values_list("public_id", flat=True)}
    for partition in Partition.objects.filter(tenant=bert):
        found |= {partition.public_id, str(PKey(partition.pkey))}
    hcas = HCA.objects.filter(server__in=servers)
    found |= {str(guid) for guid in Port.objects.filter(hca__in=hcas).values_list("guid", flat=True)}
    return frozenset(found | {str(guid) for guid in hcas.values_list("node_guid", flat=True)})


@pytest.fixture
def two(db, client_of, monkeypatch, settings) -> Two:
    site = everything()
    acme, bert, other = Tenant.objects.get(slug="acme"), Tenant.objects.get(slug="bert"), site.people["other"]
    monkeypatch.setattr(limits, "REQUESTS_A_MINUTE", 1_000_000)  # a refusal is the same for all, and tells nothing
    settings.ACCOUNT_RATE_LIMITS = False
    Tenant.objects.update(moves="ALONE")
    server = Server.objects.get(public_id=site.arguments["portal:server"][1])
    theirs = Server.objects.filter(hcas__ports__memberships__partition__tenant=bert).first()
    research = Partition.objects.get(tenant=bert)
    their_port, own_port = (str(Port.objects.filter(hca__server=one).first().guid) for one in (theirs, server))
    storage = Partition.objects.get(tenant=None)  # the provider's: both are in it
    ports = Port.objects.filter(hca__server__in=(server, theirs))
    Membership.objects.bulk_create(Membership(partition=storage, port=port, kind="limited") for port in ports)
    StagedChange.objects.update(for_tenant=acme)
    StagedChange.objects.create(
        port=Port.objects.filter(hca__server=theirs).first(), partition=storage, kind_from="limited",
        by=other, at=timezone.now(), reason="canary",
    )  # fmt: skip
    token, _ = create_token(person=other, name="canary", lifetime=timezone.timedelta(days=1), actor=SYSTEM, tenant=bert)
    hook = {"name": "canary", "url": "https://canary.example/x", "kinds": ["rollout"], "actor": SYSTEM}
    webhook, _ = create_endpoint(**hook, tenant=bert)
    elsewhere = Partition.objects.create(
        subnet=Subnet.objects.create(name="canary"), name="canarystore", pkey=0x7EE, created_at=timezone.now()
    )
    StorageOffer.objects.create(partition=elsewhere, words="canary", by=other, at=timezone.now())
    seat = Seat(other, bert, TenantRole.Role.ADMIN)
    wish = asking.ask_more_servers(seat=seat, subnet=research.subnet, count=7, why="canary")
    wanted = evidence.ask(seat=seat)
    signing.tick(now=timezone.now())
    SignedEvidence.objects.filter(pk=wanted.pk).update(asked_at=timezone.now() - timezone.timedelta(hours=1))
    IsolationCheck.objects.filter(sender=server, target=theirs).update(
        state="DONE", verdict="ISOLATED", finished_at=timezone.now()
    )
    theirs_too = Turn.objects.create(
        tenant=bert, subnet=research.subnet, asked_by=other, asked_at=timezone.now(), state="OPERATOR", why="unsafe",
        told="canary",
    )  # fmt: skip
    of_bert = {
        site.arguments["api:turns_one"][0]: theirs_too.public_id,
        site.arguments["portal:evidence_document"][1]: wanted.public_id,
        site.arguments["api:requests_one"][0]: wish.public_id,
        acme.public_id: bert.public_id, server.public_id: theirs.public_id, own_port: their_port,
        site.people["viewer"].public_id: other.public_id, site.arguments["token_revoke"][0]: token.token_key,
        site.arguments["portal:settings_token_revoke"][1]: token.token_key,
        site.arguments["webhooks:endpoint"][0]: webhook.public_id,
        **dict.fromkeys(Partition.objects.filter(tenant=acme).values_list("public_id", flat=True), research.public_id),
    }  # fmt: skip
    kept = {"csv", "print", "reject", "all", "sso", "ALONE"}
    every = {value for values in site.arguments.values() for value in values} | set(of_bert)
    nobodys = {value: _nobodys(value) for value in every if value not in kept}
    # What is the provider's is not Acme's either; some rows of everything() are on servers of nobody.
    of_bert |= {value: value for value in every if value not in of_bert}
    _names(bert, other)
    owner = site.people["owner"]
    return Two(site, client_of(owner), Caller(owner, scopes=EVERYTHING), bert, other, of_bert, nobodys,
               _canaries(bert, other))  # fmt: skip


def _nobodys(value: object) -> object:
    if isinstance(value, int):
        return 999_999
    if str(value).startswith("0x"):
        return "0x7abc" if len(str(value)) == 6 else "0x0002c904ffffffff"
    return NOBODYS


def _asked(two: Two, name: str, verb: str, arguments: Iterable[object], form: Mapping[str, str]) -> tuple[object, ...]:
    """Status, headers and body of one answer, without what differs each time and what was asked for itself."""
    arguments = list(arguments)
    address = reverse(name, args=arguments)
    with undone():
        if name.startswith("api:"):
            answer = two.program.ask(verb, address.removeprefix("/api/v1/"), form)
        else:
            answer = two.client.generic(verb, address) if verb != "POST" else two.client.post(address, form)
    two.client.cookies.pop("messages", None)
    assert answer.status_code != 429, f"{address} was not answered: the caller asked too often"
    return _plain(answer, [address, *map(str, arguments), *form.values()])


def _plain(answer, asked: Iterable[str]) -> tuple[object, ...]:
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in EACH_ITS_OWN}
    text = MOVING.sub("", content.decode())
    return answer.status_code, _without(json.dumps(headers, sort_keys=True), asked), _without(text, asked)


def _without(text: str, asked: Iterable[str]) -> str:
    for word in sorted({word for word in asked if len(word) > 3}, key=len, reverse=True):
        text = text.replace(word, "·")
    return text


def _every(two: Two) -> Iterator[tuple[str, str, list[object], dict[str, str]]]:
    """Each address with each verb, and the form that it takes."""
    rows = matrix.rows()
    for name in matrix.addresses():
        for verb in matrix.verbs_of(name):
            if name in ("account_logout", "openid_connect_login", "openid_connect_callback") or name == "readyz":
                continue
            if (name, verb) not in rows and not name.startswith("api:"):
                continue  # told before anything is looked up
            form = two.site.forms.get(name, {}) if verb == "POST" else {}
            yield name, verb, two.site.arguments.get(name, []), form


def _apart(one: tuple[object, ...], other: tuple[object, ...]) -> str:
    """Where two answers begin to differ."""
    texts = [" ".join(map(str, answer)) for answer in (one, other)]
    same = next((place for place, pair in enumerate(zip(*texts, strict=False)) if len(set(pair)) == 2), 0)
    return " instead of ".join(repr(text[max(0, same - 60) : same + 120]) for text in texts)


def leaks(two: Two, only: Collection[str] = ()) -> Iterator[list[str]]:
    """What tells of Bert, in sentences, of each address that could; `only`: the names of the addresses to ask."""
    rows = matrix.rows()
    for name, verb, arguments, form in _every(two):
        if only and name not in only:
            continue
        found = []
        if rows[name, verb].answers[OWNER] != "-" if (name, verb) in rows else name.startswith("api:"):
            own = _asked(two, name, verb, arguments, form)
            found += [f"{name} {verb} says {canary}" for canary in two.canaries if canary in f"{own[1]} {own[2]}"]
        if not arguments and not form:
            yield from filter(None, [found])
            continue
        theirs, nobodys = (
            _asked(
                two, name, verb, [values.get(value, value) for value in arguments],
                {field: str(values.get(value, value)) for field, value in form.items()},
            )
            for values in (two.of_bert, two.nobodys)
        )  # fmt: skip
        found += [f"{name} {verb} says {canary}" for canary in two.canaries if canary in f"{theirs[1]} {theirs[2]}"]
        if theirs != nobodys:
            found.append(f"{name} {verb}: {_apart(theirs, nobodys)}")
        yield found


def test_no_answer_tells_of_him_and_what_is_his_is_like_what_is_nobodys(two):
    told = list(leaks(two))
    assert [sentence for found in told for sentence in found] == []
    assert len(told) > 100


def sights() -> dict[str, type]:
    """What says who sees what, by its model: a queryset, or a manager."""
    found = {}
    for model in apps.get_models():
        kinds = (type(model._default_manager.all()), type(model._default_manager))
        saying = [kind for kind in kinds if hasattr(kind, "visible_to")]
        found |= {model.__name__: saying[0]} if saying else {}
    return dict(sorted(found.items()))


# How many rows an administrator of Acme sees; there are more of each. Of what is not named: none.
SEEN: Final = {
    "Membership": 8,
    "Partition": 3,
    "Port": 6,
    "Server": 3,
    "SignedEvidence": 1,
    "StagedChange": 4,
    "Tenant": 1,
    "TenantEvent": 8,
    "TenantRequest": 1,
    "Token": 2,
    "Turn": 1,
    "User": 3,
}
# No address that is open to her asks for them.
BEHIND_A_ROLE: Final = {"IsolationCheck", "ProbeHost", "ProbePair", "ProbeRun", "ProbeScope", "User"}


# Pages and programs of a tenant ask for them by the tenant as well, because a person may have several.
BEHIND_A_SEAT: Final = {"SignedEvidence", "TenantEvent"}


def _seen(two: Two, name: str) -> tuple[int, int]:
    rows = apps.get_model(next(one for one in apps.get_models() if one.__name__ == name)._meta.label)._default_manager
    return rows.visible_to(two.site.people["owner"]).count(), rows.count()


def test_it_is_found_when_one_visible_to_is_removed(two, monkeypatch):
    """Each is taken away in turn: who sees how much changes, and so does what some address says of Bert."""
    before = {name: _seen(two, name) for name in sights()}
    assert {name: seen for name, (seen, _) in before.items() if seen} == SEEN
    assert all(seen < there for seen, there in before.values()), before
    rows = matrix.rows()
    open_to_her = {name for name, verb in rows if rows[name, verb].answers[OWNER] == "yes"}
    open_to_her.add("webhooks:endpoint")  # of a tenant's own, while the matrix tries the operators'
    assert not any(leaks(two, open_to_her))
    for name, kind in sights().items():
        with monkeypatch.context() as patch:
            patch.setattr(kind, "visible_to", lambda self, user: self.all())
            assert _seen(two, name) != before[name], name
            assert any(leaks(two, open_to_her)) == (name not in BEHIND_A_ROLE | BEHIND_A_SEAT), name


def test_no_filter_of_the_api_finds_him(two):
    """Each filter of each list with a value that is Bert's finds as much as with one that nobody has."""
    values = {
        "server": (two.of_bert[two.site.arguments["portal:server"][1]], NOBODYS),
        "partition": (two.of_bert[two.site.arguments["portal:partition"][1]], NOBODYS),
        "tenant": (two.bert.public_id, NOBODYS),
        "guid": (two.of_bert[two.site.arguments["api:ports_one"][0]], "0x0002c904ffffffff"),
        "pkey": ("0x3d02", "0x7abc"),
        "who": (two.other.public_id, NOBODYS),
    }
    tried = 0
    for name, kind in _lists():
        for field in getattr(kind, "filterset_class", None).base_filters if kind.filterset_class else ():
            theirs, nobodys = values.get(field, ("canaryhost0", "nobodyhost0"))
            answers = []
            for value in (theirs, nobodys):
                answer = two.program.get(f"{reverse(name).removeprefix('/api/v1/')}?{field}={value}")
                answers.append(_plain(answer, [str(value)]))
            assert answers[0] == answers[1], (name, field)
            tried += 1
    assert tried > 20


def _lists() -> Iterator[tuple[str, type]]:
    for pattern in get_resolver("fabricui.urls").url_patterns:
        if getattr(pattern, "namespace", None) == "api":
            for one in pattern.url_patterns:
                kind = getattr(one.callback, "cls", None)
                if kind is not None and not one.pattern.converters and "list" in one.callback.actions.values():
                    yield f"api:{one.name}", kind


def _all_pages(two: Two) -> dict[str, tuple[object, ...]]:
    """Everything that Acme may look at, with its headers; the answers' sizes are counts as well."""
    return {name: _asked(two, name, "GET", arguments, {}) for name, verb, arguments, _ in _every(two) if verb == "GET"}


def test_whatever_he_does_no_answer_of_hers_changes(two):
    before = _all_pages(two)
    assert sum(answer[0] == 200 for answer in before.values()) > 15
    seat = Seat(two.other, two.bert, TenantRole.Role.MEMBER)
    subnet = Partition.objects.get(tenant=two.bert).subnet
    servers = list(Server.objects.filter(hcas__ports__memberships__partition__tenant=two.bert).distinct())
    made = own_partitions.create(seat=seat, subnet=subnet, title="training")
    own_partitions.create(seat=seat, subnet=subnet, title="canarynest2")
    moves.move(seat=seat, server=servers[0], source=Partition.objects.get(name="canarynest"), target=made)
    new = Server.objects.create(subnet=subnet, hostname="canaryhost9")
    hca = HCA.objects.create(server=new, node_guid="0x0002c904000000c0", device="mlx5_0")
    Port.objects.create(
        subnet=subnet, hca=hca, guid="0x0002c904000000c1", confirmed_at=timezone.now(), confirmed_how="person"
    )
    partitions.stage_add(server=new, target=made, actor=two.site.people["operator"])
    TenantRole.objects.create(user=User.objects.create(username="canary2"), tenant=two.bert, role="ADMIN")
    assert StagedChange.objects.filter(partition=made).count() > 2
    after = _all_pages(two)
    assert [f"{name}: {_apart(before[name], after[name])}" for name in before if before[name] != after[name]] == []


def test_names_that_he_has_are_free_for_her(two):
    """His titles and names in the file: she is told nothing, gets what she asked for, and the key is not in line."""
    his = Partition.objects.get(tenant=two.bert)
    Partition.objects.filter(pk=his.pk).update(name="acme.nest", title="nest")
    keys = {his.pkey}
    Tenant.objects.update(most_partitions=20)
    address = reverse("portal:partitions", args=two.site.arguments["portal:servers"])
    for name in ("nest", "acme.nest", "canarynest", "x1", "x2", "x3", "x4", "x5"):
        page = two.client.post(address, {"name": name})
        assert page.status_code == 302, name
        made = Partition.objects.latest("pk")
        assert (made.title, made.tenant.slug) == (name, "acme")
        keys.add(made.pkey)
    ordered = sorted(keys)
    assert len(keys) == 9
    assert max(after - before for before, after in pairwise(ordered)) > 64  # drawn, not counted


def test_ids_are_drawn_and_stand_in_no_order():
    ids = [new_public_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    ascents = sum(before < after for before, after in pairwise(ids))
    assert 850 < ascents < 1150  # a counter has 1999; by chance it is outside once in 10^10
    for place in range(12):
        assert len({one[place] for one in ids}) == 31


@pytest.mark.parametrize("kind", ["server", "partition", "rollout", "tenant", "incident"])
def test_no_event_of_his_is_a_hint_for_her(kind):
    """Every action that there is, of Bert's and of nobody's; the stream sends what stands in her audience alone."""
    events = [
        Event(action=action.value, subject_kind=kind, subject_key="k", tenant_key=tenant)
        for action in Action
        for tenant in ("bert", "")
    ]
    assert set(hints_of(events)) <= {"provider", tenant_audience("bert")}
