"""What single test runs need before Django reads its settings; loaded as pytest's first plugin."""

import os
import tempfile

os.environ.setdefault("FABRICUI_SECRET_KEY", "only for tests")
os.environ.setdefault("FABRICUI_DATA_DIR", tempfile.gettempdir())
