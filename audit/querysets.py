"""How events are read, and the refusal of every way to change them in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models
from django.db.models import Q

from audit.errors import AppendOnly

if TYPE_CHECKING:
    from audit.models import Event, Seal  # noqa: F401  names in annotations below; models.py imports this file


class EventQuerySet(models.QuerySet["Event"]):
    """Events, for reading only."""

    def matching_any(self, ways: Iterable[Mapping[str, str]]) -> EventQuerySet:
        """Keep the events that have all the values of one of `ways` (column → value)."""
        wanted = Q()
        for way in ways:
            wanted |= Q(**way)
        return self.filter(wanted)

    def newest_first(self) -> EventQuerySet:
        """Order as the audit list shows them."""
        return self.order_by("-number")

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events never change.")

    def delete(self) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events are never removed.")

    def create(self, **kwargs: Any) -> NoReturn:
        """Refuse: events come from `audit.record.record`."""
        raise AppendOnly("Events are written by audit.record.record() only.")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: events come from `audit.record.record`."""
        raise AppendOnly("Events are written by audit.record.record() only.")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Events never change.")


class SealQuerySet(models.QuerySet["Seal"]):
    """Seals; none is ever changed or removed."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Seals never change.")

    def delete(self) -> NoReturn:
        """Refuse."""
        raise AppendOnly("Seals are never removed.")
