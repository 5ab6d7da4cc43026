"""Seals and anchors: a real file, a real datagram socket, and what they show that the database alone cannot."""

import json
import os
import socket
import stat
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from audit import anchors, chain, export, keyring, restoration, signing, triggers, verifier, watch
from audit.errors import AppendOnly, NotBehind, SigningUnavailable
from audit.models import ChainHead, Event, Seal, TrailCheck
from audit.standing import standing
from audit.values import SYSTEM
from tests.audit.events import record_many
from tests.audit.test_chain import rewrite

pytestmark = pytest.mark.django_db


def seal():
    return anchors.seal(now=timezone.now())[0]


@pytest.fixture
def owner(db):
    """Play the owner of the database: the triggers are off."""
    triggers.drop(connection)
    return lambda sql, *values: connection.cursor().execute(sql, values)


@pytest.fixture
def judged_outside(tmp_path):
    """What our verifier says with the anchors outside; the stand-alone one must say the same from an export."""

    def judged_outside():
        report = chain.verify(anchors=anchors.every())
        exported = tmp_path / "trail.jsonl"
        exported.write_text("".join(export.whole()), encoding="utf-8")
        alone = subprocess.run(
            [sys.executable, "-I", "-S", verifier.__file__, exported, "--json", "--keys", keyring.path(),
             "--anchors", anchors.path(), "--public-key", signing.public_path()],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert alone.returncode == (0 if report.is_sound else 1), alone.stderr
        said = json.loads(alone.stdout)
        names = ("broken_at", "kind", "sentence", "events", "anchored_to")
        assert {name: said[name] for name in names} == {name: getattr(report, name) for name in names}
        return report

    return judged_outside


def cut_to(owner, number):
    """Do what a restore from a backup does: the database is as it was at event `number`, seals included."""
    owner("DELETE FROM audit_event WHERE number > %s", number)
    owner("DELETE FROM audit_seal WHERE number > %s", number)
    head = Event.objects.get(number=number)
    owner("UPDATE audit_chainhead SET number = %s, hash = %s", number, head.hash)
    ChainHead.objects.update(at=head.at)


def test_the_head_is_sealed_and_the_same_stands_outside(judged_outside):
    record_many(3)
    made = seal()
    (anchor,) = anchors.every()
    assert (anchor.number, anchor.hash) == (3, Event.objects.get(number=3).hash)
    assert anchor == made.to_anchor()
    assert anchor.is_signed_by(signing.public_key(), verifier.verify_ed25519)
    assert judged_outside().anchored_to == 3


def test_nothing_new_is_sealed_again_after_an_hour_only():
    record_many(1)
    assert seal() is not None
    assert seal() is None
    assert anchors.seal(now=timezone.now() + timedelta(hours=2))[0] is not None


def test_the_anchor_file_is_only_ever_appended_to():
    record_many(1)
    seal()
    before = anchors.path().read_bytes()
    record_many(1)
    seal()
    assert anchors.path().read_bytes().startswith(before)
    assert stat.S_IMODE(signing.path().stat().st_mode) == stat.S_IMODE(keyring.path().stat().st_mode) == 0o600


def test_the_anchor_reaches_a_syslog_socket(settings, tmp_path):
    where = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(where)
        syslog.settimeout(5)
        settings.AUDIT_SYSLOG = where
        record_many(2)
        made = seal()
        said = syslog.recv(4096).decode()
    assert said.startswith("<86>fabricui-audit: ")  # authpriv.info
    assert list(verifier.anchors_in(f"Dec  1 21:00:00 host {said}")) == [made.to_anchor()]


def test_the_anchor_reaches_a_syslog_server_by_udp(settings):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as syslog:
        syslog.bind(("127.0.0.1", 0))
        syslog.settimeout(5)
        settings.AUDIT_SYSLOG = f"127.0.0.1:{syslog.getsockname()[1]}"
        record_many(1)
        made = seal()
        assert list(verifier.anchors_in(syslog.recv(4096).decode())) == [made.to_anchor()]


def test_without_a_place_outside_there_is_no_seal_and_an_alarm_says_why(settings, tmp_path):
    record_many(1)
    settings.AUDIT_SYSLOG = str(tmp_path / "nobody-listens")
    with pytest.raises(SigningUnavailable, match="does not take the anchor"):
        seal()
    assert not Seal.objects.exists()
    watch.every_minute()
    assert TrailCheck.objects.get(kind="anchor").trouble == "cannot"
    assert ["does not take the anchor" in alarm for alarm in standing(now=timezone.now()).alarms] == [True]
    settings.AUDIT_SYSLOG = ""
    watch.every_minute()
    assert standing(now=timezone.now()).alarms == ()


def test_an_anchor_file_that_is_gone_is_told_and_not_begun_again():
    record_many(1)
    seal()
    anchors.path().unlink()
    record_many(1)
    with pytest.raises(SigningUnavailable, match="is gone, and seals were written to it"):
        seal()
    anchors.path().touch()
    assert seal() is not None


def test_a_chain_rewritten_with_the_keys_is_not_what_was_anchored(owner, judged_outside):
    record_many(5)
    seal()
    rewrite(owner, 3, key=keyring.load()[1], reason="it was somebody else")
    owner("DELETE FROM audit_seal")
    assert chain.verify().is_sound  # nothing in the database shows it
    report = judged_outside()
    assert (report.broken_at, report.kind) == (5, verifier.REWRITTEN)
    assert anchors.seal(now=timezone.now())[0] is None  # and it is not signed


def test_a_tail_cut_off_with_its_head_is_missed_by_the_anchors(owner, judged_outside):
    record_many(3)
    seal()
    record_many(4)
    seal()
    cut_to(owner, 4)
    assert chain.verify().is_sound
    report = judged_outside()
    assert (report.broken_at, report.kind) == (5, verifier.TRUNCATED)
    assert "events 5 to 7 were cut off, or the database was restored from a backup" in report.sentence
    watch.every_minute()
    assert TrailCheck.objects.get(kind="newest").trouble == "truncated"
    assert Event.objects.order_by("-number")[0].action == "audit:trail:broken"
    watch.every_hour()
    watch.every_minute()
    assert Event.objects.filter(action="audit:trail:broken").count() == 2  # one a kind of check, however often


def test_a_seal_that_somebody_else_signed_is_told_apart(owner, judged_outside, tmp_path):
    record_many(3)
    seal()
    signing.make(tmp_path / "theirs.pem")
    line = anchors.every()[0]
    forged = verifier.Anchor(2, "0" * 64, line.at, line.sealed_at, line.key, "00" * 64)
    with anchors.path().open("a") as file:
        file.write(f"{forged.line()}\n")
    report = judged_outside()
    assert (report.broken_at, report.kind) == (2, verifier.SEAL)


def test_the_way_back_after_a_restore(owner, judged_outside):
    record_many(3)
    seal()
    record_many(4)
    seal()
    cut_to(owner, 4)
    out = StringIO()
    call_command("audit", "restored", stdout=out)
    assert "events 4 to 7 are lost here" in out.getvalue()
    assert "Nothing was told yet" in out.getvalue()
    assert Event.objects.count() == 4
    call_command("audit", "restored", "--reason", "disk of db1 failed, backup of 12:00, Olga", stdout=out)

    told = Event.objects.get(action="audit:trail:restored")
    assert (told.number, told.after["lost_from"], told.after["lost_to"]) == (5, 4, 7)
    report = judged_outside()
    assert report.is_sound, report.sentence
    assert any("events 4 to 7 were lost" in note for note in report.notes)
    assert standing(now=timezone.now()).alarms == ()
    assert seal() is not None
    record_many(6)  # numbers that the lost events had are given out again
    assert seal() is not None
    record_many(1)
    assert seal() is not None
    assert judged_outside().is_sound
    with pytest.raises(NotBehind, match="nothing was lost"):
        restoration.tell(actor=SYSTEM, reason="again")


def test_a_cut_after_the_restore_was_told_is_still_a_cut(owner, judged_outside):
    record_many(3)
    seal()
    record_many(4)
    seal()
    cut_to(owner, 4)
    restoration.tell(actor=SYSTEM, reason="the disk failed")
    record_many(1)
    seal()
    cut_to(owner, 5)
    report = judged_outside()
    assert (report.broken_at, report.kind) == (6, verifier.TRUNCATED)


def test_what_is_no_restore_is_not_told_as_one(owner):
    record_many(3)
    seal()
    owner("UPDATE audit_event SET reason = 'x' WHERE number = 2")
    with pytest.raises(CommandError, match=r"not what a restore from a backup leaves behind: Event 2 .* was edited"):
        call_command("audit", "restored", "--reason", "it was restored")
    assert Event.objects.count() == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda seal: seal.delete(),
        lambda seal: Seal.objects.update(number=9),
        lambda seal: Seal.objects.all().delete(),
    ],
)
def test_no_seal_changes(change):
    record_many(1)
    made = seal()
    with pytest.raises(AppendOnly):
        change(made)
    assert Seal.objects.get() == made


# RFC 8032, section 7.1: secret key, public key, message, signature
VECTORS = [
    ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
    ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
]  # fmt: skip


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_the_verifier_knows_ed25519(secret, public, message, signature):
    key, said, signed = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
    assert verifier.verify_ed25519(key, said, signed)
    assert not verifier.verify_ed25519(key, said + b"x", signed)
    for at in (0, 31, 32, 63):
        bent = bytearray(signed)
        bent[at] ^= 1
        assert not verifier.verify_ed25519(key, said, bytes(bent))
    assert not verifier.verify_ed25519(bytes(32), said, signed)
    assert not verifier.verify_ed25519(key, said, signed[:63])


def test_both_ways_to_check_a_signature_agree():
    record_many(1)
    seal()
    anchor, public = anchors.every()[0], signing.public_key()
    signature = bytes.fromhex(anchor.signature)
    order = 2**252 + 27742317777372353535851937790883648493
    high = signature[:32] + (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")  # malleable
    for given, is_right in ((signature, True), (bytes(64), False), (high, False), (os.urandom(64), False)):
        assert signing.verify(public, anchor.statement(), given) is is_right
        assert verifier.verify_ed25519(public, anchor.statement(), given) is is_right


def test_a_public_key_may_be_pem():
    signing.make(Path(signing.path()))
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    public = load_pem_private_key(signing.path().read_bytes(), None).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    assert verifier.parse_public_key(pem) == signing.public_key()
    with pytest.raises(ValueError, match="64 hex digits"):
        verifier.parse_public_key("00")
