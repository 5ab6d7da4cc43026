"""Random public ids: what people and tenants see instead of row numbers."""

import secrets

_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no characters that people mistake for one another


def new_public_id() -> str:
    """Twelve random characters (59 bits), safe in a URL and to read aloud."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(12))
