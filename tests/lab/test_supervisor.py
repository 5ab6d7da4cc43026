"""The supervisor's loop, without daemons: what is asked of it while it waits for a child to end."""

import subprocess
import sys

STOPPED_MEANWHILE = """
import os, signal, sys
from pathlib import Path
from lab.layout import Layout, State
from lab.supervisor import Supervisor
place = Path(sys.argv[1])
layout = Layout(place)
layout.write_state(State(lab="test", directory=str(place), made_directory=False, sizes={}))
supervisor = Supervisor(layout)
supervisor.children.start("child", ["sleep", "600"], cwd=place, output=place / "log", env=dict(os.environ))
os.kill(os.getpid(), signal.SIGTERM)
supervisor.children.stop("child", pump=supervisor.quietly, kill=True)
print("the child is gone:", supervisor.children.identity("child"))
"""


def test_a_child_is_waited_for_even_once_the_lab_is_to_end(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_MEANWHILE, tmp_path], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout == "the child is gone: None\n", done.stderr
