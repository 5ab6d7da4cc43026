"""SQL that makes the database itself refuse to change the trail. Installed by migrations 0002 and 0003.

The owner of the database can switch triggers off; the chain shows it (`audit.chain`). A migration that rebuilds
audit_event on SQLite loses its triggers there and has to run `create` again.
"""

from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

from audit.trigger_set import TriggerSet

_SQLITE: Final = {
    # REPLACE deletes the old row without asking the delete trigger, so an insert over an existing one is refused too.
    "audit_event_no_replace": """
        BEFORE INSERT ON audit_event
        WHEN EXISTS (SELECT 1 FROM audit_event WHERE number = NEW.number OR id = NEW.id OR hash = NEW.hash)
        BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END""",
    "audit_event_no_update": """
        BEFORE UPDATE ON audit_event
        BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END""",
    "audit_event_no_delete": """
        BEFORE DELETE ON audit_event
        BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END""",
    "audit_chainhead_one_step": """
        BEFORE UPDATE ON audit_chainhead
        WHEN NEW.id <> OLD.id OR NEW.number <> OLD.number + 1
        BEGIN SELECT RAISE(ABORT, 'audit_chainhead moves by one event at a time'); END""",
    "audit_chainhead_no_delete": """
        BEFORE DELETE ON audit_chainhead
        BEGIN SELECT RAISE(ABORT, 'audit_chainhead is never removed'); END""",
}

_POSTGRESQL_FUNCTIONS: Final = """
CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE OR REPLACE FUNCTION audit_one_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <> OLD.id OR NEW.number <> OLD.number + 1 THEN
        RAISE EXCEPTION 'audit_chainhead moves by one event at a time'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
"""
_POSTGRESQL: Final = {
    "audit_event_refuse": (
        "audit_event",
        "BEFORE UPDATE OR DELETE ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    ),
    "audit_event_no_truncate": (
        "audit_event",
        "BEFORE TRUNCATE ON audit_event FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
    ),
    "audit_chainhead_one_step": (
        "audit_chainhead",
        "BEFORE UPDATE ON audit_chainhead FOR EACH ROW EXECUTE FUNCTION audit_one_step()",
    ),
    "audit_chainhead_refuse": (
        "audit_chainhead",
        "BEFORE DELETE ON audit_chainhead FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    ),
    "audit_chainhead_no_truncate": (
        "audit_chainhead",
        "BEFORE TRUNCATE ON audit_chainhead FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
    ),
}

_TRAIL: Final = TriggerSet(_SQLITE, _POSTGRESQL_FUNCTIONS, _POSTGRESQL)

# Code of before format 2 may still run when the migration has: it must not go on without codes once there are some.
_FORMAT_SQLITE: Final = {
    "audit_event_no_older_format": """
        BEFORE INSERT ON audit_event
        WHEN NEW.format < 2 AND EXISTS (SELECT 1 FROM audit_event WHERE number = NEW.number - 1 AND format >= 2)
        BEGIN SELECT RAISE(ABORT, 'audit_event: format 1 is over, restart this process'); END""",
    "audit_seal_no_replace": """
        BEFORE INSERT ON audit_seal
        WHEN EXISTS (SELECT 1 FROM audit_seal WHERE id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'audit_seal is append-only'); END""",
    "audit_seal_no_update": """
        BEFORE UPDATE ON audit_seal
        BEGIN SELECT RAISE(ABORT, 'audit_seal is append-only'); END""",
    "audit_seal_no_delete": """
        BEFORE DELETE ON audit_seal
        BEGIN SELECT RAISE(ABORT, 'audit_seal is append-only'); END""",
}
_FORMAT_FUNCTIONS: Final = """
CREATE OR REPLACE FUNCTION audit_no_older_format() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.format < 2 AND EXISTS (SELECT 1 FROM audit_event WHERE number = NEW.number - 1 AND format >= 2) THEN
        RAISE EXCEPTION 'audit_event: format 1 is over, restart this process'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
"""
_FORMAT_POSTGRESQL: Final = {
    "audit_event_no_older_format": (
        "audit_event",
        "BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_no_older_format()",
    ),
    "audit_seal_refuse": (
        "audit_seal",
        "BEFORE UPDATE OR DELETE ON audit_seal FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    ),
    "audit_seal_no_truncate": (
        "audit_seal",
        "BEFORE TRUNCATE ON audit_seal FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
    ),
}
_FORMAT_2: Final = TriggerSet(_FORMAT_SQLITE, _FORMAT_FUNCTIONS, _FORMAT_POSTGRESQL)

create = _TRAIL.create  # migration 0002
create_format_2, drop_format_2 = _FORMAT_2.create, _FORMAT_2.drop  # migration 0003


def drop(connection: BaseDatabaseWrapper) -> None:
    """Remove all triggers of the room, as only the owner of the database can."""
    _TRAIL.drop(connection)
    if "audit_seal" in connection.introspection.table_names():
        _FORMAT_2.drop(connection)
