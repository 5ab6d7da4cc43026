"""What FabricUI's account may do in PostgreSQL, as SQL for the database's owner: append to the trail, and no more.

Tables belong to the account that migrates; the one that FabricUI runs under owns none, so it switches off no trigger.
"""

import re
from typing import Final

from django.apps import apps

APPENDED: Final = ("audit_event", "audit_seal")  # rows come, and never change
MOVED: Final = ("audit_chainhead",)  # one row, which goes forward


def statements(role: str) -> list[str]:
    """The GRANTs for `role`, which is an account that exists. Raises ValueError for what is no plain name."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", role):
        raise ValueError(f"“{role}” is no plain name of an account: lower-case letters, digits and _.")
    others = sorted(
        {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - {*APPENDED, *MOVED}
    )
    append_only = ", ".join(APPENDED)
    return [
        f"GRANT USAGE ON SCHEMA public TO {role};",
        f"REVOKE ALL ON {append_only}, {', '.join(MOVED)} FROM {role};",
        f"GRANT SELECT, INSERT ON {append_only} TO {role};",
        f"GRANT SELECT, INSERT, UPDATE ON {', '.join(MOVED)} TO {role};",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(others)} TO {role};",
        f"GRANT SELECT ON django_migrations TO {role};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};",
    ]
