"""An endpoint's secret, encrypted in the database, and the signature that it makes."""

import base64
import hmac
import secrets
from typing import Final

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX: Final = "fui_hook_"


def new_secret() -> str:
    """A secret of 256 bits that says what it is for."""
    return PREFIX + secrets.token_urlsafe(32)


def sealed(secret: str) -> str:
    """Encrypt a secret for the database."""
    return _cipher().encrypt(secret.encode()).decode()


def opened(text: str) -> str:
    """Read a secret from the database."""
    return _cipher().decrypt(text.encode()).decode()


def signature(*, secret: str, timestamp: int, body: bytes) -> str:
    """`v1=` and the HMAC-SHA256, in hex, over the time stamp, a full stop and the body."""
    return "v1=" + hmac.digest(secret.encode(), b"%d." % timestamp + body, "sha256").hex()


def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(_key(text)) for text in settings.MFA_KEYS or [settings.SECRET_KEY]])


def _key(text: str) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"fabricui webhook").derive(text.encode())
    return base64.urlsafe_b64encode(derived)
