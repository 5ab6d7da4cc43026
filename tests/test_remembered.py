"""Rows that are put back from a copy are as young as they say, whatever the clocks do."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from inventory.models import Subnet
from tests import remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def made() -> list[str]:
    return []


@pytest.fixture
def give(made):
    @remembered.remembered
    def make():
        made.append("made")
        return Subnet.objects.create(name=f"lab{len(made)}").name

    def give():
        Subnet.objects.all().delete()
        name = make()
        assert list(Subnet.objects.values_list("name", flat=True)) == [name]
        return name

    return give


def test_a_fresh_copy_is_put_back(give, made):
    assert give() == "lab1"
    again = connection.vendor != "sqlite"  # there it is made each time
    assert give() == ("lab2" if again else "lab1")


@pytest.mark.parametrize("which", ["the machine's", "the wall's"])
@pytest.mark.parametrize("seconds", [61, -1])
def test_by_either_clock_an_old_copy_is_none(give, made, monkeypatch, which, seconds):
    give()
    gone = (seconds, 0) if which == "the machine's" else (0, seconds)
    later = (time.monotonic() + gone[0], time.time() + gone[1])
    monkeypatch.setattr(remembered, "clocks", lambda: later)
    assert give() == "lab2"


def test_a_test_with_a_time_of_its_own_gets_rows_of_that_time_and_leaves_none(give, made, monkeypatch):
    give()
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda now=timezone.now: now() - timedelta(days=1))
        assert give() == "lab2"
    if connection.vendor == "sqlite":
        assert give() == "lab1"
