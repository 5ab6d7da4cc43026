"""The RDMA guests beside a demo: whether they start, what is said when not, and that they never take the demo along."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import data_plane
from lab.errors import LabError
from lab.guests import packages
from lab.layout import Layout, repository, wait_until


@pytest.fixture
def house(tmp_path):
    return SimpleNamespace(site=SimpleNamespace(layout=Layout(tmp_path), lab="a mark"))


@pytest.fixture
def started(monkeypatch):
    """The keywords of each start; nothing is started."""
    calls = []

    def up(place, **keywords):
        calls.append(keywords | {"place": place})
        raise LabError("there is no kernel")

    monkeypatch.setattr(packages, "missing", lambda: [])
    monkeypatch.setattr(data_plane.Guests, "up", up)
    return calls


def test_missing_packages_are_one_line_and_the_demo_goes_on(house, started, monkeypatch, capsys):
    monkeypatch.setattr(packages, "missing", lambda: ["qemu-system-x86", "python3-pyverbs"])
    with data_plane.beside(house, wanted=None):
        pass
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "qemu-system-x86 python3-pyverbs" in said
    assert not started


def test_who_wants_none_gets_none_and_no_word(house, started, capsys):
    with data_plane.beside(house, wanted=False):
        pass
    assert capsys.readouterr().out == ""
    assert not started


def test_guests_that_do_not_start_end_nothing_else(house, started, capsys):
    with data_plane.beside(house, wanted=None):
        wait_until(lambda: "there is no kernel" in capsys.readouterr().err, timeout_s=10, what="the reason to be said")
    assert started == [{"place": house.site.layout.guests, "owned": True, "mark": "a mark"}]


def test_the_end_of_the_demo_waits_for_guests_that_are_on_their_way(house, monkeypatch, capsys):
    is_down, on_the_way = threading.Event(), threading.Event()

    def up(place, **keywords):
        on_the_way.set()
        assert is_down.wait(timeout=10)
        raise LabError("they were taken down")

    monkeypatch.setattr(packages, "missing", lambda: [])
    monkeypatch.setattr(data_plane.Guests, "up", up)
    monkeypatch.setattr(data_plane.guests, "down", lambda place: is_down.set())
    with data_plane.beside(house, wanted=True):
        assert on_the_way.wait(timeout=10)
    assert not [thread for thread in threading.enumerate() if thread.name == "rdma-guests"]
    assert "taken down" not in capsys.readouterr().err


def test_the_demo_looks_for_the_packages_that_run_installs():
    written = re.search(r'RDMA_PROGRAMS="([^"]*)"', (repository() / "run").read_text(encoding="utf-8"))[1]
    assert {tuple(word.split(":")) for word in written.replace("\\\n", " ").split()} == set(packages.NEEDED)


@pytest.mark.parametrize("what", ["sh", "/usr/*/sh"])
def test_a_package_is_there_when_its_file_is(monkeypatch, what):
    monkeypatch.setattr(packages, "NEEDED", ((what, "dash"), (f"{what}-of-another-world", "other")))
    assert packages.missing() == ["other"]
    assert Path("/usr/bin/sh").exists()
