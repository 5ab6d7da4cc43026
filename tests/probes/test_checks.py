"""The key for probe hosts is looked at before a probe needs it."""

import pytest

from probes.checks import probe_key


def found(settings, probe="", manager=""):
    settings.PROBE_KEY_FILE, settings.MANAGER_KEY_FILE = str(probe), str(manager)
    return [problem.id for problem in probe_key(None)]


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "key"
    file.touch(mode=0o600)
    return file


def test_a_process_without_the_key_and_one_with_its_own_are_well(settings, key):
    assert found(settings) == []
    assert found(settings, key) == []
    assert found(settings, key, key.parent / "another") == []


def test_a_key_that_is_missing_open_to_others_or_the_managers_is_named(settings, key):
    assert found(settings, key.parent) == ["probes.E001"]
    assert found(settings, key, key) == ["probes.E003"]
    key.chmod(0o640)
    assert found(settings, key) == ["probes.E002"]
