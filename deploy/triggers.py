"""SQL that makes the database itself refuse to change a revision (migration 0002) or an adopted file (0003).

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

_SQLITE_FILES: Final = {
    "deploy_adoptedfile_no_replace": """
        BEFORE INSERT ON deploy_adoptedfile
        WHEN EXISTS (SELECT 1 FROM deploy_adoptedfile WHERE id = NEW.id
                     OR (revision_id = NEW.revision_id AND host_id = NEW.host_id))
        BEGIN SELECT RAISE(ABORT, 'deploy_adoptedfile is written once'); END""",
    "deploy_adoptedfile_no_update": """
        BEFORE UPDATE ON deploy_adoptedfile
        BEGIN SELECT RAISE(ABORT, 'deploy_adoptedfile is written once'); END""",
    "deploy_adoptedfile_no_delete": """
        BEFORE DELETE ON deploy_adoptedfile
        BEGIN SELECT RAISE(ABORT, 'deploy_adoptedfile is written once'); END""",
}
_POSTGRESQL_FILES: Final = {
    "deploy_adoptedfile_refuse": (
        "deploy_adoptedfile",
        "BEFORE UPDATE OR DELETE ON deploy_adoptedfile FOR EACH ROW EXECUTE FUNCTION deploy_refuse()",
    ),
    "deploy_adoptedfile_no_truncate": (
        "deploy_adoptedfile",
        "BEFORE TRUNCATE ON deploy_adoptedfile FOR EACH STATEMENT EXECUTE FUNCTION deploy_refuse()",
    ),
}

_REVISIONS: Final = TriggerSet(_SQLITE, _POSTGRESQL_FUNCTION, _POSTGRESQL)
create, drop = _REVISIONS.create, _REVISIONS.drop
ADOPTED_FILES: Final = TriggerSet(_SQLITE_FILES, _POSTGRESQL_FUNCTION, _POSTGRESQL_FILES)
