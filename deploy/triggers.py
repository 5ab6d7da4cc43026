"""SQL that makes the database itself refuse to change a revision (migration 0002) or an adopted file (0003).

A migration that rebuilds one of these tables on SQLite loses its triggers there and has to run `create` again.
"""

from typing import Final

from audit.trigger_set import TriggerSet

_POSTGRESQL_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION deploy_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is written once', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; END $$;
"""


def _written_once(table: str, *, same: str) -> TriggerSet:
    """The triggers that refuse to change, remove or replace a row of `table`.

    `same` is the SQL condition under which a new row would replace an old one: each of its unique constraints.
    """
    twin = f"SELECT 1 FROM {table} WHERE {same}"  # noqa: S608  both are words of this file
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is written once'); END"
    return TriggerSet(
        sqlite={
            # REPLACE deletes the old row without asking the delete trigger, so an insert over one is refused too.
            f"{table}_no_replace": f"BEFORE INSERT ON {table} WHEN EXISTS ({twin}) {refuse}",
            f"{table}_no_update": f"BEFORE UPDATE ON {table} {refuse}",
            f"{table}_no_delete": f"BEFORE DELETE ON {table} {refuse}",
        },
        functions=_POSTGRESQL_FUNCTION,
        postgresql={
            f"{table}_refuse": (
                table, f"BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION deploy_refuse()"
            ),
            f"{table}_no_truncate": (
                table, f"BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION deploy_refuse()"
            ),
        },
    )  # fmt: skip


_REVISIONS: Final = _written_once(
    "deploy_revision",
    same="id = NEW.id OR public_id = NEW.public_id OR (subnet_id = NEW.subnet_id AND number = NEW.number)",
)
create, drop = _REVISIONS.create, _REVISIONS.drop
ADOPTED_FILES: Final = _written_once(
    "deploy_adoptedfile", same="id = NEW.id OR (revision_id = NEW.revision_id AND host_id = NEW.host_id)"
)
