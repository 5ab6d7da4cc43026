"""Signed evidence: asked for, signed by the worker, recorded, downloaded, printed; and what an auditor's check says.

Each change of a document must turn the check red, by FabricUI's own and by the stand-alone program.
"""

import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from audit import documents, signing, verifier
from audit.canonical import canonical, plain
from audit.models import Event
from partitions.models import Partition
from people.models import TenantRole
from portal.errors import Refused
from portal.evidence import asking
from portal.evidence.contents import gather
from portal.evidence.signing import GIVE_UP_AFTER, KEPT, tick
from portal.models import SignedEvidence


@pytest.fixture
def own_key(settings, tmp_path):
    """A signing key of this test's own."""
    settings.AUDIT_SIGNING_KEY_FILE = str(tmp_path / "signing.pem")
    settings.AUDIT_PUBLIC_KEY_FILE = ""
    signing.make(signing.path())
    return signing.path()


@pytest.fixture
def signed(portal, own_key):
    portal.provider.observe()
    asking.ask(seat=portal.seats["max"])
    tick(now=timezone.now())
    return SignedEvidence.objects.get()


@pytest.fixture
def alone(tmp_path):
    """What the stand-alone program says of these bytes: its exit status and what it printed."""

    def alone(data, *, key=None):
        file = tmp_path / "evidence.json"
        file.write_bytes(data)
        command = [sys.executable, "-I", "-S", verifier.__file__, "--document", file, "--public-key"]
        ran = subprocess.run([*command, key or signing.public_path()], check=False, capture_output=True, text=True)
        assert not ran.stderr
        return ran.returncode, ran.stdout

    return alone


def test_it_is_asked_for_on_the_page_and_signed_by_the_worker(portal, own_key, client):
    portal.provider.observe()
    answer = client.post(portal.address("evidence"), follow=True)
    assert "It is being signed" in answer.content.decode()
    assert "being signed" in client.get(portal.address("evidence")).content.decode()
    tick(now=timezone.now())
    row = SignedEvidence.objects.get()
    page = client.get(portal.address("evidence")).content.decode()
    assert row.digest in page
    assert "Nothing is signed yet" not in page
    file = client.get(portal.address("evidence_download", row.public_id))
    assert file["Content-Type"] == "application/json"
    assert row.digest[:12] in file["Content-Disposition"]
    assert documents.digest(file.content) == row.digest


def test_the_document_says_what_the_page_says(portal, signed):
    written = json.loads(bytes(signed.data))
    content = written["content"]
    now = plain(gather(portal.seats["max"], now=signed.signed_at))
    assert {name: content[name] for name in now} == now
    assert (written["fabricui_document"], written["kind"]) == (1, "evidence")
    assert written["key"] == verifier.fingerprint(signing.public_key())
    asked = Event.objects.get(action="portal:evidence:ask")
    assert content["asked"] == {"by": "Max", "at": plain(signed.asked_at), "hash": asked.hash}
    assert bytes(signed.data) == canonical(written) + b"\n"


def test_the_trail_has_its_digest(portal, signed):
    event = Event.objects.get(action="portal:evidence:sign")
    assert event.after == {"sha256": signed.digest, "bytes": len(signed.data)}
    assert (event.subject_label, event.tenant_key, event.actor_key) == (
        signed.digest, portal.acme.public_id, "fabricui",
    )  # fmt: skip
    assert documents.digest(bytes(signed.data)) == signed.digest


def test_the_stand_alone_program_finds_it_sound(signed, alone):
    status, said = alone(bytes(signed.data))
    assert (status, said.splitlines()[-1]) == (0, f"SHA-256 of the file: {signed.digest}")
    assert "as it was signed" in said


def test_any_byte_that_is_changed_is_seen(signed):
    """Every byte of the document, one after the other: with the quick check, by the same rules."""
    data, public = bytes(signed.data), signing.public_key()
    assert verifier.read_document(data, public, signing.verify)["kind"] == "evidence"
    passed = []
    for place in range(len(data)):
        for bit in (0x01, 0x20):  # the other case of a letter too
            changed = bytearray(data)
            changed[place] ^= bit
            try:
                verifier.read_document(bytes(changed), public, signing.verify)
                passed.append(place)
            except verifier.Unsound:
                pass
    assert passed == []


CHANGES = {
    "a fact": lambda data: data.replace(b'"as it should be"', b'"as it should bE"', 1),
    "a blank": lambda data: data.replace(b",", b", ", 1),
    "a key given twice": lambda data: data.replace(b'{"content"', b'{"kind":"evidence","content"', 1),
    "cut at the end": lambda data: data[:-1],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "something behind it": lambda data: data + b"\n",
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no signature": lambda data: canonical({**json.loads(data), "signature": ""}) + b"\n",
    "another version": lambda data: canonical({**json.loads(data), "fabricui_document": 2}) + b"\n",
    "deep nonsense": lambda data: b"[" * 100_000,
    "an index": lambda data: data.replace(b'"index":1', b'"index":2', 1),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_changed_document_is_red(signed, alone, how):
    data = bytes(signed.data)
    changed = CHANGES[how](data)
    assert changed != data
    status, said = alone(changed)
    assert status == 1, said
    assert "as it was signed at" not in said


def test_the_signature_of_another_key_is_red(signed, alone, tmp_path, settings):
    data = bytes(signed.data)
    ours = signing.public_path()
    settings.AUDIT_SIGNING_KEY_FILE = str(tmp_path / "other.pem")
    signing.make(signing.path())
    status, said = alone(data)
    assert (status, "names the key" in said) == (1, True)
    document = json.loads(data)
    forged = documents.sign(kind="evidence", content=document["content"], now=timezone.now())
    assert alone(forged)[0] == 0  # sound under its own key
    assert alone(forged, key=ours)[0] == 1
    renamed = json.loads(forged) | {"key": document["key"]}
    status, said = alone(canonical(renamed) + b"\n", key=ours)
    assert (status, "The signature does not fit" in said) == (1, True)


def test_an_anchor_is_no_document_and_a_document_no_anchor(signed, own_key):
    document = json.loads(bytes(signed.data))
    assert verifier.document_statement(document).startswith(b"fabricui document\n")
    anchor = verifier.Anchor(1, "a" * 64, "x", "x", document["key"])
    assert not anchor.statement().startswith(b"fabricui document")


def test_without_a_key_to_check_with_nothing_is_said_to_be_sound(signed, tmp_path):
    file = tmp_path / "evidence.json"
    file.write_bytes(bytes(signed.data))
    command = [sys.executable, "-I", "-S", verifier.__file__, "--document", file]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")


def test_the_program_and_the_key_come_from_the_portal(signed, portal, client, tmp_path):
    for name, address in (("verifier.py", "evidence_verifier"), ("evidence-key.pub", "evidence_key")):
        (tmp_path / name).write_bytes(client.get(portal.address(address)).content)
    (tmp_path / "e.json").write_bytes(client.get(portal.address("evidence_download", signed.public_id)).content)
    files = ["verifier.py", "--document", "e.json", "--public-key", "evidence-key.pub"]
    command = [sys.executable, "-I", "-S", *files, "--json"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert json.loads(ran.stdout)["sound"] is True
    assert json.loads(ran.stdout)["sha256"] == signed.digest


def test_the_page_to_print_shows_the_file_and_not_what_is_now(signed, portal, client):
    Partition.objects.filter(pk=portal.site.training.pk).update(title="renamed")
    page = client.get(portal.address("evidence_document", signed.public_id)).content.decode()
    assert signed.digest in page
    assert "training" in page
    assert "renamed" not in page
    assert "renamed" in client.get(portal.address("evidence")).content.decode()


def test_one_at_a_time_and_not_twice_a_minute(portal, own_key, client):
    portal.provider.observe()
    asking.ask(seat=portal.seats["max"])
    with pytest.raises(Refused, match="being signed just now"):
        asking.ask(seat=portal.seats["anna"])
    tick(now=timezone.now())
    answer = client.post(portal.address("evidence"))
    assert answer.status_code == 409
    assert "less than a minute ago" in answer.content.decode()
    SignedEvidence.objects.update(asked_at=timezone.now() - asking.APART)
    asking.ask(seat=portal.seats["max"])
    assert SignedEvidence.objects.count() == 2


def test_two_workers_sign_one_document(portal, signed):
    before = signed.digest
    tick(now=timezone.now())
    signed.refresh_from_db()
    assert signed.digest == before
    assert Event.objects.filter(action="portal:evidence:sign").count() == 1


def test_only_the_newest_are_kept(portal, own_key):
    at = timezone.now() - timedelta(days=1)
    person = portal.seats["max"].person
    for number in range(KEPT + 2):
        SignedEvidence.objects.create(
            tenant=portal.acme, asked_by=person, asked_at=at, signed_at=at, digest=f"{number:064x}", data=b"{}"
        )
    asking.ask(seat=portal.seats["max"])
    tick(now=timezone.now())
    kept = SignedEvidence.objects.order_by("pk")
    assert kept.count() == KEPT
    assert kept.first().digest == f"{3:064x}"


def test_without_the_signing_key_it_waits_and_is_given_up_after_an_hour(portal, own_key, client):
    asking.ask(seat=portal.seats["max"])
    own_key.unlink()
    tick(now=timezone.now())
    assert SignedEvidence.objects.waiting().count() == 1
    assert "being signed" in client.get(portal.address("evidence")).content.decode()
    tick(now=timezone.now() + GIVE_UP_AFTER + timedelta(seconds=1))
    assert SignedEvidence.objects.waiting().count() == 0
    page = client.get(portal.address("evidence")).content.decode()
    assert "could not be signed" in page
    assert str(own_key) not in page
    event = Event.objects.get(action="portal:evidence:give-up")
    assert str(own_key) in event.reason  # for operators, who mend it
    asking.ask(seat=portal.seats["max"])


def test_whoever_has_left_the_tenant_meanwhile_gets_nothing_signed(portal, own_key):
    asking.ask(seat=portal.seats["max"])
    TenantRole.objects.filter(user=portal.seats["max"].person).delete()
    tick(now=timezone.now())
    row = SignedEvidence.objects.get()
    assert (row.signed_at, row.data, bool(row.given_up_at)) == (None, None, True)


def test_a_viewer_reads_and_asks_for_none(portal, signed, client_of):
    viewer = client_of(portal.seats["vera"].person)
    assert signed.digest in viewer.get(portal.address("evidence")).content.decode()
    assert viewer.get(portal.address("evidence_download", signed.public_id)).status_code == 200
    assert "Sign how it stands now" not in viewer.get(portal.address("evidence")).content.decode()
    assert viewer.post(portal.address("evidence")).status_code == 403


@pytest.mark.parametrize("who", ["olga", "bruno"])
def test_it_is_the_tenants_alone(portal, signed, client_of, who):
    person = portal.provider.olga if who == "olga" else portal.seats["bruno"].person
    for name in ("evidence_document", "evidence_download"):
        assert client_of(person).get(portal.address(name, signed.public_id)).status_code == 404
    if who == "bruno":
        its = portal.address("evidence_download", signed.public_id, tenant=portal.provider.bert)
        assert client_of(person).get(its).status_code == 404


def test_what_is_not_signed_is_not_there_to_read(portal, own_key, client):
    row = asking.ask(seat=portal.seats["max"])
    assert client.get(portal.address("evidence_document", row.public_id)).status_code == 404


def test_where_no_key_is_known_the_page_says_so(portal, client, settings, tmp_path):
    settings.AUDIT_PUBLIC_KEY_FILE = str(tmp_path / "nowhere.pub")
    assert "The public key is not known here yet" in client.get(portal.address("evidence")).content.decode()
    assert client.get(portal.address("evidence_key")).status_code == 404
