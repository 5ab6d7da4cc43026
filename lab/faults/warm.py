"""Imported once by the fork server: Django is set up there, so that each worker begins within milliseconds."""

import django

django.setup()

import deploy.tasks  # noqa: E402, F401
