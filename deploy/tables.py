"""P_Key tables in and out of the database: compressed, stored once by content, parsed once a process."""

import hashlib
import threading
import zlib

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
    stored = observation.tables
    if stored is None:
        raise ValueError(f"Observation {observation.public_id} holds no tables: it is {observation.state}.")
    known = _parsed.get(stored.digest)
    if known is None:
        known = parse_reading(content(stored))
        remember(stored.digest, known)
    return known


def remember(digest: str, fabric: ObservedFabric) -> None:
    """Keep what was parsed already, so that the next one in this process who asks need not wait for it."""
    with _lock:
        _parsed.pop(digest, None)
        _parsed[digest] = fabric
        while len(_parsed) > MOST_PARSED:
            del _parsed[next(iter(_parsed))]


MOST_PARSED = 4  # 4,000 ports take about 8 MB
_parsed: dict[str, ObservedFabric] = {}  # by digest, the oldest first
_lock = threading.Lock()
