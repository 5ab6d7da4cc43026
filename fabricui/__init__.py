"""The wiring: settings, addresses, the Celery app, the command line. Holds no rule.

Nothing is imported here: `fabricui.client` runs where there is no Django. Every process of the server imports the
Celery app when Django starts (`fabricui/apps.py`).
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")
