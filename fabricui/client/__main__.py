"""`python -m fabricui.client`, the console script `fabricui`, and the one file that zipapp makes."""

import sys

from fabricui.client.command_line import main


def run() -> None:
    """Do one command, and end with its exit code."""
    sys.exit(main())


if __name__ == "__main__":
    run()
