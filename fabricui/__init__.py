"""The wiring: settings, addresses, the Celery app, the command line. Holds no rule."""

from fabricui.celery import app as celery_app

__all__ = ["celery_app"]  # every process that queues a task needs the app that knows the broker's address
