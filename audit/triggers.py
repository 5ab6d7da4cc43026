"""SQL that makes the database itself refuse to change the trail. Installed by migration 0002.

The owner of the database can switch triggers off; the chain shows it (`audit.chain`). A migration that rebuilds
audit_event on SQLite loses its triggers there and has to run `create` again.
"""

from typing import Final

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
create, drop = _TRAIL.create, _TRAIL.drop
