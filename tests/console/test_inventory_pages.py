"""The pages of the inventory: the filter in the address, both witnesses, decisions, files, and what each page costs."""

import json
import subprocess
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from audit.models import Event
from console import inventory_filter
from inventory.models import EnrolmentToken, HistoryEntry, Port, PortConflict, Server, ServerCredential
from inventory.operations import record_seen, register_report
from inventory.report import parse_report
from partitions.models import Replacement
from subnet.guid import GUID
from tests.inventory.reports import port as said_port
from tests.inventory.reports import said
from tests.inventory.test_ports import LEAF, reading

PAGES = ["servers", "conflicts", "leaves", "strays", "enrolment", "labels"]


def names(operator, words: str) -> list[str]:
    answer = operator.get(reverse("console:servers"), {"q": words})
    assert answer.status_code == 200
    return [row.server.hostname for row in answer.context["rows"]]


@pytest.fixture
def varied(site):
    """Down, unconfirmed, contradicted, silent, in a rack and disputed, absent: srv-001 to srv-006."""
    servers = site.provider.servers
    ports = [Port.objects.filter(hca__server=server) for server in servers]
    now = timezone.now()
    Server.objects.update(reported_at=now)
    ports[0].update(state="DOWN")
    ports[1].update(confirmed_at=None)
    ports[2].update(testimony="disagrees", leaf_guid=LEAF, leaf_port=4)
    Server.objects.filter(pk=servers[3].pk).update(reported_at=now - timedelta(hours=30))
    Server.objects.filter(pk=servers[4].pk).update(rack="r12", tenant=site.provider.bert)
    ports[5].update(seen_state="ABSENT", seen_at=now, testimony="disagrees", leaf_guid=LEAF, leaf_port=14)
    PortConflict.objects.create(port=ports[4].first(), claimed_by=servers[5], claim={})
    servers[5].hcas.update(firmware="20.39")
    return site


FILTERS = {
    "srv-003": ["srv-003"],
    "state:down": ["srv-001", "srv-006"],
    "-state:down": ["srv-002", "srv-003", "srv-004", "srv-005"],
    "state:absent": ["srv-006"],
    "tenant:acme": ["srv-001", "srv-002", "srv-003"],
    "tenant:acme state:up": ["srv-002", "srv-003"],
    "tenant:bert": ["srv-004", "srv-005"],
    "tenant:none": ["srv-006"],
    "partition:train": ["srv-001", "srv-002"],
    "partition:none": ["srv-005", "srv-006"],
    "guid:0x0002C90400000211": ["srv-002"],
    "guid:04000002": ["srv-002"],
    "0x0002c90400000211": ["srv-002"],
    f"leaf:{LEAF}": ["srv-003", "srv-006"],
    f"leaf:{LEAF}/4": ["srv-003"],
    "trust:unconfirmed": ["srv-002"],
    "trust:witnessed": [],
    "trust:conflict": ["srv-005", "srv-006"],
    "witness:disagrees": ["srv-003", "srv-006"],
    "silent:24": ["srv-004"],
    "rack:r12": ["srv-005"],
    "rack:none -tenant:none partition:inf": ["srv-003"],
    "firmware:20.39": ["srv-006"],
}


@pytest.mark.parametrize(("words", "found"), FILTERS.items(), ids=FILTERS)
def test_the_words_of_the_filter(varied, operator, words, found):
    assert names(operator, words) == found


@pytest.mark.parametrize("words", ["colour:red", "state:sideways", "guid:xyz", "leaf:12/x", "silent:soon", "trust:me"])
def test_a_word_that_means_nothing_is_told_and_left_out(varied, operator, words):
    answer = operator.get(reverse("console:servers"), {"q": f"{words} srv-001"})
    assert [row.server.hostname for row in answer.context["rows"]] == ["srv-001"]
    assert "Write" in answer.context["found"].problems[0] or "no" in answer.context["found"].problems[0]
    assert answer.context["found"].problems[0][:10] in answer.content.decode().replace("&#x27;", "'")


def test_no_text_breaks_the_filter(varied, operator):
    for words in ("-", ":", "-:", "a:b:c", "::::", "%", "state:", "guid:", "leaf:/", "leaf:0/0/0", "🙂", "x " * 200):
        assert operator.get(reverse("console:servers"), {"q": words}).status_code == 200
        inventory_filter.parse(words, now=timezone.now())


def test_the_page_keeps_the_filter_when_it_is_turned(site, operator):
    for number in range(100, 210):
        site.provider.server(number, ports=1)
    text = operator.get(reverse("console:servers"), {"q": "srv-", "page": 1}).content.decode()
    assert "?q=srv-&amp;page=2" in text


# --- what pages cost -------------------------------------------------------------------------------------------------


def grow(site, count: int) -> None:
    """`count` more servers with everything that a page could ask one by one."""
    now = timezone.now()
    for number in range(10, 10 + count):
        server = site.provider.server(
            number, ports=2, leaf_guid=LEAF, leaf_port=number % 40, seen_at=now, testimony="agrees",
            points=[["SM LID", "LID 1", "LID 1", "agrees", ""]],
        )  # fmt: skip
        Server.objects.filter(pk=server.pk).update(rack=f"r{number}", tenant=site.provider.acme, reported_at=now)
        first = Port.objects.filter(hca__server=server).first()
        PortConflict.objects.create(
            port=first, claimed_by=site.provider.servers[0], claim={}, evidence={"hints": ["x"]}
        )
        HistoryEntry.objects.create(server=server, at=now, kind="LINK", witness="FABRIC", what=str(first.guid))
        stray = GUID(f"{0x0002C90600000001 + number * 16:#018x}")
        Port.objects.create(subnet=site.provider.subnet, guid=stray, seen_at=now, leaf_guid=stray, leaf_port=1)


def test_every_page_costs_the_same_at_10_and_at_300_servers(site, operator, django_assert_max_num_queries):
    pages = {name: reverse(f"console:{name}") for name in PAGES}
    pages["filtered"] = f"{pages['servers']}?q=tenant:acme+-state:down+trust:confirmed"
    pages["leaf"] = reverse("console:leaf", args=[LEAF])
    pages["server"] = reverse("console:server", args=[site.provider.servers[0].public_id])
    pages["replacement"] = reverse("console:replacement", args=[site.provider.servers[0].public_id])
    pages["csv"] = reverse("console:labels_export", args=["csv"])
    budgets = {"server": 38, "conflicts": 13, "servers": 13, "filtered": 13}
    grow(site, 4)
    small = {}
    for name, address in pages.items():
        with django_assert_max_num_queries(budgets.get(name, 12)) as queries:
            assert operator.get(address).status_code == 200
        small[name] = len(queries)
    PortConflict.objects.all().delete()
    for server in Server.objects.filter(hostname__in=[f"srv-{number:03}" for number in range(10, 14)]):
        Port.objects.filter(hca__server=server).delete()
        server.delete()
    Port.objects.filter(hca=None, memberships=None).delete()
    grow(site, 290)
    large = {}
    for name, address in pages.items():
        with django_assert_max_num_queries(budgets.get(name, 12)) as queries:
            assert operator.get(address).status_code == 200
        large[name] = len(queries)
    assert large == small


# --- one server ------------------------------------------------------------------------------------------------------


def report(server, *ports, **changes):
    register_report(server=server, report=parse_report(said(*ports, hostname=server.hostname, **changes)))


def test_a_server_shows_both_witnesses_its_history_and_its_report(site, operator):
    server = site.provider.servers[4]
    guids = list(Port.objects.filter(hca__server=server).order_by("guid").values_list("guid", "hca__node_guid"))
    ports = [said_port(str(guid), node_guid=str(node), device=f"mlx5_{at}") for at, (guid, node) in enumerate(guids)]
    report(server, *ports, boot_id="boot-1")
    readings = [
        reading("0x0002c90200000011", node_type="SW", node_guid=LEAF, leaf=None),
        *(reading(str(guid), node_guid=node, leaf=(LEAF, 4 + at)) for at, (guid, node) in enumerate(guids)),
    ]
    record_seen(subnet=site.provider.subnet, readings=readings, at=timezone.now(), is_complete=True)
    page = reverse("console:server", args=[server.public_id])
    text = operator.get(page).content.decode()
    assert text.count("both agree") >= 2
    assert "LID 7" in text
    assert "boot-1" in text
    report(server, ports[0] | {"state": "DOWN"}, ports[1], boot_id="boot-2")
    record_seen(subnet=site.provider.subnet, readings=[readings[0], readings[2]], at=timezone.now(), is_complete=True)
    text = operator.get(page).content.decode()
    assert "link down: not there at the last look" in text
    assert "reboot" in text
    assert "boot-2" in text
    assert "not there" in text
    assert "&quot;hostname&quot;: &quot;srv-005&quot;" in text


def test_a_silent_server_says_since_when(site, operator):
    server = site.provider.servers[0]
    Server.objects.filter(pk=server.pk).update(reported_at=timezone.now() - timedelta(hours=5))
    page = reverse("console:server", args=[server.public_id])
    assert "not reported since" in operator.get(page).content.decode()
    assert "not reported since" in operator.get(reverse("console:servers")).content.decode()


# --- conflicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("reject", "is rejected"), ("moved", "belongs to srv-006 now"), ("cloned", "srv-006 is a clone"),
        ("nonsense", None),
    ],
)  # fmt: skip
def test_a_conflict_is_decided_on_its_queue(site, operator, decision, words):
    owner, claimant = site.provider.servers[4:6]
    port = Port.objects.filter(hca__server=owner).first()
    conflict = PortConflict.objects.create(
        port=port, claimed_by=claimant, claim={"node_guid": str(port.hca.node_guid)}, evidence={"hints": ["One hint."]}
    )
    text = operator.get(reverse("console:conflicts")).content.decode()
    assert "One hint." in text
    answer = operator.post(
        reverse("console:conflict_decide", args=[conflict.pk, decision]), {"reason": "seen it"}, follow=True
    )
    conflict.refresh_from_db()
    if words is None:
        assert answer.status_code == 404
        assert conflict.closed_at is None
        return
    assert words in answer.content.decode()
    assert (conflict.decided_by, conflict.reason) == ("Olga", "seen it")
    again = operator.post(reverse("console:conflict_decide", args=[conflict.pk, "moved"]), follow=True)
    assert "was decided at" in again.content.decode()


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_go_out_and_come_in_by_a_preview(site, operator):
    page = reverse("console:labels")
    Server.objects.filter(hostname="srv-001").update(rack="=1+1")
    answer = operator.get(reverse("console:labels_export", args=["csv"]))
    assert "srv-001,'=1+1,,," in answer.content.decode()
    assert answer["Content-Disposition"].startswith("attachment")
    listed = json.loads(operator.get(reverse("console:labels_export", args=["json"]) + "?q=srv-00").content)
    assert len(listed) == 6
    upload = SimpleUploadedFile("labels.csv", b"hostname,rack,tenant\nsrv-001,r1,acme\nsrv-002,r1,\n")
    looked = operator.post(page, {"file": upload})
    assert "2 of 2 servers would change" in looked.content.decode()
    assert not Server.objects.filter(rack="r1").exists()
    sent = {"text": looked.context["text"], "digest": looked.context["preview"].digest}
    done = operator.post(page, sent, follow=True)
    assert "2 servers labelled" in done.content.decode()
    assert Server.objects.get(hostname="srv-001").tenant == site.provider.acme
    assert "nothing to write" in operator.post(page, {"text": sent["text"]}).content.decode()
    assert operator.post(page, sent).status_code == 409


def test_a_bad_row_is_told_and_nothing_is_taken(site, operator):
    answer = operator.post(reverse("console:labels"), {"text": "hostname,rack\nsrv-001,r1\nsrv-999,r1\n"})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "No server called srv-999" in text
    assert "Write these labels" not in text
    assert not Server.objects.filter(rack="r1").exists()
    assert operator.post(reverse("console:labels"), {}).status_code == 422


# --- enrolment -------------------------------------------------------------------------------------------------------


def install_on_a_server(lines: str, folder) -> list[str]:
    """What the pasted lines run, in a shell whose `install` and `systemctl` only note it; the token lands in a file."""
    notes = folder / "notes"
    stubs = f"""
install() {{ case "$*" in *stdin*) cat > {folder}/token; echo install token;; *units*|*.timer*) echo install units;;
  *) echo install -D agent.py;; esac >> {notes}; }}
systemctl() {{ echo systemctl "$1" >> {notes}; }}
"""
    script = stubs + lines.replace("/etc/fabricui-agent.env", f"{folder}/env")
    subprocess.run(["sh", "-eu"], input=script, text=True, check=True, cwd=folder)
    assert (folder / "env").read_text() == "FABRICUI_URL=https://door.example:8443\n"
    return notes.read_text().splitlines()


def test_a_token_is_shown_once_with_its_line(site, operator, settings, tmp_path):
    settings.REGISTER_URL = "https://door.example:8443"
    page = reverse("console:enrolment")
    made = operator.post(page, {"name": "rack 12", "uses": "24", "hours": "8"})
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    secret = made.context["secret"]
    text = made.content.decode()
    assert secret.startswith("fui_enrol_")
    assert secret in text
    assert "https://door.example:8443" in text
    ran = install_on_a_server(made.context["install"], tmp_path)
    assert ran == [
        "install -D agent.py",
        "install units",
        "systemctl daemon-reload",
        "install token",
        "systemctl enable",
    ]
    assert (tmp_path / "token").read_text() == f"{secret}\n"
    later = operator.get(page).content.decode()
    assert secret not in later
    assert "rack 12" in later
    assert secret not in json.dumps(list(Event.objects.values("before", "after")))
    assert EnrolmentToken.objects.get(name="rack 12").uses_left == 24


@pytest.mark.parametrize(
    "sent", [{"name": "", "uses": "1", "hours": "1"}, {"name": "x", "uses": "0", "hours": "9"}, {}]
)
def test_a_bad_token_form_says_what_is_wrong(site, operator, sent):
    answer = operator.post(reverse("console:enrolment"), sent)
    assert answer.status_code == 422
    assert 'class="error"' in answer.content.decode()
    assert not EnrolmentToken.objects.exists()


def test_a_token_is_narrowed_and_revoked_on_the_page(site, operator):
    page = reverse("console:enrolment")
    refused = operator.post(page, {"name": "r12", "uses": "2", "hours": "8", "networks": "10.1"})
    assert refused.status_code == 422
    assert "“10.1” is no IP network" in refused.content.decode()
    narrow = {"rack": "12", "hostnames": "r12-*", "networks": "10.1.12.0/24"}
    assert operator.post(page, {"name": "r12", "uses": "2", "hours": "8"} | narrow).status_code == 201
    token = EnrolmentToken.objects.get()
    assert (token.rack, token.hostnames, token.networks) == ("12", "r12-*", "10.1.12.0/24")
    revoke = reverse("console:token_revoke", args=[token.pk])
    assert "Say why" in operator.post(revoke, {"reason": " "}, follow=True).content.decode()
    text = operator.post(revoke, {"reason": "went astray"}, follow=True).content.decode()
    assert all(word in text for word in ("r12-*", "10.1.12.0/24", "revoked", "lets nobody in any more"))
    assert revoke not in text
    event = Event.objects.filter(action="inventory:enrolment-token:revoke").get()
    assert (event.subject_label, event.reason, event.actor_kind) == ("r12", "went astray", "PERSON")
    assert "worth nothing any more" in operator.post(revoke, {"reason": "again"}, follow=True).content.decode()


def test_a_servers_credential_is_rotated_and_revoked_on_its_page(site, operator):
    server = site.provider.servers[0]
    page = reverse("console:server", args=[server.public_id])
    rotate, revoke = (reverse(f"console:credential_{verb}", args=[server.public_id]) for verb in ("rotate", "revoke"))
    server.credentials.all().delete()
    assert "None is valid" in operator.get(page).content.decode()
    assert "It must enrol anew" in operator.post(rotate, follow=True).content.decode()
    credential = ServerCredential.objects.create(server=server, digest="c" * 64)
    assert "to be rotated with the next report" in operator.post(rotate, follow=True).content.decode()
    credential.refresh_from_db()
    assert credential.is_to_be_renewed
    assert "was asked for a new credential already" in operator.post(rotate, follow=True).content.decode()
    assert "Say why" in operator.post(revoke, follow=True).content.decode()
    assert "until it enrols anew" in operator.post(revoke, {"reason": "sold"}, follow=True).content.decode()
    credential.refresh_from_db()
    assert credential.revoked_at is not None
    told = Event.objects.filter(action__startswith="inventory:server:credential").values_list("action", "reason")
    assert list(told) == [
        ("inventory:server:credential-ask", ""),
        ("inventory:server:credential-revoke", "sold"),
    ]


# --- leaves, strays, replacement -------------------------------------------------------------------------------------


def test_leaves_and_ports_that_one_side_knows(varied, operator):
    stray = Port(subnet=varied.provider.subnet, guid="0x0002c906000000a1", seen_at=timezone.now())
    stray.leaf_guid, stray.leaf_port, stray.seen_description = LEAF, 9, "mystery <b>"
    stray.save()
    assert str(LEAF) in operator.get(reverse("console:leaves")).content.decode()
    leaf = operator.get(reverse("console:leaf", args=[LEAF])).content.decode()
    assert "srv-003" in leaf
    assert "mystery &lt;b&gt;" in leaf
    strays = operator.get(reverse("console:strays"))
    assert [str(port.guid) for port in strays.context["seen"]] == ["0x0002c906000000a1"]
    assert strays.context["registered"].paginator.count == 10
    assert operator.get(reverse("console:leaf", args=["0x1"])).status_code == 404
    assert operator.get(reverse("console:leaf", args=["nonsense"])).status_code == 404


def test_a_card_is_replaced_on_its_page(site, operator):
    server = site.provider.servers[0]
    page = reverse("console:replacement", args=[server.public_id])
    assert "Nothing to replace" in operator.get(page).content.decode()
    old, new = Port.objects.filter(hca__server=server).order_by("guid")
    new.memberships.all().delete()
    Port.objects.filter(pk=new.pk).update(former_tenant=None)
    Port.objects.filter(pk=old.pk).update(missing_since=timezone.now())
    text = operator.get(page).content.decode()
    assert f'value="{new.guid}" selected' in text
    refused = operator.post(page, {f"new-{old.guid}": str(old.guid)})
    assert refused.status_code == 409
    assert "One port stands in two pairs" in refused.content.decode()
    done = operator.post(page, {f"new-{old.guid}": str(new.guid), "reason": "RMA 7"}, follow=True)
    text = done.content.decode()
    assert "1 port goes on under another GUID" in text
    assert "Its HCA was replaced" in text
    tray = operator.get(reverse("console:board")).content.decode()
    assert "1 server, 1 port staged" in tray
    assert "1 of the ports with a replaced HCA" in tray
    assert 'id="review-plan"' in tray
    assert 'id="discard-mine"' not in tray  # it is taken back on the server's page
    assert Replacement.objects.get().reason == "RMA 7"
    undone = operator.post(reverse("console:replacement_undo", args=[server.public_id]), follow=True)
    assert "1 port has its old GUID again" in undone.content.decode()
