"""`manage.py find_evidence`: whose a signed document is, by its SHA-256 or its id."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit import signing
from portal.evidence import asking
from portal.evidence.lookup import find
from portal.evidence.signing import tick
from portal.models import SignedEvidence


@pytest.fixture
def signed(portal, settings, tmp_path):
    settings.AUDIT_SIGNING_KEY_FILE = str(tmp_path / "signing.pem")
    settings.AUDIT_PUBLIC_KEY_FILE = ""
    signing.make(signing.path())
    portal.provider.observe()
    for who in ("max", "bruno"):
        asking.ask(seat=portal.seats[who])
    tick(now=timezone.now())
    return SignedEvidence.objects.get(tenant=portal.acme)


def test_it_says_whose_when_and_by_whom_by_digest_its_beginning_and_id(signed, capsys):
    for what in (signed.digest, signed.digest.upper(), signed.digest[:12], signed.public_id):
        call_command("find_evidence", what)
        said = capsys.readouterr().out
        assert f"Evidence {signed.public_id} of Acme (acme)" in said, what
        assert "by Max" in said
        assert f"{signed.asked_at:%Y-%m-%d %H:%M}" in said
        assert signed.digest in said
        assert "Bert" not in said
        assert "document   kept\n" in said


def test_one_that_is_kept_no_more_is_found_in_the_trail(signed, capsys):
    key, digest = signed.public_id, signed.digest
    SignedEvidence.objects.all().delete()
    call_command("find_evidence", digest, "--json")
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["id"], one["tenant"], one["asked_by"], one["is_kept"]) == (key, "Acme (acme)", "Max", False)
    assert len(one["events"]) == 2


def test_one_that_waits_is_found_by_its_id(portal):
    row = asking.ask(seat=portal.seats["anna"])
    (one,) = find(row.public_id)
    assert (one.asked_by, one.signed_at, one.digest, one.is_kept) == ("Anna", None, "", False)


@pytest.mark.parametrize("what", ["f" * 64, "abc", "", "%"])
def test_what_nobody_signed_is_said_so(signed, what):
    with pytest.raises(CommandError, match="tells of no evidence"):
        call_command("find_evidence", what)
