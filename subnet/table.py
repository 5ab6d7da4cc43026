"""PartitionTable: the whole desired state of one subnet as one sorted, frozen value.

A table holds what people decide (tenants' and the provider's partitions and their members) and the manager hosts'
SM port GUIDs, which the Default partition must name. It also carries the labels that the file shows to a person.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from subnet.default import (
    IPOIB,
    STANDARD,
    DefaultPartition,
    keywords_from_json,
    keywords_to_json,
    mgid_lines,
)
from subnet.errors import InvalidName, InvalidTable
from subnet.flags import Flags
from subnet.guid import GUID
from subnet.member import Keyword, KeywordMember, Member, NodeType, in_order, keywords_in_order, membership_by_keyword
from subnet.pkey import DEFAULT, Membership, PKey

__all__ = [
    "DefaultPartition",
    "Flags",
    "Keyword",
    "KeywordMember",
    "Member",
    "NodeType",
    "Partition",
    "PartitionTable",
    "partition_name",
    "safe_label",
]

NO_FLAGS = Flags()

# OpenSM keeps 31 bytes of a name and takes a digit-first name for a P_Key (ground truth: OpenSM, 2.2 and 2.3).
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,30}\Z")
_RESERVED_NAMES = {"default"}
_UNSAFE_IN_LABEL = re.compile(r"[^A-Za-z0-9._-]+")


def partition_name(text: str) -> str:
    """`text` if OpenSM reads it as one name and nothing else; raise InvalidName otherwise."""
    if not _NAME.match(text):
        raise InvalidName(
            f"“{text[:60]}” cannot be a partition name: OpenSM would cut or misread it. "
            "Use 1 to 31 letters, digits, “_”, “.” or “-”, beginning with a letter."
        )
    if text.lower() in _RESERVED_NAMES:
        raise InvalidName("“Default” is the partition every port is in; choose another name.")
    return text


def safe_label(text: str) -> str:
    """`text` with everything but `[A-Za-z0-9._-]` collapsed to `_`, at most 60 characters; labels are untrusted."""
    return _UNSAFE_IN_LABEL.sub("_", text)[:60] or "unnamed"


@dataclass(frozen=True, slots=True)
class Partition:
    """A P_Key, its name, its owner's label (None: the provider's), its members in order of GUID, and what else it is.

    `keywords` are members that no GUID names; `mgids` are lines for multicast groups, carried over as they were
    found. Raises InvalidFlag, InvalidPKey, InvalidName (also for an owner's label that is not a `safe_label`, because
    two owners must never look like one), or InvalidTable when a port is named twice. All is checked here, so that no
    table can exist that OpenSM would misread.
    """

    pkey: PKey
    name: str
    tenant: str | None = None
    members: tuple[Member, ...] = ()
    flags: Flags = NO_FLAGS
    keywords: tuple[KeywordMember, ...] = ()
    mgids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pkey", PKey.for_partition(self.pkey))
        partition_name(self.name)
        if self.tenant is not None and self.tenant != safe_label(self.tenant):
            raise InvalidName(
                f"“{self.tenant[:60]}” cannot stand for a tenant in the file. "
                "Use the tenant's slug: 1 to 60 letters, digits, “_”, “.” or “-”."
            )
        of = f"{self.name} ({self.pkey})"
        object.__setattr__(self, "members", in_order(self.members, of))
        object.__setattr__(self, "keywords", keywords_in_order(self.keywords, of))
        object.__setattr__(self, "mgids", mgid_lines(self.mgids, of))

    @property
    def ipoib(self) -> bool:
        """Whether OpenSM creates the IPv4 broadcast group of this partition."""
        return self.flags.ipoib

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it: it is a row for people and does not stand in the file."""
        return not self.members and not self.keywords


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """All partitions of one subnet in order of P_Key, the SM ports that must be full members of Default, and Default.

    `labels` maps a port GUID to the label of its server and is for people only: it changes no P_Key table and does
    not enter the table digest; every label is made a `safe_label`. An SM port among Default's exceptions is
    dropped there when it is full, because it always is. Raises InvalidTable for a P_Key or a name used twice and for
    an SM port that Default would except from being full.
    """

    sm_ports: tuple[GUID, ...]
    partitions: tuple[Partition, ...] = ()
    labels: Mapping[GUID, str] = field(default_factory=dict, hash=False, compare=False)
    default: DefaultPartition = STANDARD
    _lookups: "_Lookups | None" = field(init=False, default=None, hash=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sm_ports", tuple(sorted({GUID(text) for text in self.sm_ports})))
        safe = {label: safe_label(label) for label in set(self.labels.values())}
        labels = {GUID(text): safe[label] for text, label in self.labels.items()}
        object.__setattr__(self, "labels", labels)
        self._drop_sm_ports_from_exceptions()
        ordered = tuple(sorted(self.partitions, key=lambda partition: partition.pkey))
        object.__setattr__(self, "partitions", ordered)
        names: dict[str, Partition] = {}
        for before, after in pairwise(ordered):
            if before.pkey == after.pkey:
                raise InvalidTable(f"P_Key {after.pkey} stands for both {before.name} and {after.name}.")
        for partition in ordered:
            twin = names.setdefault(partition.name.lower(), partition)
            if twin is not partition:
                raise InvalidTable(f"Two partitions are called {partition.name}: {twin.pkey} and {partition.pkey}.")

    def _drop_sm_ports_from_exceptions(self) -> None:
        named = [member for member in self.default.members if member.guid in self.sm_ports]
        for member in named:
            if member.membership != Membership.FULL:
                raise InvalidTable(
                    f"Port {member.guid} belongs to a manager host and is excepted as a limited member of Default: no "
                    "limited host could reach it after a takeover. Take the exception back first."
                )
        if named:
            others = tuple(member for member in self.default.members if member not in named)
            object.__setattr__(self, "default", replace(self.default, members=others))

    def memberships(self) -> Iterator[tuple[Partition, Member]]:
        """Every (partition, member) pair, in order of P_Key and GUID."""
        for partition in self.partitions:
            for member in partition.members:
                yield partition, member

    def by_port(self) -> Mapping[GUID, Mapping[PKey, Membership]]:
        """What each port named in a partition holds beside Default and beside keywords. Built once a table."""
        return self._look_ups().held

    def keys_of(self, guid: GUID, node_type: NodeType, *, is_self: bool = False) -> dict[PKey, Membership]:
        """All keys that OpenSM gives an end port, Default included; `is_self`: the reading SM is bound to it.

        For one port the last line wins: the keywords in their order, then its GUID (ground truth: OpenSM, 2.7).
        """
        return self._keys(self._look_ups(), guid, node_type, is_self=is_self)

    def keys_of_some(self, ports: Iterable[tuple[GUID, NodeType, bool]]) -> dict[GUID, dict[PKey, Membership]]:
        """`keys_of` for some ports (GUID, node type, is_self): one pass, without building what all ports would need."""
        asked = list(ports)
        look_ups = self._lookups or _Lookups.of(self, only=frozenset(guid for guid, _, _ in asked))
        return {guid: self._keys(look_ups, guid, node_type, is_self=is_self) for guid, node_type, is_self in asked}

    def _keys(self, look_ups: "_Lookups", guid: GUID, node_type: NodeType, *, is_self: bool) -> dict[PKey, Membership]:
        keys = {DEFAULT: self._default(look_ups, guid, node_type, is_self=is_self)}
        for partition in look_ups.by_keyword:
            membership = membership_by_keyword(partition.keywords, node_type, is_self=is_self)
            if membership is not None:
                keys[partition.pkey] = membership
        keys.update(look_ups.held.get(guid, {}))
        return keys

    def default_of(self, guid: GUID, node_type: NodeType, *, is_self: bool = False) -> Membership:
        """What an end port is in Default."""
        return self._default(self._look_ups(), guid, node_type, is_self=is_self)

    def _default(self, look_ups: "_Lookups", guid: GUID, node_type: NodeType, *, is_self: bool) -> Membership:
        if guid in self.sm_ports:
            return Membership.FULL
        exception = look_ups.exceptions.get(guid)
        return exception or self.default.membership_of(node_type, is_self=is_self)

    def _look_ups(self) -> "_Lookups":
        if self._lookups is None:
            object.__setattr__(self, "_lookups", _Lookups.of(self))
        assert self._lookups is not None  # noqa: S101  set above; the value never changes
        return self._lookups

    def partition(self, pkey: PKey) -> Partition | None:
        """The partition with this P_Key, if there is one."""
        return next((partition for partition in self.partitions if partition.pkey == pkey), None)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values; GUIDs and P_Keys are text.

        What earlier versions did not know is left out where it says nothing, so their tables keep their JSON.
        """
        value: dict[str, Any] = {
            "sm_ports": list(self.sm_ports),
            "partitions": [_partition_to_json(partition) for partition in self.partitions],
            "labels": dict(sorted(self.labels.items())),
        }
        return value if self.default.is_standard else value | {"default": self.default.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "PartitionTable":
        """The table that `to_json` wrote, also in earlier versions; raise SubnetError when it holds what none may."""
        labels = {GUID(guid): label for guid, label in value["labels"].items()}
        known = {str(guid): guid for guid in labels}  # most members have a label: each GUID is checked once
        return cls(
            sm_ports=tuple(GUID(text) for text in value["sm_ports"]),
            partitions=tuple(_partition_from_json(item, known) for item in value["partitions"]),
            labels=labels,
            default=DefaultPartition.from_json(value["default"]) if "default" in value else STANDARD,
        )


@dataclass(frozen=True, slots=True)
class _Lookups:
    """What `keys_of` looks up, built on first use: most tables are never asked about a port."""

    held: Mapping[GUID, Mapping[PKey, Membership]]
    by_keyword: tuple[Partition, ...]
    exceptions: Mapping[GUID, Membership]

    @classmethod
    def of(cls, table: PartitionTable, *, only: frozenset[GUID] | None = None) -> "_Lookups":
        """For all ports that partitions name, or for some."""
        held: dict[GUID, dict[PKey, Membership]] = {}
        for partition in table.partitions:
            pkey = partition.pkey
            for member in partition.members:
                if only is not None and member.guid not in only:
                    continue
                keys = held.get(member.guid)
                if keys is None:
                    held[member.guid] = {pkey: member.membership}
                else:
                    keys[pkey] = member.membership
        return cls(
            held=held,
            by_keyword=tuple(partition for partition in table.partitions if partition.keywords),
            exceptions={member.guid: member.membership for member in table.default.members},
        )


def _partition_to_json(partition: Partition) -> dict[str, Any]:
    value: dict[str, Any] = {
        "pkey": str(partition.pkey),
        "name": partition.name,
        "tenant": partition.tenant,
        "ipoib": partition.ipoib,
        "members": [[member.guid, member.membership.value] for member in partition.members],
    }
    if partition.flags not in (NO_FLAGS, IPOIB):
        value["flags"] = partition.flags.to_json()
    if partition.keywords:
        value["keywords"] = keywords_to_json(partition.keywords)
    if partition.mgids:
        value["mgids"] = list(partition.mgids)
    return value


def _partition_from_json(value: Mapping[str, Any], known: Mapping[str, GUID]) -> Partition:
    members: Iterable[tuple[str, str]] = value["members"]
    return Partition(
        pkey=PKey.parse(value["pkey"]),
        name=value["name"],
        tenant=value["tenant"],
        flags=Flags.from_json(value["flags"]) if "flags" in value else Flags(ipoib=value["ipoib"]),
        members=tuple(Member(known.get(guid) or GUID(guid), Membership(membership)) for guid, membership in members),
        keywords=keywords_from_json(value.get("keywords", [])),
        mgids=tuple(value.get("mgids", ())),
    )
