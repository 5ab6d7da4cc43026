"""The two questions of this package: what does a file mean by itself, and what on a given fabric."""

from subnet.opensm_reading.fabric import Fabric
from subnet.opensm_reading.values import Check, Reading


def read(data: bytes, fabric: Fabric, *, allow_both_pkeys: bool = False, qos: bool = False) -> Reading:
    """What a freshly started OpenSM 3.3.23 makes of `data` as its partition file on `fabric`."""
    raise NotImplementedError


def check(data: bytes) -> Check:
    """What can be said of `data` without knowing the fabric; never raises."""
    raise NotImplementedError
