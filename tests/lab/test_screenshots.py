"""The pictures are of pages that are there."""

import pytest
from django.urls import Resolver404, resolve

from console.frame import PAGES
from lab import screenshots


def test_each_address_is_a_page_and_every_page_of_the_navigation_is_taken():
    found = set()
    for name, address in screenshots.PAGES.items():
        path = address.partition("?")[0]
        if name == "not-found":
            with pytest.raises(Resolver404):
                resolve(path)
        else:
            found.add(resolve(path).view_name)
    assert {name for _, name, _, _ in PAGES} <= found
