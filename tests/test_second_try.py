"""The runner's second try: only of few, only on the simulated fabric, never silent, and green only if all is."""

import sys
import textwrap

import pytest

from tests.__main__ import MOST_AGAIN, _report, _run
from tests.stages import Stage

FAILS_ONCE = """
    import pathlib, pytest
    {conditions}
    def lost(number):
        seen = pathlib.Path(__file__).with_name(f"seen-{{number}}")
        if not seen.exists():
            seen.touch()
            raise RuntimeError(f"packet {{number}} was lost")
    @pytest.mark.parametrize("number", range({many}))
    def test_a(number):
        lost(number)
    def test_b():
        pass
"""


def stage_of(folder, text: str, *options: str, simulated: bool) -> Stage:
    """A stage of one file of tests, apart from this suite's settings."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    (folder / "test_it.py").write_text(textwrap.dedent(text), encoding="ascii")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *options, str(folder))
    return Stage("of one file", (command,), 60, junit=True, simulated=simulated)


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Run one stage of the given text as the runner does."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(text: str, *options: str, simulated: bool = True):
        tests, own = tmp_path / "tests", tmp_path / "own"
        tests.mkdir()
        own.mkdir()
        return _run(stage_of(tests, text, *options, simulated=simulated), own, long=False)

    return run


def test_what_fails_once_passes_and_is_told(ran, capsys):
    result = ran(FAILS_ONCE.format(many=MOST_AGAIN, conditions=""))
    assert (result.failure, result.passed, result.failed, result.again) == ("", MOST_AGAIN + 1, 0, MOST_AGAIN)
    assert _report([result], 0, 1.0) == 0
    said = capsys.readouterr().out
    assert "packet 0 was lost" in said
    assert f"{MOST_AGAIN + 1} passed ({MOST_AGAIN} of them at the second try), 0 failed" in said


def test_what_fails_twice_stays_failed(ran):
    result = ran(FAILS_ONCE.format(many=1, conditions="") + "\n    def test_c():\n        assert not 'broken'\n")
    assert result.failed == 2
    assert "packet 0 was lost" in result.failure
    assert "at the second try" in result.failure
    assert _report([result], 0, 1.0) == 1


@pytest.mark.parametrize(("many", "simulated"), [(MOST_AGAIN + 1, True), (1, False)])
def test_many_failures_and_other_stages_have_one_try(ran, many, simulated):
    result = ran(FAILS_ONCE.format(many=many, conditions=""), simulated=simulated)
    assert (result.failed, result.again) == (many, 0)
    assert _report([result], 0, 1.0) == 1


def test_nothing_stops_a_stage_at_its_first_failure(ran):
    result = ran(FAILS_ONCE.format(many=2, conditions=""), "-x")
    assert (result.failure, result.passed, result.again) == ("", 3, 2)


def test_a_stage_that_did_not_come_to_its_end_has_one_try(ran):
    result = ran(FAILS_ONCE.format(many=1, conditions="") + "\n    def test_z():\n        pytest.exit('no more')\n")
    assert result.failure
    assert result.again == 0


def test_options_of_the_environment_leave_nothing_out(ran, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing_of_this_name")
    assert ran(FAILS_ONCE.format(many=1, conditions="")).passed == 2


def test_a_skipped_test_is_no_second_try(ran, monkeypatch):
    monkeypatch.setenv("CI", "true")
    result = ran(FAILS_ONCE.format(many=1, conditions="@pytest.mark.skip\n    def test_s():\n        pass\n"))
    assert (result.failed, result.skipped, result.again) == (1, 1, 0)
    assert result.failure


def test_a_stage_that_cannot_begin_has_failed(ran):
    result = ran("import nothing_of_this_name\n")
    assert result.failure
    assert result.passed == 0
