"""SQL that makes the database itself refuse to change a revision. Installed by migration 0002.

A migration that rebuilds deploy_revision on SQLite loses its triggers there and has to run `create` again.
"""

from typing import Final

from audit.trigger_set import TriggerSet

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
        "deploy_revision",
        "BEFORE UPDATE OR DELETE ON deploy_revision FOR EACH ROW EXECUTE FUNCTION deploy_refuse()",
    ),
    "deploy_revision_no_truncate": (
        "deploy_revision",
        "BEFORE TRUNCATE ON deploy_revision FOR EACH STATEMENT EXECUTE FUNCTION deploy_refuse()",
    ),
}

_REVISIONS: Final = TriggerSet(_SQLITE, _POSTGRESQL_FUNCTION, _POSTGRESQL)
create, drop = _REVISIONS.create, _REVISIONS.drop
