"""A fabric that was configured by hand is taken over: nothing changes on any port, it ends PROVEN, Default closes.

The two files hold the constructs of public ones: A06, A22, A23, A39, A41, A45, A46, A57 with an open Default, and A11
and A44 without any statement of Default.
"""

import pytest

from deploy import files
from lab import breaking
from partitions import adoption, closing
from partitions.errors import AdoptionRefused
from partitions.models import Membership, Partition
from subnet.observed import parse_reading
from tests.end_to_end.conftest import as_new, make_desk, mend
from tests.end_to_end.test_one_move import tables_by_smpquery

pytestmark = pytest.mark.contract

OPEN = """# written by hand
Default=0x7fff, rate=7, mtu=4, scope=2, defmember=full:
        ALL=full, SELF=full, ALL_SWITCHES=full;
Default=0x7fff, ipoib, rate=7, mtu=4, scope=2:
mgid=ff12:401b:ffff::ffff:ffff  # copied from an error log
        mgid=ff12:401b::ffff:ffff       # IPv4 broadcast
        mgid=ff12:401b::16              # IGMP
        mgid=ff12:601b::16              # MLDv2
        mgid=ff12:601b::1:3             # LLMNR
        AL=f, S=f, {4}=limited;
NewPartition , ipoib : {2}=full, {3}=limi, {4}=fu ;
Other , i , d=f : {5} ;
ShareIO = 0x80 , defmember=full : {1}, {2};
# next two limited
ShareIO = 0x80 : {3}, {4}=full;
shareio-renamed = 0x8080 , defmember=full : {5}, {6}=limited;
Ten=0x10 : ALL_C;
"GPU tenant-A (prod)"=0x20: {2}=full;
föräldralös ÄÖ=0x21: {3}=full;
this-name-is-longer-than-thirty-one-characters=0x22: {4}=full;
Commas=0x30:,{2}=full,,{3},;
Hollow=0x40: ;
Nobody=0x41: NONE;
Future=0x42: 0x0210fa0300ff0001=full;
Twice=0x50: {2}=full, {3}=full;
Twice=0x50: {2}=limited;
Twice=0x50: {3};
"""
NO_DEFAULT = """# team-a
0x8001 : ALL=full ;
# team-b
0x8002 : ALL=full ;
Ten=0x10,ipoib: {2}=full, {3}=full;
"""


def by_hand(site, text):
    """`text` with node 1 as the master's port and the others as servers' first ports."""
    ports = [site.managers[0].port_guid, *(server.hcas[0].port_guid for server in site.fabric.servers)]
    for number, guid in enumerate(ports, start=1):
        text = text.replace(f"{{{number}}}", guid)
    return text.encode()


@pytest.fixture
def running(site, transactional_db, settings, olga):
    """Start both OpenSM on a file, and return an operator's desk that has never seen the fabric."""
    settings.MANAGER_KEY_FILE = str(site.manager_key)
    settings.REGISTRATION_TRUST = "enrolled"

    def start(text):
        as_new(site, by_hand=by_hand(site, text))
        return make_desk(site, olga, with_revision=False)

    yield start
    mend(site)


def every_table(desk):
    """All tables twice: HCA ports by smpquery, and everything, switches too, by the reader; index → entry."""
    from deploy import hosts

    master = hosts.connect(desk.subnet)[0]
    read = parse_reading(master.read_tables(topology="discovery", timeout_s=60))
    return tables_by_smpquery(desk.site), {guid: dict(port.pkeys) for guid, port in read.ports.items()}


def adopt(desk, **owners):
    """Look, explain, adopt and place; return the explanation and the rollout at its end."""
    explained = adoption.explain_look(observation=desk.observe())
    assert explained.obstacles == ()
    adoption.adopt(observation=explained.observation, digest=explained.digest, actor=desk.olga)
    rollout = adoption.place(subnet=desk.subnet, observation=explained.observation, actor=desk.olga)
    return explained, desk.run(rollout)


@pytest.mark.parametrize("text", [OPEN, NO_DEFAULT], ids=["open Default", "no Default"])
def test_a_fabric_is_taken_over_and_no_port_changes(running, text):
    desk = running(text)
    before = every_table(desk)
    explained, rollout = adopt(desk)
    assert rollout.state == "PROVEN", rollout.cause
    assert every_table(desk) == before
    plan = rollout.revision.partition_table()
    assert plan == rollout.parent.partition_table() == explained.table
    counts = rollout.read_back["counts"]
    assert (counts["ports"], counts["proven"], counts["unaffected_ports_changed"]) == (14, 14, 0)
    assert {bytes(manager.partitions_file.read_bytes()) for manager in desk.site.managers} == {
        bytes(rollout.revision.data)
    }
    assert Partition.objects.count() == len(explained.table.partitions)
    assert Membership.objects.count() == len(list(explained.table.memberships()))
    # A takeover reads what the standby holds: still nothing moves but the manager hosts' own ports.
    breaking.kill_opensm(desk.site, desk.site.managers[0].name)
    desk.site.wait_for_master(desk.site.managers[1].name)
    managers = {manager.port_guid for manager in desk.site.managers}
    after = tables_by_smpquery(desk.site)
    assert {guid: after[guid] for guid in after.keys() - managers} == {
        guid: table for guid, table in before[0].items() if guid not in managers
    }


def test_default_is_closed_for_a_canary_and_then_for_everybody(running):
    desk = running(OPEN)
    adopt(desk)
    canary = desk.servers[5]
    ports = {port.guid for hca in canary.hcas.all() for port in hca.ports.all()}
    before = tables_by_smpquery(desk.site)
    closing.stage_canaries(subnet=desk.subnet, servers=[canary], actor=desk.olga, reason="try it")
    rollout = desk.run(desk.start(reason="canary first"))
    assert rollout.state == "PROVEN", rollout.cause
    now = tables_by_smpquery(desk.site)
    assert now == {guid: {**table, 0: 0x7FFF} if guid in ports else table for guid, table in before.items()}
    assert closing.closing_of(desk.subnet).step == "canary"

    storage = desk.servers[4]
    stays = {port.guid for hca in storage.hcas.all() for port in hca.ports.all()}
    stays |= {manager.port_guid for manager in desk.site.managers}
    closing.stage_closed(subnet=desk.subnet, stay_full=[storage], actor=desk.olga)
    rollout = desk.run(desk.start(reason="the canary works"))
    assert rollout.state == "PROVEN", rollout.cause
    now = tables_by_smpquery(desk.site)
    assert now == {guid: {**table, 0: 0xFFFF if guid in stays else 0x7FFF} for guid, table in before.items()}
    assert closing.closing_of(desk.subnet).step == "closed"


class TestItIsRefused:
    """Nothing is placed, and the sentence says what to mend."""

    @pytest.fixture
    def desk(self, running):
        return running(NO_DEFAULT)

    def obstacles(self, desk):
        explained = adoption.explain_look(observation=desk.observe())
        with pytest.raises(AdoptionRefused):
            adoption.adopt(observation=explained.observation, digest=explained.digest, actor=desk.olga)
        assert not Partition.objects.exists()
        return {obstacle.rule: obstacle for obstacle in explained.obstacles}

    def test_while_the_files_or_the_managers_are_not_as_they_must_be(self, desk):
        """One after the other on one fabric; none of them is reloaded, so each is mended by its file."""
        master, standby = desk.site.managers
        good = master.partitions_file.read_bytes()
        other = good.replace(b"Ten=0x10", b"Ten=0x11")

        standby.partitions_file.write_bytes(other)
        obstacle = self.obstacles(desk)["files-differ"]
        assert standby.name in obstacle.sentence
        assert "the tables of 2 ports" in obstacle.sentence
        assert f"copy it to {standby.name}" in obstacle.mend

        master.partitions_file.write_bytes(other)
        assert "Reload the master" in self.obstacles(desk)["drift"].mend

        for manager in desk.site.managers:
            manager.partitions_file.write_bytes(good)
            breaking.replace_file(desk.site, manager.name, "crlf")
        assert "LF line ends" in self.obstacles(desk)["rejected"].mend

        for manager in desk.site.managers:
            manager.partitions_file.write_bytes(good)
        rogue = breaking.start_rogue(desk.site)
        assert rogue in self.obstacles(desk)["unregistered-sm"].sentence

    def test_when_somebody_edits_a_file_after_the_look(self, desk):
        explained = adoption.explain_look(observation=desk.observe())
        adoption.adopt(observation=explained.observation, digest=explained.digest, actor=desk.olga)
        edited = explained.found + b"# a late edit\n"
        for manager in desk.site.managers:
            manager.partitions_file.write_bytes(edited)
        rollout = desk.run(adoption.place(subnet=desk.subnet, observation=explained.observation, actor=desk.olga))
        assert rollout.state == "REFUSED"
        assert "is not the hand-written file that was adopted as revision 1" in rollout.cause
        assert [manager.partitions_file.read_bytes() for manager in desk.site.managers] == [edited, edited]
        _, rollout = adopt(desk)  # what lies there now is adopted instead
        assert rollout.state == "PROVEN", rollout.cause
        assert files.Standing.of(rollout.parent).data == edited


def test_contrary_evidence_brings_the_hand_written_file_back(running):
    desk = running(NO_DEFAULT)
    explained = adoption.explain_look(observation=desk.observe())
    adoption.adopt(observation=explained.observation, digest=explained.digest, actor=desk.olga)
    spoiled = desk.site.fabric.servers[3].port_guids[0]
    rollout = adoption.place(subnet=desk.subnet, observation=explained.observation, actor=desk.olga)
    breaking.spoil_port(desk.site, spoiled)
    desk.run(rollout)
    assert rollout.state == "STUCK"  # a table changed behind OpenSM's back is not mended by any file
    assert spoiled in rollout.cause
    assert "The hand-written file that was adopted as revision 1 is back on every manager host" in rollout.cause
    assert {manager.partitions_file.read_bytes() for manager in desk.site.managers} == {explained.found}
