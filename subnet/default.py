"""The Default partition, 0x7fff: the one that everybody is in, with the SM ports, and that nobody can leave.

Closed (every HCA port limited) it only carries what each port needs from the subnet manager; open (`ALL=full`) every
port can reach every other (ground truth: OpenSM, 2.10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from subnet.errors import InvalidTable
from subnet.flags import Flags, mgid_line
from subnet.member import (
    Keyword,
    KeywordMember,
    Member,
    NodeType,
    in_order,
    keywords_in_order,
    membership_by_keyword,
)
from subnet.pkey import Membership

CLOSED = (
    KeywordMember(Keyword.ALL, Membership.LIMITED),
    KeywordMember(Keyword.ALL_SWITCHES, Membership.FULL),
    KeywordMember(Keyword.ALL_ROUTERS, Membership.FULL),
    # After ALL: or the SM's own port would be demoted and no limited host could reach the SA.
    KeywordMember(Keyword.SELF, Membership.FULL),
)
OPEN = (KeywordMember(Keyword.ALL, Membership.FULL),)
IPOIB = Flags(ipoib=True)


@dataclass(frozen=True, slots=True)
class DefaultPartition:
    """What the file says of Default beside the SM ports, which every table makes full members after all keywords.

    `members` are the exceptions: monitoring and storage as full members of a closed Default, canary servers as
    limited members of an open one. Raises InvalidTable for a port or a keyword named twice, InvalidFlag.
    """

    keywords: tuple[KeywordMember, ...] = CLOSED
    members: tuple[Member, ...] = ()
    flags: Flags = IPOIB
    mgids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keywords", keywords_in_order(self.keywords, "Default"))
        object.__setattr__(self, "members", in_order(self.members, "Default"))
        object.__setattr__(self, "mgids", mgid_lines(self.mgids, "Default"))

    def membership_of(self, node_type: NodeType, *, is_self: bool) -> Membership:
        """What an end port is that no GUID names: OpenSM begins with everyone limited and its own port full."""
        found = membership_by_keyword(self.keywords, node_type, is_self=is_self)
        return found or (Membership.FULL if is_self else Membership.LIMITED)

    @property
    def is_open(self) -> bool:
        """Whether HCA ports are full members here unless excepted, so that any of them can reach any other."""
        return self.membership_of("CA", is_self=False) == Membership.FULL

    @property
    def is_standard(self) -> bool:
        """Whether this is the closed Default that FabricUI writes by itself."""
        return self == STANDARD

    def to_json(self) -> dict[str, Any]:
        """As JSON values; GUIDs are text."""
        return {
            "keywords": keywords_to_json(self.keywords),
            "members": [[member.guid, member.membership.value] for member in self.members],
            "flags": self.flags.to_json(),
            "mgids": list(self.mgids),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DefaultPartition":
        """The value that `to_json` wrote; raise SubnetError when it holds what no file may."""
        return cls(
            keywords=keywords_from_json(value["keywords"]),
            members=tuple(Member(guid, membership) for guid, membership in value["members"]),
            flags=Flags.from_json(value["flags"]),
            mgids=tuple(value["mgids"]),
        )


def mgid_lines(lines: tuple[str, ...], of: str) -> tuple[str, ...]:
    """`lines`, each checked, in their order; raise InvalidFlag, or InvalidTable when one stands twice."""
    checked = tuple(mgid_line(line) for line in lines)
    if len(set(checked)) != len(checked):
        raise InvalidTable(f"A multicast group stands twice in partition {of}.")
    return checked


def keywords_to_json(keywords: tuple[KeywordMember, ...]) -> list[list[str]]:
    """Pairs of keyword and membership."""
    return [[member.keyword.value, member.membership.value] for member in keywords]


def keywords_from_json(value: list[list[str]]) -> tuple[KeywordMember, ...]:
    """The keyword members that `keywords_to_json` wrote."""
    return tuple(KeywordMember(Keyword(keyword), Membership(membership)) for keyword, membership in value)


STANDARD = DefaultPartition()
