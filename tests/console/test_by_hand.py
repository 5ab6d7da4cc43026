"""The count of manual actions removed, and the steps of the first run: what they say of any numbers."""

from console.by_hand import Work, spared
from console.first_steps import Known, steps


def work(**changes):
    return Work(**{"ports": 0, "files": 0, "proven": 0, "started": 0, "staged": 0} | changes)


def test_one_server_of_eight_ports_moved_on_two_managers():
    """By hand: 8 GUIDs looked up, 8 lines, 2 files, 1 signal, 8 tables. Here: one drag, one review, one button."""
    found = spared(work(ports=8, files=2, proven=1, started=1, staged=1))
    assert (found.by_hand_total, found.here_total, found.removed) == (27, 3, 24)
    assert dict(found.by_hand) == {
        "port GUIDs looked up": 8, "lines edited": 8, "files copied to a manager host": 2, "reloads signalled": 1,
        "P_Key tables checked": 8,
    }  # fmt: skip


def test_what_came_to_nothing_is_work_and_spares_nothing():
    found = spared(work(started=3, staged=5))
    assert (found.by_hand_total, found.here_total, found.removed) == (0, 11, 0)


def test_nothing_is_nothing():
    assert spared(work()).removed == 0


def at(**known):
    return [step.at.value for step in steps(Known(**known))]


def test_the_first_open_step_is_next_and_done_ones_stay_done():
    assert at() == ["next", "later", "later", "later", "later"]
    assert at(has_subnet=True, managers=1, good_managers=1) == ["done", "next", "later", "later", "later"]
    assert at(has_subnet=True, managers=2) == ["done", "next", "later", "later", "later"]  # enrolled, not checked
    assert at(has_subnet=True, good_managers=2, servers=4) == ["done", "done", "next", "done", "later"]
    everything = {"has_subnet": True, "good_managers": 2, "has_revision": True, "servers": 1, "may_write": True}
    assert at(**everything) == ["done"] * 5
