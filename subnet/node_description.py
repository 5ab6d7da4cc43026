"""What a NodeDescription may hint at. It is text that anybody with root on the node can change: a hint, never a key."""

import re
from dataclasses import dataclass
from enum import StrEnum

_PLACEHOLDERS = {"localhost", "localhost.localdomain", "(none)"}
_FABRIC_SWITCH = re.compile(r"MF0;([A-Za-z0-9._-]+):[^:]*\Z")  # MF0;NAME:MODEL/UNIT, as managed switches write it
_FACTORY = re.compile(r"MT\d+ .*Technologies\Z")
_SWITCH_DEFAULT = re.compile(r"(Quantum|Switch-IB|SwitchX|Infiniscale)\S*.* Technologies\Z|SW ", re.IGNORECASE)
# The kernel's default is “hostname device”; older tools wrote “hostname HCA-1”.
_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,62}) (\S+)\Z")
_DEVICE = re.compile(r"(HCA-\d+|mlx\d_\w+|ib\w+|roce\w+|rocep\w+)\Z")
_LONGEST = 63  # 64 bytes on the wire; a description this long may have been cut


class NodeClass(StrEnum):
    """What the text seems to be about."""

    HOST = "host"
    SWITCH = "switch"
    AGGREGATION_NODE = "aggregation node"  # a switch's own channel adapter for in-network reductions: no server
    FACTORY_DEFAULT = "factory default"
    PLACEHOLDER = "placeholder"
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hint:
    """`name` is a host's or a switch's name if the text holds one, in lower case for a host."""

    node_class: NodeClass
    name: str | None


def hint(description: str) -> Hint:
    """Say what `description` hints at; blanks around it mean nothing."""
    text = description.strip()
    if not text:
        return Hint(NodeClass.EMPTY, None)
    if text.lower().endswith("aggregation node"):
        return Hint(NodeClass.AGGREGATION_NODE, None)
    if named := _FABRIC_SWITCH.match(text):
        return Hint(NodeClass.SWITCH, named[1])
    if _SWITCH_DEFAULT.match(text):
        return Hint(NodeClass.SWITCH, None)
    if _FACTORY.match(text):
        return Hint(NodeClass.FACTORY_DEFAULT, None)
    found = _HOST.match(text)
    if found is None or not (_DEVICE.match(found[2]) or len(text) >= _LONGEST):
        return Hint(NodeClass.UNKNOWN, None)
    if found[1].lower() in _PLACEHOLDERS:
        return Hint(NodeClass.PLACEHOLDER, None)
    return Hint(NodeClass.HOST, found[1].lower())
