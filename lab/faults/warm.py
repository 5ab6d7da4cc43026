"""Imported once by the fork server: what every worker needs is loaded there, so that each begins at once."""

import django

django.setup()

from django.db import connection  # noqa: E402

import deploy.tasks  # noqa: E402, F401
import lab.faults.crew  # noqa: E402
import lab.faults.stops  # noqa: E402, F401

connection.vendor  # noqa: B018  loads the database's driver, and connects nowhere
