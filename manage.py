#!/usr/bin/env python3
"""Django's command line for this project."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError, connection

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")
    try:
        execute_from_command_line(sys.argv)
    except DatabaseError:
        if connection.introspection.table_names():
            raise
        database = connection.settings_dict["NAME"]
        sys.exit(
            f"The database {database} is empty. Name the one you mean in DATABASE_URL or FABRICUI_DATA_DIR "
            "(the demo's is FABRICUI_DATA_DIR=.fabricui/demo), or make its tables: ./run manage migrate"
        )
