"""OpenSM's partition objects while it parses: which P_Key a header gets, and who was named last in each.

`osm_prtn_make_new`, `generate_pkey`, `osm_prtn_find_by_name`, `osm_prtn_new` of osm_prtn.c. Nothing here knows the
fabric: a keyword is remembered with its place in the file and resolved for each port later (placement.py).
"""

from array import array

from subnet.opensm_reading.headers import Header
from subnet.opensm_reading.values import Flags

DEFAULT_KEY = 0x7FFF
LAST_AUTO_KEY = 0x7FFE
NAME_BYTES = 31


def swapped(key: int) -> int:
    """A P_Key as it sorts in OpenSM's maps, which compare network-order bytes as a little-endian number."""
    return (key & 0xFF) << 8 | key >> 8


class PartitionState:
    """One P_Key while the file is read.

    `named` maps a port number to the spec that named it last, `scopes` a keyword's kind to the spec that used it last;
    `first_named` and `first_scopes` say the same of statements with indx0. `since_all` holds the memberships of
    explicit members since the last ALL, as bits.
    """

    __slots__ = (
        "auto_numbered", "flags", "indx0_named", "indx0_scopes", "key", "line", "name", "named", "scopes", "since_all",
        "statements",
    )  # fmt: skip

    def __init__(self, key: int, name: bytes, line: int, auto_numbered: bool) -> None:
        self.key = key
        # osm_prtn_new: 31 bytes are kept; without a name it is the P_Key's four hex digits.
        self.name = name[:NAME_BYTES] or b"%04x" % key
        self.line = line
        self.auto_numbered = auto_numbered
        self.statements = array("I")
        self.named: dict[int, int] = {}
        self.scopes: dict[int, int] = {}
        self.indx0_named: dict[int, int] = {}
        self.indx0_scopes: dict[int, int] = {}
        self.since_all = 0
        self.flags: Flags | None = None


class Partitions:
    """Every P_Key known so far; Default exists before the file is opened (`prtn_make_default`)."""

    def __init__(self) -> None:
        self.by_key: dict[int, PartitionState] = {}
        self._lowest_of_name: dict[bytes, int] = {}
        self._counter = 0
        self._add(PartitionState(DEFAULT_KEY, b"Default", 0, auto_numbered=False))

    def _add(self, state: PartitionState) -> None:
        self.by_key[state.key] = state
        known = self._lowest_of_name.get(state.name)
        if known is None or swapped(state.key) < swapped(known):
            self._lowest_of_name[state.name] = state.key

    def of_header(self, header: Header, *, line: int) -> tuple[PartitionState, bool] | None:
        """The partition a header opens and whether it is new; None when no P_Key is left to number it.

        A P_Key of zero counts as none. Without one the first partition of that name in OpenSM's map is taken; a name
        of 32 bytes or more equals no kept one.
        """
        key = (header.number or 0) & 0x7FFF
        name = header.name or b""
        auto = not key
        if auto:
            if name and len(name) <= NAME_BYTES and name in self._lowest_of_name:
                return self.by_key[self._lowest_of_name[name]], False
            key = self._generate()
            if not key:
                return None
        known = self.by_key.get(key)
        if known is not None:
            return known, False
        state = PartitionState(key, name, line, auto_numbered=auto)
        self._add(state)
        return state, True

    def _generate(self) -> int:
        """The next P_Key nobody has yet; it only ever counts up (`generate_pkey`), and 0 says that none is left."""
        while self._counter < LAST_AUTO_KEY:
            self._counter += 1
            if self._counter not in self.by_key:
                return self._counter
        return 0

    def in_map_order(self) -> list[PartitionState]:
        """The partitions as OpenSM walks them when it fills the tables."""
        return [self.by_key[key] for key in sorted(self.by_key, key=swapped)]
