"""The Ed25519 key that signs the head of the chain. Whoever has its public half can check; only one process can sign.

The private key is PEM (PKCS 8), as `openssl genpkey -algorithm ed25519` writes it. Beside it, in `NAME.pub`, lies the
public half for the processes that only check.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings

from audit.errors import SigningUnavailable
from audit.verifier import parse_public_key

_SUFFIX: Final = ".pub"


def path() -> Path:
    """Where the private key lies: as set, or in the data folder, where it is made by itself."""
    return Path(settings.AUDIT_SIGNING_KEY_FILE or settings.DATA_DIR / "audit" / "signing-key.pem")


def public_path() -> Path:
    """Where the public key lies, for the processes that may not see the private one."""
    return Path(settings.AUDIT_PUBLIC_KEY_FILE) if settings.AUDIT_PUBLIC_KEY_FILE else Path(f"{path()}{_SUFFIX}")


def public_key() -> bytes:
    """The public key, 32 bytes. Raises SigningUnavailable when its file is missing or holds none."""
    try:
        return parse_public_key(public_path().read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise SigningUnavailable(
            f"The public key of the audit trail, {public_path()}, cannot be read ({error}). It is written when the "
            "head is signed for the first time; copy it here, or name it in FABRICUI_AUDIT_PUBLIC_KEY_FILE."
        ) from error


def sign(message: bytes) -> bytes:
    """Sign `message` with the private key. Raises SigningUnavailable."""
    return _private_key().sign(message)


def ensure() -> bytes:
    """Give the public key of the private one, and leave it beside it. Raises SigningUnavailable.

    In a folder of our own (demo, development) a missing pair is made.
    """
    if not settings.AUDIT_SIGNING_KEY_FILE and not path().exists():
        make(path())
    public = _private_key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    if not public_path().exists():
        _write(public_path(), f"{public.hex()}\n".encode(), 0o644)
    return public


def make(file: Path) -> None:
    """Make a key pair in `file` and `file.pub`. Raises FileExistsError rather than replace one."""
    key = Ed25519PrivateKey.generate()
    _write(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    Path(f"{file}{_SUFFIX}").unlink(missing_ok=True)
    _write(Path(f"{file}{_SUFFIX}"), f"{public.hex()}\n".encode(), 0o644)


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """As `audit.verifier.verify_ed25519`, a hundred times as fast."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private_key() -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(path().read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise SigningUnavailable(
            f"The key that signs the audit trail, {path()}, cannot be used ({error}). Put it back from its backup, "
            "readable for the housekeeping worker; FABRICUI_AUDIT_SIGNING_KEY_FILE names it."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningUnavailable(f"{path()} holds no Ed25519 key. Make one: ./run manage audit make-keys")
    return key


def _write(file: Path, data: bytes, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.link(beside, file)  # never over one that is there
    finally:
        beside.unlink()
