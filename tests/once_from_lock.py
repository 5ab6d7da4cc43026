"""`demo --once` from an environment that holds the users' lock and nothing else.

The developers' lock can hide a package that the product needs and the users' lock lacks.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements" / "lock.txt"


def main() -> int:
    """Make the environment, check it, run the demo in it; return the demo's exit status."""
    with tempfile.TemporaryDirectory(prefix="fabricui-lock-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
        subprocess.run([*install, "-r", str(LOCK)], check=True)
        subprocess.run([python, "-m", "pip", "check"], check=True)
        return subprocess.run([python, "-m", "lab", "demo", "--once", "--json"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
