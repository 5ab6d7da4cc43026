"""P_Key tables in and out of the database: compressed, stored once by content, parsed once a process."""

import hashlib
import zlib
from functools import lru_cache

from deploy.models import Observation, StoredTables
from subnet.observed import ObservedFabric, parse_reading

LEVEL = 1  # 1.6 MB of 4,000 ports become 0.2 MB in 10 ms; a higher level saves little and delays the proof


def store(data: bytes, *, ports: int) -> StoredTables:
    """Keep the reader's JSON lines and return their row; the same bytes are kept once."""
    digest = hashlib.sha256(data).hexdigest()
    row, _ = StoredTables.objects.get_or_create(
        digest=digest, defaults={"data": zlib.compress(data, LEVEL), "ports": ports}
    )
    return row


def content(stored: StoredTables) -> bytes:
    """The JSON lines as the reader sent them."""
    return zlib.decompress(stored.data)


def fabric(observation: Observation) -> ObservedFabric:
    """What an observation read from the fabric. Parsed once a process and content.

    Raises ValueError when the observation has no tables.
    """
    if observation.tables is None:
        raise ValueError(f"Observation {observation.public_id} holds no tables: it is {observation.state}.")
    return _parsed(observation.tables.digest, bytes(observation.tables.data))


@lru_cache(maxsize=4)
def _parsed(digest: str, compressed: bytes) -> ObservedFabric:
    return parse_reading(zlib.decompress(compressed))
