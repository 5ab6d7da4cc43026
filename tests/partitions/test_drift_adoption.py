"""Adopt drift: a hand-edited file's differences become staged changes by the board's own rules, or are told why not."""

import hashlib
import zlib

import pytest
from django.utils import timezone

from audit.models import Event
from deploy import drifting, queries
from deploy.models import Drift, StoredFile
from partitions import drift_adoption
from partitions.errors import AdoptionRefused
from partitions.models import StagedChange
from tests.partitions.test_staging import ports, staged


@pytest.fixture
def settled(provider, training, inference):
    """Two servers of two ports in training, one unassigned."""
    for number in (1, 2, 3):
        provider.server(number)
    for server in provider.servers[:2]:
        provider.settled_move(server, None, training)
    provider.observe()
    return provider


def edited(provider, *edits: tuple[str, str]) -> Drift:
    """The FILE row of a hand edit on m1."""
    text = bytes(queries.current_revision(provider.subnet).data).decode()
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    data = text.encode()
    digest = hashlib.sha256(data).hexdigest()
    StoredFile.objects.create(digest=digest, data=zlib.compress(data), size=len(data))
    now = timezone.now()
    return Drift.objects.create(
        subnet=provider.subnet, kind="FILE", key="m1", details=["m1 differs"], facts={"host": "m1", "digest": digest},
        first_seen_at=now, opened_at=now, last_seen_at=now,
    )  # fmt: skip


def as_limited(server) -> list[tuple[str, str]]:
    return [(f"{guid}=full", f"{guid}=limited") for guid in ports(server)]


def joins(provider, server) -> tuple[str, str]:
    first = ports(provider.servers[0])[0]
    return f"{first}=full", ",\n ".join(f"{guid}=full" for guid in [first, *ports(server)])


def test_a_server_that_joins_is_staged_and_the_file_may_be_overwritten(settled):
    row = edited(settled, joins(settled, settled.servers[2]))
    adopted = drift_adoption.adopt_drift(drift=row, actor=settled.olga, reason="ticket 4")
    assert adopted.staged == ("srv-003 joins training.",)
    assert (adopted.refused, adopted.left) == ((), ())
    assert staged() == {(guid, "training", None, "full") for guid in ports(settled.servers[2])}
    assert drifting.adopted_digests(settled.subnet.pk) == {row.facts["digest"]: 0}
    event = Event.objects.get(action="partitions:drift:adopt")
    assert (event.reason, event.after["staged"]) == ("ticket 4", ["srv-003 joins training."])


def test_a_membership_that_changed_is_staged(settled):
    row = edited(settled, *as_limited(settled.servers[0]))
    assert drift_adoption.adopt_drift(drift=row, actor=settled.olga).staged == ("srv-001 becomes limited in training.",)
    assert staged() == {(guid, "training", "full", "limited") for guid in ports(settled.servers[0])}


def test_one_port_of_a_server_is_told_and_left(settled):
    row = edited(settled, as_limited(settled.servers[0])[0])
    with pytest.raises(AdoptionRefused, match="Only 1 of the 2 ports of srv-001 change alike in training"):
        drift_adoption.adopt_drift(drift=row, actor=settled.olga)
    assert not StagedChange.objects.exists()
    assert drifting.adopted_digests(settled.subnet.pk) == {}


def test_what_policy_refuses_is_told_with_its_reason_and_the_rest_is_staged(settled, berts):
    provider = settled
    other = provider.server(4)
    provider.settled_move(other, None, berts)
    provider.observe()
    row = edited(provider, joins(provider, other), *as_limited(provider.servers[1]))
    adopted = drift_adoption.adopt_drift(drift=row, actor=provider.olga)
    assert adopted.staged == ("srv-002 becomes limited in training.",)
    (refused,) = adopted.refused
    assert refused.startswith("srv-004: ")
    assert {server for server, *_ in staged()} == set(ports(provider.servers[1]))


def test_what_no_person_can_stage_is_told(settled):
    row = edited(
        settled,
        joins(settled, settled.servers[2]),
        ("# end", "byhand=0x0abc, defmember=full :\n ALL;\n# end"),
    )
    adopted = drift_adoption.adopt_drift(drift=row, actor=settled.olga)
    assert "Nobody has P_Key 0x0abc (byhand): create the partition first, then adopt." in adopted.left
    assert "Keyword ALL in byhand (0x0abc) cannot be staged." in adopted.left


def test_a_file_that_opensm_rejects_has_nothing_to_adopt(settled):
    row = edited(settled, ("# end", "x y z"))
    with pytest.raises(AdoptionRefused, match="OpenSM rejects this file"):
        drift_adoption.adopt_drift(drift=row, actor=settled.olga)


def test_comments_alone_have_nothing_to_adopt(settled):
    row = edited(settled, ("# end", "# by hand\n# end"))
    with pytest.raises(AdoptionRefused, match="OpenSM reads the same"):
        drift_adoption.adopt_drift(drift=row, actor=settled.olga)


def test_what_is_over_is_refused(settled):
    row = edited(settled, joins(settled, settled.servers[2]))
    drifting.close(row, closing="gone", now=timezone.now())
    with pytest.raises(AdoptionRefused, match="over by now"):
        drift_adoption.adopt_drift(drift=row, actor=settled.olga)


def test_bytes_that_are_not_kept_are_said(settled):
    row = edited(settled, joins(settled, settled.servers[2]))
    StoredFile.objects.all().delete()
    with pytest.raises(AdoptionRefused, match="No bytes of the file on m1 are kept"):
        drift_adoption.explain(row)
