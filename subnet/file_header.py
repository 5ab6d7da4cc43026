"""The first line of a file of ours: for which subnet, which revision, after which, and in which layout."""

import re
from dataclasses import dataclass
from enum import IntEnum

from subnet.errors import InvalidFile, InvalidName

NO_PARENT = "0" * 64

FIRST_LINE = re.compile(
    r"# FabricUI subnet=([A-Za-z0-9._-]{1,60}) revision=(0|[1-9][0-9]{0,17}) parent=([0-9a-f]{64})( layout=2)?\Z"
)


class Layout(IntEnum):
    """In which order a file says its table; it changes nothing for OpenSM (ADR 16).

    The bytes of a revision never change, so the layout stands in the first line, except the first one.
    """

    BY_PKEY = 1  # partitions by P_Key, each under its owner; members by GUID, each run of a server's under its label
    BY_OWNER = 2  # the provider's partitions, then each tenant's; members by server, each server once


NEWEST = Layout.BY_OWNER  # what new revisions are written in


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says: subnet, revision number, the digest of the parent's bytes (64 hex digits), layout.

    Raises InvalidName for a subnet or a parent that cannot stand in that line.
    """

    subnet: str
    revision: int
    parent: str = NO_PARENT
    layout: Layout = Layout.BY_PKEY

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.layout))
        if not FIRST_LINE.match(self.line):
            raise InvalidName(
                f"Subnet “{self.subnet[:60]}”, revision {self.revision} and parent “{self.parent[:64]}” cannot head a "
                "file: a subnet is 1 to 60 letters, digits, “_”, “.” or “-”, a parent is 64 hex digits."
            )

    @classmethod
    def of(cls, data: bytes) -> "Header":
        """The header of a file of ours, of which only the first line is read; raise InvalidFile for another file."""
        match = FIRST_LINE.match(data[:400].decode("ascii", "replace").partition("\n")[0])
        if match is None:
            raise InvalidFile("expected “# FabricUI subnet=… revision=… parent=…”", line=1)
        return cls.read(match)

    @classmethod
    def read(cls, match: re.Match[str]) -> "Header":
        """The header that FIRST_LINE has matched."""
        layout = Layout.BY_PKEY if match[4] is None else Layout.BY_OWNER
        return cls(subnet=match[1], revision=int(match[2]), parent=match[3], layout=layout)

    @property
    def line(self) -> str:
        """The first line of the file, without its line end."""
        layout = "" if self.layout == Layout.BY_PKEY else f" layout={self.layout}"
        return f"# FabricUI subnet={self.subnet} revision={self.revision} parent={self.parent}{layout}"
