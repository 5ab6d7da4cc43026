"""The OpenSM versions that were tried in the lab, from the data file beside this one.

A version gets in by running `tests/lab/test_opensm_versions.py` with it: the test tries the error path and the index
behaviour on the real daemon and compares them with the file.
"""

import json
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from subnet.qualification import Version

FILE: Final = Path(__file__).with_name("opensm_versions.json")


def raw() -> dict[str, Any]:
    """The file as it stands, with what exactly was tried."""
    values: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return values


@cache
def tried() -> MappingProxyType[str, Version]:
    """Version → what was found with it. Read once a process."""
    return MappingProxyType(
        {
            version: Version(
                version=version,
                package=entry["package"],
                error_path=entry["error_path"],
                index_behaviour=entry["index_behaviour"],
                defaults=MappingProxyType(entry["defaults"]),
            )
            for version, entry in raw().items()
        }
    )
