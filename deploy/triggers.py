"""SQL that makes the database itself refuse to change a revision. Installed by migration 0002.

A migration that rebuilds deploy_revision on SQLite loses its triggers there and has to run `create` again.
"""

from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

_SQLITE: Final = {
    # REPLACE deletes the old row without asking the delete trigger, so an insert over an existing one is refused too.
    "deploy_revision_no_replace": """
        BEFORE INSERT ON deploy_revision
        WHEN EXISTS (SELECT 1 FROM deploy_revision WHERE id = NEW.id OR public_id = NEW.public_id
                     OR (subnet_id = NEW.subnet_id AND number = NEW.number))
        BEGIN SELECT RAISE(ABORT, 'deploy_revision is written once'); END""",
    "deploy_revision_no_update": """
        BEFORE UPDATE ON deploy_revision
        BEGIN SELECT RAISE(ABORT, 'deploy_revision is written once'); END""",
    "deploy_revision_no_delete": """
        BEFORE DELETE ON deploy_revision
        BEGIN SELECT RAISE(ABORT, 'deploy_revision is written once'); END""",
}
_POSTGRESQL_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION deploy_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is written once', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$;
"""
_POSTGRESQL: Final = {
    "deploy_revision_refuse": (
        "BEFORE UPDATE OR DELETE ON deploy_revision FOR EACH ROW EXECUTE FUNCTION deploy_refuse()"
    ),
    "deploy_revision_no_truncate": (
        "BEFORE TRUNCATE ON deploy_revision FOR EACH STATEMENT EXECUTE FUNCTION deploy_refuse()"
    ),
}


def create(connection: BaseDatabaseWrapper) -> None:
    """Install the triggers; do nothing on a database we do not know."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name, body in _SQLITE.items():
                cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {body}")
        elif connection.vendor == "postgresql":
            cursor.execute(_POSTGRESQL_FUNCTION)
            for name, body in _POSTGRESQL.items():
                cursor.execute(f"CREATE OR REPLACE TRIGGER {name} {body}")


def drop(connection: BaseDatabaseWrapper) -> None:
    """Remove the triggers: for undoing the migration, and for tests that empty the tables."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name in _SQLITE:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        elif connection.vendor == "postgresql":
            for name in _POSTGRESQL:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON deploy_revision")
