"""What single test runs need before Django reads its settings; loaded as pytest's first plugin."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("FABRICUI_SECRET_KEY", "only for tests")
os.environ.setdefault("FABRICUI_DATA_DIR", str(Path(tempfile.gettempdir()) / "fabricui-tests"))
# Tests sign people in by the dozen, most of them without a login: what asks for more has tests of its own.
os.environ.setdefault("FABRICUI_MFA", "off")
os.environ.setdefault("FABRICUI_FRESH_LOGIN_MIN", "0")
(Path(os.environ["FABRICUI_DATA_DIR"]) / "staticfiles").mkdir(parents=True, exist_ok=True)  # WhiteNoise wants it
