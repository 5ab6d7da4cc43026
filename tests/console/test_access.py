"""Who may see and do what: operators act, auditors read, strangers learn nothing, anonymous people sign in."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from deploy import decisions
from deploy.models import Observation, Revision, Rollout
from inventory.labels import read
from inventory.models import EnrolmentToken, ManagerHost, Port, PortConflict, ServerCredential
from inventory.operations import preview_labels
from partitions.models import Partition, StagedChange
from partitions.selection import Selection
from people.models import Tenant
from tests.console.drifted import drifted

GONE = "0x0002c9040000ffff"
HOUR = timedelta(hours=1)
PAGES = [
    "board", "plan", "rollouts", "servers", "managers", "drift", "partitions", "audit", "conflicts", "leaves", "strays",
    "enrolment", "labels", "as_of", "audit_export", "first_run", "glossary",
]  # fmt: skip
POSTS = [
    "board_move", "board_discard", "board_undo",
    "plan", "plan_look", "rollout_cancel", "rollout_check", "rollout_release",
    "rollout_accept",
    "port_confirm", "conflict_decide", "managers_look", "partitions", "board_membership", "server_clean",
    "partition_rename", "partition_retire", "drift_put_back", "drift_look", "drift_restoring", "drift_adopt",
    "enrolment", "labels", "replacement", "as_of_stage", "token_revoke", "first_run_create",
    "first_run_check", "credential_rotate", "credential_revoke",
]  # fmt: skip


def address(name: str, site) -> str:
    if name.startswith("rollout_"):
        return reverse(f"console:{name}", args=[Rollout.objects.first().public_id])
    if name == "port_confirm":
        return reverse("console:port_confirm", args=[Port.objects.first().guid])
    if name == "conflict_decide":
        provider = site.provider
        conflict, _ = PortConflict.objects.get_or_create(
            port=Port.objects.filter(hca__server=provider.servers[4]).first(),
            claimed_by=provider.servers[5],
            claim={},
        )
        return reverse("console:conflict_decide", args=[conflict.pk, "reject"])
    if name == "first_run_check":
        return reverse("console:first_run_check", args=[ManagerHost.objects.first().public_id])
    if name == "token_revoke":
        token, _ = EnrolmentToken.objects.get_or_create(
            subnet=site.provider.subnet, name="r1", digest="d" * 64, defaults={"expires_at": timezone.now() + HOUR}
        )
        return reverse("console:token_revoke", args=[token.pk])
    if name.startswith("credential_"):
        ServerCredential.objects.get_or_create(server=site.provider.servers[0], digest="c" * 64)
        return reverse(f"console:{name}", args=[site.provider.servers[0].public_id])
    if name == "replacement":
        return reverse("console:replacement", args=[provider_server(site).public_id])
    if name == "server_clean":
        return reverse("console:server_clean", args=[site.provider.servers[5].public_id])
    if name == "drift_adopt":
        return reverse("console:drift_adopt", args=[drifted(site).public_id])
    if name in ("partition_rename", "partition_retire"):
        return reverse(f"console:{name}", args=[site.storage.public_id])
    if name == "audit_export":
        return reverse("console:audit_export", args=["print"])
    return reverse(f"console:{name}")


def provider_server(site):
    """The server whose first card is gone and whose second one is new; see `prepare`."""
    return site.provider.servers[5]


def fields(name: str, site) -> dict[str, str]:
    """What an operator's browser would send, so that nothing but the person's role can be what refuses it."""
    if name == "first_run_create":
        return {"name": "hall-2"}
    provider = site.provider
    if name == "plan":
        provider.observe()
        drawn = provider.plan(provider.olga, Selection.everything())
        return {"selection": "all", "plan_digest": drawn.digest, "observation": drawn.observation.public_id}
    return {
        "board_move": {
            "server": provider.servers[1].public_id,
            "source": site.training.public_id,
            "target": site.inference.public_id,
        },
        "board_membership": {
            "server": provider.servers[1].public_id,
            "partition": site.training.public_id,
            "membership": "limited",
        },
        "server_clean": {"reason": "sneaked in"},
        "partition_rename": {"name": "sneaked-in"},
        "partitions": {"tenant": "", "name": "sneaked-in", "pkey": ""},
        "rollout_release": {"reason": "sneaked in"},
        "rollout_accept": {"reason": "sneaked in", "seen": decisions.name_of({}, [GONE])},
        "drift_restoring": {"enabled": "yes", "reason": "sneaked in"},
        "enrolment": {"name": "sneaked in", "uses": "1", "hours": "1"},
        "token_revoke": {"reason": "sneaked in"},
        "credential_revoke": {"reason": "sneaked in"},
        "labels": labels_of(provider.servers[0]),
        "replacement": pairs_of(provider_server(site)),
        "as_of_stage": {
            "at": Event.objects.get(action="deploy:revision:propose", number__lt=3).at.isoformat(),
            "reason": "sneaked in",
        },
    }.get(name, {})


def labels_of(server) -> dict[str, str]:
    text = f"hostname,rack\n{server.hostname},r1\n"
    preview = preview_labels(subnet=server.subnet, file=read(text.encode()))
    return {"text": text, "digest": preview.digest}


def pairs_of(server) -> dict[str, str]:
    old, new = Port.objects.filter(hca__server=server).order_by("guid")
    return {f"new-{old.guid}": str(new.guid)}


def counts() -> list[int]:
    return [model.objects.count() for model in (Event, StagedChange, Partition, Rollout, Observation)]


def prepare(name: str) -> None:
    """Put the rollout and the port into the state in which the button is there."""
    state = {
        "rollout_cancel": "QUEUED", "rollout_check": "UNPROVEN", "rollout_release": "STUCK",
        "rollout_accept": "UNPROVEN",
    }.get(name, "PROVEN")  # fmt: skip
    Rollout.objects.update(state=state)
    if name == "rollout_accept":
        Rollout.objects.update(read_back={"absent": [GONE]})
    if name == "server_clean":
        Port.objects.filter(hca__server__hostname="srv-006").update(former_tenant=Tenant.objects.first())
    if name == "replacement":
        Port.objects.filter(pk=Port.objects.filter(hca__server__hostname="srv-006").order_by("guid")[0].pk).update(
            missing_since=timezone.now()
        )
    if name == "port_confirm":
        Port.objects.filter(pk=Port.objects.first().pk).update(confirmed_at=None)


def detail_pages(site) -> list[str]:
    return [
        reverse("console:rollout", args=[Rollout.objects.first().public_id]),
        reverse("console:partition", args=[site.training.public_id]),
        reverse("console:difference", args=[drifted(site).public_id]),
        reverse("console:server", args=[site.provider.servers[0].public_id]),
        reverse("console:replacement", args=[site.provider.servers[0].public_id]),
        reverse("console:audit_event", args=[1]),
        reverse("console:port_history", args=[Port.objects.first().guid]),
        reverse("console:pkey_history", args=["0x2c41"]),
        reverse("console:rollout_proof", args=[Rollout.objects.first().public_id]),
        reverse("console:as_of") + f"?at={Revision.objects.get(number=1).created_at:%Y-%m-%dT%H:%M:%SZ}",
        reverse("console:as_of_data") + f"?at={Revision.objects.get(number=1).created_at:%Y-%m-%dT%H:%M:%SZ}",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_operators_and_auditors_read_every_page(site, operator, auditor, name):
    assert operator.get(address(name, site)).status_code == 200
    assert auditor.get(address(name, site)).status_code == 200


def test_operators_and_auditors_read_details(site, operator, auditor):
    for page in detail_pages(site):
        assert operator.get(page).status_code == 200
        assert auditor.get(page).status_code == 200


@pytest.mark.parametrize("name", ["home", *PAGES])
def test_strangers_learn_nothing(site, charlie, client_of, name):
    assert client_of(charlie).get(address(name, site)).status_code == 404


def test_strangers_learn_nothing_from_details(site, charlie, client_of):
    for page in detail_pages(site):
        assert client_of(charlie).get(page).status_code == 404


def test_a_stranger_s_404_shows_no_navigation(site, charlie, client_of):
    page = client_of(charlie).get("/board/").content.decode()
    assert "Rollouts" not in page
    assert "There is nothing here" in page


@pytest.mark.parametrize("name", ["home", *PAGES])
def test_anonymous_people_sign_in(site, client, name):
    answer = client.get(address(name, site))
    assert answer.status_code == 302
    assert answer.url.startswith(reverse("account_login"))


@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("who", ["auditor", "stranger", "anonymous"])
def test_only_operators_act(site, ada, charlie, client, client_of, name, who):
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    prepare(name)
    sent = fields(name, site)
    before = counts()
    browser = {"auditor": lambda: client_of(ada), "stranger": lambda: client_of(charlie), "anonymous": lambda: client}
    answer = browser[who]().post(address(name, site), sent)
    assert answer.status_code == (302 if who == "anonymous" else 404)
    assert counts() == before


@pytest.mark.parametrize("name", POSTS)
def test_the_same_by_an_operator_changes_something(site, operator, name):
    """Otherwise the test above would prove nothing."""
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    prepare(name)
    sent = fields(name, site)
    before = counts()
    assert operator.post(address(name, site), sent).status_code == (201 if name == "enrolment" else 302)
    assert counts() != before


def test_auditors_see_no_button_that_changes_anything(site, auditor):
    """The theme and the way out are theirs; every other form only reads."""
    site.provider.move(site.provider.servers[0], site.training, site.inference)
    Port.objects.filter(hca__server=site.provider.servers[4]).update(confirmed_at=None)
    Rollout.objects.update(state=Rollout.State.STUCK)
    pages = [address(name, site) for name in PAGES]
    pages += [*detail_pages(site), reverse("console:server", args=[site.provider.servers[4].public_id])]
    for page in pages:
        if page == reverse("console:audit_export", args=["print"]) or ".json" in page:
            continue  # to print, and for programs: no page with a head
        text = auditor.get(page).content.decode()
        posts = re.findall(r'<form method="post" action="([^"]*)"', text)
        assert sorted(posts) == sorted([reverse("set_theme"), reverse("set_language"), reverse("account_logout")]), page
        assert "card-move" not in text
        assert "move-dialog" not in text


def test_no_page_has_inline_script_or_style(site, operator):
    """The content security policy would refuse it, and the page would silently lose it."""
    for page in [address(name, site) for name in PAGES] + detail_pages(site):
        answer = operator.get(page)
        text = answer.content.decode()
        assert "'unsafe-inline'" not in answer.headers["Content-Security-Policy"]
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), page
        assert all("src=" in attributes for attributes in re.findall(r"<script\b([^>]*)>", text)), page


@pytest.mark.parametrize("where", ["path", "query", "field", "name of a field"])
def test_a_nul_is_a_bad_request_everywhere(site, operator, where):
    """PostgreSQL takes no NUL in a text; SQLite does, so only the answer shows that none came so far."""
    clean = reverse("console:server_clean", args=[site.provider.servers[0].public_id])
    if where == "path":
        answer = operator.get("/partitions/%00/")
    elif where == "query":
        answer = operator.get(reverse("console:plan"), {"selection": "tenant:\0"})
    else:
        answer = operator.post(clean, {"reason": "erased\0"} if where == "field" else {"reason": "erased", "\0": ""})
    assert answer.status_code == 400
