"""TriggerSet: triggers of one room, spelled for both databases, installed and removed together by a migration."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(frozen=True, slots=True)
class TriggerSet:
    """`sqlite` maps a trigger's name to its body; `postgresql` maps it to its table and body, after `functions`."""

    sqlite: Mapping[str, str]
    functions: str
    postgresql: Mapping[str, tuple[str, str]]

    def create(self, connection: BaseDatabaseWrapper) -> None:
        """Install the triggers; do nothing on a database we do not know."""
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                for name, body in self.sqlite.items():
                    cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {body}")
            elif connection.vendor == "postgresql":
                cursor.execute(self.functions)
                for name, (_, body) in self.postgresql.items():
                    cursor.execute(f"CREATE OR REPLACE TRIGGER {name} {body}")

    def drop(self, connection: BaseDatabaseWrapper) -> None:
        """Remove the triggers: for undoing the migration, and for tests that play the owner of the database."""
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                for name in self.sqlite:
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
            elif connection.vendor == "postgresql":
                for name, (table, _) in self.postgresql.items():
                    cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}")
