"""Which labs were started from this checkout by a demo, so that `lab down` finds them when their launcher was killed.

A note is a file named after the launcher's process; it says where the demo's folder is and whether it is to be kept.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.processes import ProcessID
from lab.site import Site

NOTES = Path(".fabricui/launched")


@contextmanager
def noted(folder: Path, *, keep: bool) -> Iterator[None]:
    """Leave a note of the demo in `folder` until the block ends; `keep` says that its files outlive its lab."""
    me = ProcessID.of(os.getpid())
    assert me is not None  # noqa: S101  we run
    NOTES.mkdir(parents=True, exist_ok=True)
    note = NOTES / f"{me.pid}.json"
    note.write_text(json.dumps({**me.to_json(), "folder": str(folder.absolute()), "keep": keep}), encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def living() -> list[tuple[int, Path]]:
    """PID and folder of each demo that was started from this checkout and still runs."""
    found = []
    for note in sorted(NOTES.glob("*.json")):
        try:
            said = json.loads(note.read_text(encoding="utf-8"))
        except FileNotFoundError:  # it has just ended
            continue
        if ProcessID.from_json(said).is_alive:
            found.append((int(said["pid"]), Path(said["folder"])))
    return found


def clear_away() -> list[Path]:
    """End the labs whose launchers are gone, and return the folders of their demos; a living launcher's stays."""
    cleared = []
    for note in sorted(NOTES.glob("*.json")):
        said = json.loads(note.read_text(encoding="utf-8"))
        if ProcessID.from_json(said).is_alive:
            continue
        folder = Path(said["folder"])
        Site.remove(folder / "lab")
        if not said["keep"] and (folder / "this-is-a-demo").exists():
            shutil.rmtree(folder)
        note.unlink()
        cleared.append(folder)
    return cleared
