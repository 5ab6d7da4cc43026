"""The secret keys behind the events' codes: a file outside the database, one line a version. Missing keys stop all.

Whoever may write the database, but not read this file, can write no event that passes for ours.
"""

import contextlib
import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from audit.errors import KeyUnavailable
from audit.verifier import parse_ring

KEY_BYTES: Final = 32
_HEADING: Final = "# Keys of FabricUI's audit trail: version and key, the newest last. Old ones stay: they verify.\n"


def path() -> Path:
    """Where the keys lie: as set, or in the data folder, where they are made by themselves."""
    return Path(settings.AUDIT_KEY_FILE or settings.DATA_DIR / "audit" / "keys")


def load() -> Mapping[int, bytes]:
    """The keys by version; read again only when the file has changed. Raises KeyUnavailable."""
    file = path()
    try:
        known = file.stat()
        return _read(file, known.st_mtime_ns, known.st_size, known.st_ino)
    except OSError as error:
        raise KeyUnavailable(
            f"The keys of the audit trail, {file}, cannot be read ({error.strerror}), so nothing can be recorded and "
            "nothing is changed. Put the file back from its backup, readable for this account; FABRICUI_AUDIT_KEY_FILE "
            "names it. A new key cannot stand in for one that was used."
        ) from error
    except ValueError as error:
        raise KeyUnavailable(
            f"The keys of the audit trail, {file}, cannot be used: {error}. Put the file back from its backup."
        ) from error


def newest(*, used: int) -> tuple[int, bytes]:
    """The version and key to write with, when the newest event has a code under version `used` (0: none has one).

    In a folder of our own (demo, development) the first key is made by itself, but never in place of a used one.
    Raises KeyUnavailable.
    """
    if used == 0 and not settings.AUDIT_KEY_FILE and not path().exists():
        write({1: secrets.token_bytes(KEY_BYTES)}, is_first=True)
    ring = load()
    version = max(ring)
    if version < used:
        raise KeyUnavailable(
            f"The newest key in {path()} is version {version}, and the trail has used version {used}. "
            "Put the newest file back from its backup."
        )
    return version, ring[version]


def write(ring: Mapping[int, bytes], *, is_first: bool = False) -> None:
    """Write the keys, for this account's eyes only. With `is_first` a file that is there already stays as it is."""
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = _HEADING + "".join(f"{version} {key.hex()}\n" for version, key in sorted(ring.items()))
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    # Keep the owner and the mode of what is there: other accounts of FabricUI may read it as members of a group.
    mode = 0o600 if is_first or not file.exists() else file.stat().st_mode & 0o640
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as out:
            os.fchmod(out.fileno(), mode)
            if not is_first and file.exists() and os.geteuid() == 0:
                os.fchown(out.fileno(), file.stat().st_uid, file.stat().st_gid)
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        if is_first:
            with contextlib.suppress(FileExistsError):
                os.link(beside, file)  # of two processes that begin at once, one makes the key and both use it
        else:
            beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


@lru_cache(maxsize=4)
def _read(file: Path, mtime_ns: int, size: int, inode: int) -> Mapping[int, bytes]:
    return parse_ring(file.read_text(encoding="ascii"))
