"""A first revision that stands for a hand-written file: what is accepted, what goes back, and what may follow."""

from collections.abc import Mapping

import pytest
from django.db import DatabaseError, transaction

from audit.models import Event
from deploy import files, operations, queries
from deploy.errors import AdoptionRefused, AdoptionUnfinished, Immutable, StaleRevision, SubnetBusy
from deploy.models import AdoptedFile, Revision, Rollout, StoredFile
from remote.errors import FileNotWritable
from subnet.partitions_conf import table_digest
from tests.deploy.conftest import INFERENCE, OLGA, TRAINING, Scene, make_scene
from tests.deploy.fakes import failing, sha256

State = Rollout.State

BY_HAND = b"""# written by hand in 2019
Default=0x7fff,ipoib: ALL, ALL_SWITCHES=full, SELF=full, 0x0002c90300030001=full, 0x0002c90300030002=full;
training=0x2c41: 0x0002c90300010101=full, 0x0002c90300010102=full, 0x0002c90300010201=full, 0x0002c90300010202=full;
inference=0x2c42: 0x0002c90300010301=full, 0x0002c90300010302=full;
"""
EDITED = BY_HAND + b"# a hand edit\n"


@pytest.fixture
def adopted(db: None, clock) -> Scene:
    """Two hosts that run on the same hand-written file, which was adopted as revision 1; nothing was placed."""
    return make_scene(clock, by_hand=BY_HAND)


def found(scene: Scene) -> Mapping[str, bytes]:
    return {host.name: host.file or b"" for host in scene.site.hosts}


def proposal(scene: Scene) -> Revision:
    current = queries.current_revision(scene.subnet)
    return operations.propose(subnet=scene.subnet, table=scene.table(), parent=current, actor=OLGA)


def test_the_files_are_kept_byte_for_byte_and_told_in_the_trail(adopted: Scene):
    rows = AdoptedFile.objects.filter(revision=adopted.first)
    assert {(row.host.name, bytes(row.data), row.digest) for row in rows} == {
        ("mgr-a", BY_HAND, sha256(BY_HAND)),
        ("mgr-b", BY_HAND, sha256(BY_HAND)),
    }
    event = Event.objects.get(action="deploy:revision:adopt")
    assert event.after["found"] == {"mgr-a": sha256(BY_HAND), "mgr-b": sha256(BY_HAND)}
    assert event.subject_key == adopted.first.public_id


def test_placing_it_as_it_is_ends_proven_and_changes_no_port(adopted: Scene):
    before = adopted.tables()
    revision = proposal(adopted)
    assert table_digest(revision.partition_table()) == adopted.first.table_digest
    rollout = adopted.run(adopted.start(revision))
    assert rollout.state == State.PROVEN, rollout.cause
    assert adopted.tables() == before
    assert adopted.digests() == {revision.digest}
    assert rollout.read_back["counts"]["unaffected_ports_changed"] == 0
    assert queries.current_revision(adopted.subnet) == revision


def test_the_same_table_is_proposed_once(adopted: Scene):
    assert proposal(adopted) == proposal(adopted)


def test_contrary_evidence_puts_the_found_bytes_back(adopted: Scene):
    before = adopted.tables()
    rollout = adopted.start(proposal(adopted))
    adopted.site.fail = failing(
        lambda: FileNotWritable(73, "fabricui cannot write in /etc/opensm."), verb="place", host="mgr-a", times=1
    )
    adopted.run(rollout)
    assert rollout.state == State.RESTORED
    assert [host.file for host in adopted.site.hosts] == [BY_HAND, BY_HAND]
    assert adopted.tables() == before
    assert "The hand-written file that was adopted as revision 1 is back on every manager host" in rollout.cause


@pytest.mark.parametrize("host", ["mgr-a", "mgr-b"])
def test_a_hand_edit_after_the_look_is_refused_before_anything_is_placed(adopted: Scene, host: str):
    rollout = adopted.start(proposal(adopted))
    adopted.site.meaning[EDITED] = adopted.table()
    adopted.site.host(host).file = EDITED
    adopted.run(rollout)
    assert rollout.state == State.REFUSED
    assert f"Manager host {host}" in rollout.cause
    assert "is not the hand-written file that was adopted as revision 1" in rollout.cause
    assert "adopt what lies there now" in rollout.cause
    assert not any(what == "placed" for what, _, _ in adopted.site.notes)


def test_once_it_is_proven_there_is_nothing_to_adopt(adopted: Scene):
    adopted.run(adopted.start(proposal(adopted)))
    assert queries.current_revision(adopted.subnet) != adopted.first
    with pytest.raises(StaleRevision, match="current already"):
        _adopt(adopted)


def test_what_was_edited_since_is_adopted_as_the_next_revision(adopted: Scene):
    adopted.site.meaning[EDITED] = adopted.table()
    for host in adopted.site.hosts:
        host.file = EDITED
    again = _adopt(adopted)
    assert (again.number, again.parent) == (2, adopted.first)
    assert files.Standing.of(again).data == EDITED
    rollout = adopted.run(adopted.start(proposal(adopted)))
    assert rollout.state == State.PROVEN, rollout.cause


def test_not_while_a_rollout_runs(adopted: Scene):
    adopted.start(proposal(adopted))
    with pytest.raises(SubnetBusy):
        _adopt(adopted)


def test_nothing_else_goes_out_before_it(adopted: Scene):
    adopted.where[1] = INFERENCE
    with pytest.raises(AdoptionUnfinished, match="as it is first"):
        proposal(adopted)


def test_after_it_a_move_goes_out_as_always(adopted: Scene):
    adopted.run(adopted.start(proposal(adopted)))
    rollout = adopted.run(adopted.begin(s1=INFERENCE))
    assert rollout.state == State.PROVEN, rollout.cause
    assert adopted.where[2] == TRAINING


def test_different_files_are_no_first_revision(db, clock):
    scene = make_scene(clock, by_hand=BY_HAND, adopt=False)
    scene.site.host("mgr-b").file = EDITED
    with pytest.raises(AdoptionRefused, match="Copy the master's file"):
        _adopt(scene)
    assert not Revision.objects.exists()


def test_a_host_that_was_not_read_stops_it(db, clock):
    scene = make_scene(clock, by_hand=BY_HAND, adopt=False)
    with pytest.raises(AdoptionRefused, match="Take a new look"):
        operations.record_adopted_revision(
            subnet=scene.subnet, table=scene.table(), found={"mgr-a": BY_HAND}, actor=OLGA
        )


def test_a_look_keeps_a_file_that_is_no_revision_and_knows_an_adopted_one(db, clock):
    scene = make_scene(clock, by_hand=BY_HAND, adopt=False)
    looked = scene.look()
    assert {row["revision"] for row in looked.managers} == {None}
    assert StoredFile.objects.get().size == len(BY_HAND)
    assert files.contents(scene.subnet, [sha256(BY_HAND)]) == {sha256(BY_HAND): BY_HAND}
    _adopt(scene)
    assert {row["revision"] for row in scene.look().managers} == {1}


def test_an_adopted_file_is_never_changed(adopted: Scene):
    row = AdoptedFile.objects.first()
    row.data = b"other"
    with pytest.raises(Immutable):
        row.save()
    with pytest.raises(DatabaseError), transaction.atomic():
        AdoptedFile.objects.update(data=b"other")
    with pytest.raises(DatabaseError), transaction.atomic():
        AdoptedFile.objects.all().delete()


def _adopt(scene: Scene) -> Revision:
    return operations.record_adopted_revision(
        subnet=scene.subnet, table=scene.table(), found=found(scene), actor=OLGA, reason="for a test"
    )
