"""What the board's search understands."""

from types import SimpleNamespace

import pytest

from console.board_search import Search

TRAINING = SimpleNamespace(name="training", tenant="Acme Corp", pkey="0x2c41")
UNASSIGNED = SimpleNamespace(name="Unassigned", tenant="", pkey="")
CARD = SimpleNamespace(
    search="srv-001 staged down otto",
    states=frozenset({"staged", "down"}),
    lamps="placed: on both hosts.",
    people="otto",
)


@pytest.mark.parametrize(
    ("text", "column", "card"),
    [
        ("", True, True),
        ("srv-00", True, True),
        ("SRV-001", True, True),
        ("srv-002", True, False),
        ("srv staged", True, True),
        ("tenant:acme", True, True),
        ('tenant:"acme corp"', True, True),
        ('tenant:"acme', True, True),
        ("tenant:bert", False, True),
        ("partition:train", True, True),
        ("pkey:0x2c41", True, True),
        ("state:down", True, True),
        ("state:stag", True, True),
        ("state:conflict", True, False),
        ("state:down state:conflict", True, False),
        ("by:otto", True, True),
        ("by:olga", True, False),
        ("lamp:both", True, True),
        ("state:", True, True),
    ],
)
def test_words_and_tokens(text, column, card):
    search = Search.parse(text)
    assert search.mistakes == ()
    assert (search.takes_column(TRAINING), search.takes(CARD)) == (column, card)


def test_a_column_without_a_tenant_is_nobodys():
    assert not Search.parse("tenant:acme").takes_column(UNASSIGNED)


@pytest.mark.parametrize("text", ["colour:red", "state:purple"])
def test_what_is_not_understood_is_told_and_finds_nothing(text):
    search = Search.parse(text)
    assert search
    assert len(search.mistakes) == 1
    assert not search.takes_column(TRAINING)


def test_nothing_typed_is_no_search():
    assert not Search.parse("   ")
