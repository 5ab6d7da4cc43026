"""The model of OpenSM's parser and the real OpenSM agree on many files; and would be seen to part if they did."""

from collections import Counter

import pytest

from lab.differential.asking import asked
from lab.differential.cases import load, outcome
from lab.differential.comparison import differences, fabric, is_chance, model
from lab.differential.fabric import END_PORTS, SM_PORT, net_text
from lab.differential.generator import KINDS, example
from lab.differential.rows import ROWS
from lab.oracle import Oracle
from tests.lab.cases_of_a import FOLDER
from tests.lab.planted import PLANTED

pytestmark = pytest.mark.contract
EXAMPLES = 360  # every row of the grammar twice, and 300 for the planted errors
FOUND = sorted((FOLDER / "found").glob("*.conf"))


@pytest.fixture(scope="module")
def answered():
    """Each example with what the real OpenSM did, asked once."""
    return list(asked(map(example, range(EXAMPLES)), workers=2))


def parted(answered):
    """The examples that the model reads otherwise than OpenSM did, with the differences."""
    on = fabric()
    readings = [(one, model(one.data, one.options, on), answer) for one, answer in answered]
    return {
        one.number: (one.data, found)
        for one, reading, answer in readings
        if not is_chance(reading) and (found := differences(reading, answer))
    }


def test_model_and_opensm_agree(answered):
    assert not parted(answered), "./run bench differential reduces and saves each of these"


def test_hardly_any_file_is_a_matter_of_chance(answered):
    on = fabric()
    chance = [one.number for one, _ in answered if is_chance(model(one.data, one.options, on))]
    assert len(chance) <= 0.02 * EXAMPLES


def test_a_third_of_the_files_is_accepted(answered):
    assert all(len(answer.tables) == len(END_PORTS) for _, answer in answered if not answer.died)
    shares = Counter(not answer.rejected and not answer.died for _, answer in answered)
    assert shares[True] >= 0.3 * EXAMPLES
    assert shares[False] >= 0.15 * EXAMPLES, "nearly nothing is rejected"


def test_every_kind_is_accepted_somewhere_and_ours_always(answered):
    accepted = Counter(one.kind for one, answer in answered if not answer.rejected and not answer.died)
    assert set(accepted) == set(KINDS)
    assert accepted["table"] == sum(one.kind == "table" for one, _ in answered)


def test_every_row_is_put_to_opensm(answered):
    assert not set(ROWS) - {row for one, _ in answered for row in one.rows}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found_within_300_examples(name, answered, monkeypatch):
    PLANTED[name](monkeypatch)
    assert parted(answered[:300]), f"nobody notices that {name}"


@pytest.fixture(scope="module")
def oracle():
    with Oracle(net_text()) as oracle:
        yield oracle


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_before_stays_true(path, oracle):
    """Each disagreement there ever was: OpenSM still does that, and the model says so now."""
    case = load(path)
    answer = oracle.run(case.data, sm_port=SM_PORT, options=case.options)
    assert outcome(answer) == case.expected
    assert differences(model(case.data, case.options, fabric()), answer) == []
