"""Flattened /sys/class/infiniband listings (tests/data/sysfs) as real trees, unreadable files included."""

import re
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "sysfs"


def case(name: str) -> Path:
    """The one case file whose name begins so."""
    (found,) = DATA.glob(f"{name}-*.sysfs.txt")
    return found


def materialise(flattened: Path, top: Path) -> Path:
    """Make `top` the tree that `flattened` lists, and give it; a listing without a line makes none.

    A file whose read fails becomes a directory: root may read everything, but nobody can read a directory (EISDIR).
    """
    for line in flattened.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        path, content = line.split("\t")
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("!"):
            target.mkdir()
        else:
            target.write_bytes(unescape(content))
    return top


def unescape(text: str) -> bytes:
    """`\\n` and `\\xNN` as the bytes they stand for."""
    return re.sub(
        rb"\\(n|x([0-9a-fA-F]{2}))",
        lambda match: b"\n" if match[1] == b"n" else bytes([int(match[2], 16)]),
        text.encode("utf-8"),
    )
