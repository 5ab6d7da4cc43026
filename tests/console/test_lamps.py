"""Lamps: every state has colour, shape and word, and nothing unknown looks good."""

from pathlib import Path

import pytest

from console import lamps
from deploy.models import Rollout

SPRITE = Path(__file__).resolve().parents[2] / "static" / "vendor" / "icons" / "sprite.svg"


@pytest.mark.parametrize("state", Rollout.State.values)
def test_every_state_of_a_rollout_has_a_lamp_of_its_own(state):
    lamp = lamps.rollout(state)
    assert lamp is not lamps.UNKNOWN
    assert f'id="{lamp.shape}"' in SPRITE.read_text()


def test_only_proven_looks_good():
    good = [state for state in Rollout.State.values if lamps.rollout(state).colour is lamps.Colour.GOOD]
    assert good == ["PROVEN"]


def test_states_that_end_differently_differ_without_colour():
    ends = ["PROVEN", "REFUSED", "CANCELLED", "RESTORED", "UNPROVEN", "DEGRADED", "STUCK"]
    assert len({lamps.rollout(state).shape for state in ends}) == len(ends)
    assert len({lamps.rollout(state).word for state in ends}) == len(ends)


@pytest.mark.parametrize(
    "lamp",
    [
        lamps.rollout("SOMETHING_NEW"), lamps.subnet_manager(None), lamps.subnet_manager("?"),
        lamps.link(None), lamps.link(""), lamps.file(digest=None, current="a", error=None),
        lamps.file(digest="a", current="a", error="m1 cannot be reached."),
        lamps.subnet(mode="?", is_frozen=False, rollout_state=None),
    ],
)  # fmt: skip
def test_unknown_is_never_drawn_as_good(lamp):
    assert lamp == lamps.UNKNOWN
    assert lamp.colour is lamps.Colour.IDLE


@pytest.mark.parametrize("spelling", ["ACTIVE", "4: ACTIVE", "Active"])
def test_link_states_are_understood_as_vendors_write_them(spelling):
    assert lamps.link(spelling).word == "active"


def test_a_file_is_current_or_differs():
    assert lamps.file(digest="a", current="a", error=None).word == "current"
    assert lamps.file(digest="b", current="a", error=None).colour is lamps.Colour.BAD


def test_the_subnet_s_lamp_shows_what_matters_most():
    lamp = lamps.subnet(mode="WRITE", is_frozen=True, rollout_state="STUCK")
    assert lamp.word == "stuck"
    assert lamps.subnet(mode="WRITE", is_frozen=True, rollout_state="PLACING").word == "frozen"
    assert lamps.subnet(mode="WRITE", is_frozen=False, rollout_state="PLACING").word == "rolling out"
    assert lamps.subnet(mode="WRITE", is_frozen=False, rollout_state=None).word == "ready"
