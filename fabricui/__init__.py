"""The wiring: settings, addresses, the Celery app, the command line. Holds no rule."""
