"""FabricUI's own key for the manager hosts: a file outside the database that only the workers' account may read."""

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deploy.errors import KeyUnusable


def complaint(name: str) -> str:
    """What forbids using the key in file `name`, in a sentence; "" when nothing does.

    The file is this account's own, nobody else reads or writes it, and nobody else can put another one in its place.
    """
    if not name or not Path(name).is_file():
        return (
            f"the key for the manager hosts is not there (FABRICUI_MANAGER_KEY_FILE={name}). Name the file of the "
            "worker's own Ed25519 key, readable by the worker's account only, and restart the worker."
        )
    file = Path(name)
    status = file.stat()
    if status.st_mode & 0o077:
        return (
            f"the key for the manager hosts, {name}, can be read or written by other accounts "
            f"(mode {stat.S_IMODE(status.st_mode):04o}), so it is not used. chmod 600 {name}; if others may have read "
            "it, change it (manage.py rotate_manager_key)."
        )
    if status.st_uid != os.geteuid():
        return (
            f"the key for the manager hosts, {name}, belongs to another account (user id {status.st_uid}), so it is "
            "not used. Let it belong to the account of the workers rollout and observe."
        )
    folder = file.absolute().parent.stat()
    if folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX:
        return (
            f"other accounts can put another key in the place of {name}, because they may write in its folder, so it "
            f"is not used. chmod go-w {file.absolute().parent}."
        )
    return ""


def make(file: Path) -> None:
    """Write a new Ed25519 private key to `file`, for this account alone. Raises KeyUnusable when it is there."""
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise KeyUnusable(f"{file} cannot be made: {error.strerror}. Name a file that is not there yet.") from error
    with os.fdopen(handle, "wb") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def public_line(file: Path) -> str:
    """The public half as authorized_keys names it, without a comment. Raises KeyUnusable."""
    try:
        key = serialization.load_ssh_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{file} cannot be read as a private key without a passphrase: {error}.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyUnusable(f"{file} holds a key of another kind. FabricUI uses Ed25519 only.")
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode("ascii")


def put_in_place(new: Path, current: Path) -> Path:
    """Make `new` the file that workers read, by rename; return where the old one is kept.

    At every moment one of the two stands under `current`. Raises KeyUnusable; then nothing was changed.
    """
    kept = current.with_name(f"{current.name}.previous")
    try:
        kept.unlink(missing_ok=True)
        os.link(current, kept)
        new.replace(current)
    except OSError as error:
        raise KeyUnusable(
            f"{new} could not take the place of {current}: {error.strerror}. The old key is still in use. Both must "
            "lie on one file system, in folders that this account may write."
        ) from error
    return kept
