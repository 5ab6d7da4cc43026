"""What OpenSM 3.3.23 makes of any bytes in its partition file, port by port, and what a person should know of it.

The model follows the real parser byte for byte, defects included; each rule cites the OpenSM function it comes from.
"""

from subnet.opensm_reading.fabric import EndPort, Fabric
from subnet.opensm_reading.reading import check, read
from subnet.opensm_reading.values import (
    Check,
    Finding,
    Flags,
    MgidLine,
    Reading,
    ReadPartition,
    Rejection,
    Spec,
    Statement,
)

__all__ = [
    "Check",
    "EndPort",
    "Fabric",
    "Finding",
    "Flags",
    "MgidLine",
    "ReadPartition",
    "Reading",
    "Rejection",
    "Spec",
    "Statement",
    "check",
    "read",
]
