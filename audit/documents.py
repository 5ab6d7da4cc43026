"""Documents that leave FabricUI with a signature: anyone can check them offline with the public key, as the trail.

Only the housekeeping worker has the private key, so only it signs. What was signed is told in the trail by the digest
of the file, so that the trail vouches for it too, should the key ever be lost.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime

from audit import signing
from audit.canonical import canonical, plain, utc_text
from audit.verifier import document_statement, fingerprint


def sign(*, kind: str, content: Mapping[str, object], now: datetime) -> bytes:
    """Write and sign a document: the bytes of its file. The same content at the same moment gives the same bytes.

    Raises SigningUnavailable, and NotRecordable for what is no plain value (`audit.canonical.plain`).
    """
    public = signing.ensure()
    document = {
        "fabricui_document": 1,
        "kind": kind,
        "key": fingerprint(public),
        "signed_at": utc_text(now),
        "content": plain(content, where=kind),
    }
    signature = signing.sign(document_statement(document)).hex()
    return canonical({**document, "signature": signature}) + b"\n"


def digest(data: bytes) -> str:
    """The SHA-256 of the file, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()
