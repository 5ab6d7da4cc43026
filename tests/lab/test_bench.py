"""The verdict of a benchmark: a missed target is never called held."""

import pytest

from lab.bench import holds


@pytest.mark.parametrize(
    ("figure", "target", "verdict"),
    [
        (2.9, "<= 3.0", True),
        (3.0, "<= 3.0", True),
        (3.1, "<= 3.0", False),
        (1499, ">= 1500", False),
        (1500, ">= 1500", True),
    ],
)
def test_a_target_is_reached_or_not(figure, target, verdict):
    assert holds({"ratio": figure}, {"ratio": target}) is verdict


def test_one_missed_target_is_enough():
    assert not holds({"a": 1, "b": 9}, {"a": "<= 2", "b": "<= 2"})


def test_a_missing_figure_is_an_error():
    with pytest.raises(KeyError):
        holds({}, {"ratio": "<= 3"})
