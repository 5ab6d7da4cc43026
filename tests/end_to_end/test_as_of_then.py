"""As of then equals what smpquery read at ten moments of a day of rollouts, a restart, a hand edit and a takeover."""

import pytest
from django.utils import timezone

from deploy.as_of import Certainty, as_of
from lab import breaking
from lab.quiet import wait_until_quiet
from partitions import operations
from partitions.as_of import partitions_at
from subnet.diagnostics import parse_smpquery_pkeys
from subnet.pkey import Membership
from tests.end_to_end.conftest import until
from tests.end_to_end.test_one_move import tables_by_smpquery

pytestmark = pytest.mark.contract

BY_HAND = 0x8ABC  # `lab.breaking.HAND_EDIT`


class Day:
    """Moments with what smpquery read then, and the revision that was current."""

    def __init__(self, desk) -> None:
        self.desk = desk
        self.moments = []

    def note(self, what: str, *, look: bool = True) -> None:
        """Dump every port's table by another program, after a look of ours unless the proof of a rollout was one."""
        if look:
            observation = self.desk.observe()
            assert observation.state == "DONE", observation.failure
        self.dump(what)

    def dump(self, what: str) -> None:
        dumped = tables_by_smpquery(self.desk.site)
        self.desk.subnet.refresh_from_db()
        fence = self.desk.subnet.fence
        fence.refresh_from_db()
        self.moments.append((what, timezone.now(), dumped, fence.current.number))

    def roll_out(self, what: str) -> None:
        rollout = self.desk.run(self.desk.start(what))
        assert rollout.state == "PROVEN", rollout.cause
        self.note(what, look=False)


def spread(site, entry: int, *, held: bool) -> None:
    """Wait until every server's port holds the entry, or none does, and the master has ended its sweep."""
    guids = {guid for box in site.fabric.servers for guid in box.port_guids}

    def is_so() -> bool:
        """One port after the other, up to the first that is not so: mostly one program a look, not one a port."""
        lids = site.lids()
        tables = (parse_smpquery_pkeys(site.run_tool("smpquery", "pkeys", str(lids[guid]))) for guid in sorted(guids))
        return all((entry in table.pkeys.values()) is held for table in tables)

    until(is_so, f"{entry:#06x} is {'on' if held else 'off'} every port")
    wait_until_quiet(next(manager for manager in site.managers if manager.name == site.master()).list_file)


def test_ten_moments(desk):
    site, (first, second, third, *_) = desk.site, desk.servers
    master, standby = site.managers
    day = Day(desk)
    day.note("before anything")
    desk.furnish()
    day.note("two servers in training", look=False)
    day.dump("the same a little later")
    back_to = timezone.now()
    desk.stage(first, desk.training, desk.inference)
    day.roll_out("one moved to inference")
    desk.stage(third, None, desk.training)
    operations.stage_add(server=second, target=desk.inference, actor=desk.olga, membership=Membership.LIMITED)
    day.roll_out("one joined, one is in two partitions")

    breaking.restart_opensm(site, master.name)
    site.wait_for_roles()
    wait_until_quiet(master.list_file)
    day.note("the master was restarted")

    good = site.read_file(master)
    breaking.replace_file(site, site.master(), "edit")
    breaking.reload_opensm(site, site.master())
    spread(site, BY_HAND, held=True)
    unseen = timezone.now()
    day.note("somebody edited the file of the master by hand")
    breaking.replace_file(site, site.master(), content=good)
    breaking.reload_opensm(site, site.master())
    spread(site, BY_HAND, held=False)
    day.note("and put it back")

    found = operations.stage_back(subnet=desk.subnet, at=back_to, actor=desk.olga, reason="as it was")
    assert {str(one.server) for one in found.servers} == {str(first), str(second), str(third)}
    day.roll_out("back as it was")

    breaking.kill_opensm(site, site.master())
    site.wait_for_master(standby.name)
    wait_until_quiet(standby.list_file)
    day.note("a takeover")

    assert len(day.moments) == 10
    for what, at, dumped, number in day.moments:
        then = as_of(desk.subnet, at)
        assert then.current.revision.number == number, what
        assert then.current.is_vouched, what
        assert {guid: dict(then.ports[guid].table) for guid in dumped} == dumped, what
        held = {(pkey, member.guid) for part in partitions_at(desk.subnet, at, then.current.table)
                for pkey, member in ((part.pkey, member) for member in part.members)}  # fmt: skip
        by_fabric = {(entry & 0x7FFF, guid) for guid, table in dumped.items() for entry in table.values()}
        assert {(int(pkey), guid) for pkey, guid in held} == {
            pair for pair in by_fabric if pair[0] not in (0x7FFF, BY_HAND & 0x7FFF)
        }, what
    tables = [dumped for _, _, dumped, _ in day.moments]
    assert len({str(sorted((guid, sorted(table.items())) for guid, table in one.items())) for one in tables}) >= 5

    # Between two looks nobody has seen which of the two it was, and the page says so.
    edited = tables[6]
    then = as_of(desk.subnet, unseen)
    told = {guid: then.ports[guid] for guid in edited if BY_HAND in edited[guid].values()}
    assert told
    assert {port.certainty for port in told.values()} == {Certainty.CHANGED}
    assert {guid: dict(port.later) for guid, port in told.items()} == {guid: edited[guid] for guid in told}
