"""Keys, anchors and spool of each test's own."""

import pytest


@pytest.fixture(autouse=True)
def own_files(settings, tmp_path):
    """A data folder for this test alone, as a demo has one: keys are made there when the first event comes."""
    settings.DATA_DIR = tmp_path
    settings.AUDIT_KEY_FILE = settings.AUDIT_SIGNING_KEY_FILE = settings.AUDIT_PUBLIC_KEY_FILE = ""
    settings.AUDIT_ANCHOR_FILE = str(tmp_path / "outside" / "anchors.jsonl")
    settings.AUDIT_SPOOL_FILE = str(tmp_path / "spool.jsonl")
    settings.AUDIT_SYSLOG = ""
    return tmp_path


@pytest.fixture
def own_anchors(settings, tmp_path):
    """An anchor file of this test's own, under the keys of all: for rows that are remembered from one to the next."""
    settings.AUDIT_ANCHOR_FILE = str(tmp_path / "anchors.jsonl")
