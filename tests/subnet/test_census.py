"""Who runs a subnet manager, and who may."""

from dataclasses import replace

from subnet.observed import SeenSM
from subnet.readback import census
from tests.subnet.fabrics import LEAF, MASTER, SM1, SM2, STANDBY, fabric, guid, leaf_copy, port

REGISTERED = {SM1, SM2}
ROGUE = SeenSM(guid(3), 103, "MASTER", 15, 7)
ROGUE_PORT = port(3, {0: 0xFFFF}, is_sm=True, leaf=leaf_copy({}))


def kinds(after, registered=REGISTERED):
    return [(problem.kind, problem.guid) for problem in census(after, registered)]


def test_one_master_and_one_standby_are_all_there_should_be():
    assert kinds(fabric(port(1))) == []


def test_no_master():
    assert kinds(fabric(port(1), sms=(replace(MASTER, state="DISCOVERING"), STANDBY))) == [("no_master", None)]


def test_no_standby():
    assert kinds(fabric(port(1), sms=(MASTER,))) == [("no_standby", None)]
    assert kinds(fabric(port(1), sms=(MASTER, replace(STANDBY, state="NOTACTIVE")))) == [("no_standby", None)]


def test_a_rogue_that_took_over_is_found_with_its_place():
    after = fabric(
        replace(ROGUE_PORT, master_sm_lid=103),
        port(1, master_sm_lid=103),
        sms=(replace(MASTER, state="STANDBY"), STANDBY, ROGUE),
    )
    problems = census(after, REGISTERED)
    assert [problem.kind for problem in problems] == ["unregistered_sm", "wrong_master_lid"]
    assert (problems[0].guid, problems[0].leaf, problems[0].leaf_port) == (guid(3), LEAF, 5)
    assert f"Port {guid(3)} at leaf {LEAF} port 5" in problems[0].sentence
    assert "is MASTER with priority 15" in problems[0].sentence
    # The two manager hosts still say LID 1.
    assert f"{SM1} and 1 more takes LID 1" in problems[1].sentence


def test_a_rogue_beside_the_master():
    after = fabric(ROGUE_PORT, sms=(MASTER, STANDBY, ROGUE))
    assert kinds(after) == [("two_masters", guid(3)), ("unregistered_sm", guid(3))]


def test_an_unregistered_standby_is_no_standby():
    after = fabric(ROGUE_PORT, sms=(MASTER, replace(ROGUE, state="STANDBY")))
    assert kinds(after) == [("unregistered_sm", guid(3)), ("no_standby", None)]


def test_a_port_that_sets_is_sm_and_keeps_silent_counts():
    (problem,) = census(fabric(ROGUE_PORT), REGISTERED)
    assert (problem.kind, problem.guid) == ("unregistered_sm", guid(3))
    assert "it does not answer" in problem.sentence
    assert kinds(fabric(replace(ROGUE_PORT, reading="unreadable"))) == []


def test_an_sm_on_a_port_that_was_not_read_still_counts():
    assert kinds(fabric(sms=(MASTER, STANDBY, replace(ROGUE, state="STANDBY")))) == [("unregistered_sm", guid(3))]


def test_ports_that_follow_another_lid_are_told_once_a_lid():
    after = fabric(port(1, master_sm_lid=9), port(2, master_sm_lid=9), port(3, master_sm_lid=0), port(4))
    assert kinds(after) == [("wrong_master_lid", guid(3)), ("wrong_master_lid", guid(1))]
    assert "and 1 more takes LID 9" in census(after, REGISTERED)[1].sentence
    assert kinds(fabric(port(1, master_sm_lid=9, reading="unreadable"))) == []
