"""Who is in a partition: one port by its GUID, or every port that a keyword of OpenSM stands for.

For one port the last line of a file wins (ground truth: OpenSM, 2.7). Keywords are written in one fixed order before
all GUIDs, so a port named by its GUID always has the membership written beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Literal

from subnet.errors import InvalidTable
from subnet.guid import GUID
from subnet.pkey import Membership

NodeType = Literal["CA", "SW", "RT"]


class Keyword(StrEnum):
    """A word that stands for many ports (ground truth: OpenSM, 2.6), in the order they are written in."""

    ALL = "ALL"  # every end port: HCA ports, switch port 0, router ports
    ALL_CAS = "ALL_CAS"
    ALL_SWITCHES = "ALL_SWITCHES"
    ALL_ROUTERS = "ALL_ROUTERS"
    SELF = "SELF"  # the port of the SM that reads the file: another one after a takeover

    def matches(self, node_type: NodeType, *, is_self: bool) -> bool:
        """Whether the keyword stands for an end port of this node type; `is_self`: the reading SM is bound to it."""
        if self is Keyword.SELF:
            return is_self
        return self is Keyword.ALL or _NODE_TYPE[self] == node_type


_NODE_TYPE = {Keyword.ALL_CAS: "CA", Keyword.ALL_SWITCHES: "SW", Keyword.ALL_ROUTERS: "RT"}
_PLACE = {keyword: place for place, keyword in enumerate(Keyword)}


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One port's place in one partition; text from a row or a form is checked and made canonical."""

    guid: GUID
    membership: Membership

    def __post_init__(self) -> None:
        if type(self.guid) is not GUID:
            object.__setattr__(self, "guid", GUID(self.guid))
        if type(self.membership) is not Membership:
            object.__setattr__(self, "membership", Membership(self.membership))


@dataclass(frozen=True, slots=True)
class KeywordMember:
    """All ports of one keyword in one partition; text is made canonical, an unknown word raises ValueError."""

    keyword: Keyword
    membership: Membership

    def __post_init__(self) -> None:
        object.__setattr__(self, "keyword", Keyword(self.keyword))
        object.__setattr__(self, "membership", Membership(self.membership))

    def __str__(self) -> str:
        return f"{self.keyword}={self.membership}"


def in_order(members: Iterable[Member], of: str) -> tuple[Member, ...]:
    """`members` in order of GUID; raise InvalidTable when a port is named twice in partition `of`."""
    ordered = tuple(sorted(members, key=lambda member: member.guid))
    for before, after in pairwise(ordered):
        if before.guid == after.guid:
            raise InvalidTable(f"Port {after.guid} is named twice in partition {of}.")
    return ordered


def keywords_in_order(keywords: Iterable[KeywordMember], of: str) -> tuple[KeywordMember, ...]:
    """`keywords` as they are written; raise InvalidTable when one stands twice in partition `of`."""
    ordered = tuple(sorted(keywords, key=lambda member: _PLACE[member.keyword]))
    for before, after in pairwise(ordered):
        if before.keyword == after.keyword:
            raise InvalidTable(f"{after.keyword} stands twice in partition {of}.")
    return ordered


def membership_by_keyword(
    keywords: Iterable[KeywordMember], node_type: NodeType, *, is_self: bool
) -> Membership | None:
    """What the last matching keyword makes of an end port that no GUID names; None: not a member."""
    found = None
    for member in keywords:
        if member.keyword.matches(node_type, is_self=is_self):
            found = member.membership
    return found
